"""Settings of the process that a call may leave changed: how each is read and put back."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Switch = tuple[Callable[[], Any], Callable[[Any], Any]]
"""How a setting is read, and how it is set."""

_UNKNOWN = object()


class Settings:
    """What the settings are now, to be put back; `more` are asked beside torch's own."""

    def __init__(self, *more: Switch) -> None:
        found = [(get, put, _read(get)) for get, put in (*switches(), *more)]
        self._then = [setting for setting in found if setting[2] is not _UNKNOWN]

    def restore(self) -> list[tuple[Callable[[Any], Any], Any]]:
        """Put back what has changed; how that would be set again, and to what."""
        now = [_read(get) for get, _, _ in self._then]
        changed = [
            (put, value)
            for (_, put, then), value in zip(self._then, now, strict=True)
            if value != then
        ]
        if changed:
            for get, put, then in self._then:
                if _read(get) != then:  # one setting may have changed another
                    _set(put, then)
        return [(put, value) for put, value in changed if value is not _UNKNOWN]


def _read(get: Callable[[], Any]) -> Any:
    """What is set; `_UNKNOWN` where torch refuses to tell, as of settings that exclude others."""
    try:
        return get()
    except (RuntimeError, OSError):
        return _UNKNOWN


def _set(put: Callable[[Any], Any], value: Any) -> None:
    with suppress(RuntimeError, OSError):
        put(value)


class OwnSettings:
    """What one variant's calls leave changed, kept for its next calls and from all others."""

    def __init__(self, *more: Switch) -> None:
        self._more = more
        self._others: Settings | None = None
        self._own: list[tuple[Callable[[Any], Any], Any]] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have its own while it is called, and what all begin with afterwards."""
        self._others = self._others or Settings(*self._more)
        for put, value in self._own:
            _set(put, value)
        try:
            yield
        finally:
            self._own = self._others.restore()


def generators() -> Iterator[Switch]:
    """Each random number generator: how its state is read and set."""
    import torch

    yield random.getstate, random.setstate
    yield torch.get_rng_state, torch.set_rng_state
    for api in (torch.cuda, torch.xpu):
        if api.is_available() and api.is_initialized():
            yield api.get_rng_state_all, api.set_rng_state_all
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        yield numpy.get_state, numpy.set_state


def switches() -> Iterator[Switch]:
    """Each global setting: how it is read and set."""
    import torch

    yield torch.get_default_dtype, torch.set_default_dtype
    yield torch.is_grad_enabled, torch.set_grad_enabled
    yield torch.get_default_device, _set_default_device
    yield from _precisions()
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode
    for name in ("enabled", "benchmark", "deterministic"):
        yield _attribute(torch.backends.cudnn, name)
    yield from _autocast()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        yield torch.cuda.current_device, torch.cuda.set_device
        yield torch.cuda.current_stream, torch.cuda.set_stream
    yield _folder, os.chdir


def _precisions() -> Iterator[Switch]:
    """Of products and convolutions in float32, in the words of older and newer versions of torch.

    The older come first: they set the newer ones, too. ``cuda.matmul.allow_tf32`` is the first in
    other words.
    """
    import torch

    cuda, cudnn, onednn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    yield torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    yield _attribute(cudnn, "allow_tf32")
    parts = (getattr(b, name, None) for b in (cudnn, onednn) for name in ("conv", "rnn", "matmul"))
    for place in (torch.backends, cuda.matmul, cudnn, onednn, *parts):
        if hasattr(place, "fp32_precision"):
            yield _attribute(place, "fp32_precision")


def _autocast() -> Iterator[Switch]:
    import torch

    yield torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled
    for device in ("cpu", "cuda", "xpu"):
        yield (
            partial(torch.is_autocast_enabled, device),
            partial(torch.set_autocast_enabled, device),
        )
        yield partial(torch.get_autocast_dtype, device), partial(torch.set_autocast_dtype, device)


def _attribute(place: object, name: str) -> Switch:
    return partial(getattr, place, name), partial(setattr, place, name)


def _set_default_device(device: torch.device) -> None:
    import torch

    # One that is set intercepts every call; for the CPU there is no need of it.
    torch.set_default_device(None if device.type == "cpu" else device)


def _folder() -> str:
    """The current folder; the root where it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109  as os.chdir takes it
    except FileNotFoundError:
        return "/"
