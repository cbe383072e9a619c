"""Which lines of the user's make the CPU wait for the GPU, as torch itself tells in a call.

torch's sync debug mode warns of what it waits for in ops, and of ``Stream.synchronize``; it does
not know of ``torch.cuda.synchronize`` and ``Event.synchronize``, which are seen by their frames.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

from kernelcount.devices import Device
from kernelcount.devices.base import SYNC_WARNING, Telling
from kernelcount.origins.callers import Site, site
from kernelcount.waiting import Told

_ON_FIRST_USE = "Synchronization debug mode is a prototype"  # torch says so once


def told(call: Callable[[], object], device: Device, *, asked: bool) -> Told | None:
    """The waits that torch tells of in `call`, in order; None where it tells nothing on `device`.

    `asked`: whether such as torch does not warn of are looked for, too. Raises what `call` raises.
    """
    if not isinstance(device, Telling):
        return None
    waits: list[Site | None] = []
    explicit: list[Site | None] = []
    with (
        _warned(waits),
        device.telling() as tells,
        _watched(explicit) if asked else nullcontext(),
    ):
        call()
    return Told(tuple(waits), tuple(explicit)) if tells else None


@contextmanager
def _warned(waits: list[Site | None]) -> Iterator[None]:
    """Take torch's warnings of waits, and leave all others to whoever shows them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", SYNC_WARNING)
        warnings.filterwarnings("ignore", _ON_FIRST_USE)
        shown = warnings.showwarning

        def take(message: Warning | str, *rest: Any, **more: Any) -> None:
            if str(message).startswith(SYNC_WARNING):
                waits.append(site(sys._getframe(1)))
            else:
                shown(message, *rest, **more)

        warnings.showwarning = take
        yield


@contextmanager
def _watched(explicit: list[Site | None]) -> Iterator[None]:
    """Take note of what is asked to wait for, by the frames of torch's functions for it.

    A profile function of the user's own is left at work; then nothing is noted.
    """
    import torch

    functions = (
        torch.cuda.synchronize,
        torch.cuda.Event.synchronize,
        torch.accelerator.synchronize,
    )
    codes = {id(f.__code__) for f in functions if hasattr(f, "__code__")}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and id(frame.f_code) in codes:
            explicit.append(site(frame))

    if sys.getprofile() is not None:
        yield
        return
    sys.setprofile(watch)
    try:
        yield
    finally:
        if sys.getprofile() is watch:
            sys.setprofile(None)
