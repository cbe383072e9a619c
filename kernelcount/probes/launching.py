"""What launching costs the CPU: for the plainest op, for a call of a module, of compiled code.

So many are made in a row that the GPU's queue holds them, and the GPU is done before the next row,
so that the CPU never waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from statistics import median
from typing import Any

from kernelcount.devices import DEVICES
from kernelcount.devices.base import Device
from kernelcount.model import LaunchCosts
from kernelcount.probes import timing
from kernelcount.variants import VARIANTS

BRIEFLY = 0.1
"""Seconds for a figure that is held against a half: on an H200's host, rows enough for 2 %."""

_QUEUED = 256
"""Ops that the CPU launches before it waits for the GPU. A GPU's queue takes some thousand launches
until the CPU has to wait; and a hundred or more hide what the first one after a pause costs."""


def costs(device: Device, name: str, *, compiling: bool) -> LaunchCosts | None:
    """What launching costs here, on a device and by torch's name for it, measured briefly.

    `compiling`: a call of compiled code, too, for which a small function is compiled. What cannot
    be measured is None, and so is the whole where nothing can.
    """
    figures = {"eager_ns": eager, "module_ns": module}
    found = {n: _tried(partial(f, device, name, BRIEFLY)) for n, f in figures.items()}
    if compiling:
        with VARIANTS["compile"].during():
            found["compiled_ns"] = _tried(partial(compiled, device, name, BRIEFLY))
    return LaunchCosts(**found) if any(found.values()) else None


def _tried(measure: Callable[[], float]) -> float | None:
    try:
        return measure() or None
    except Exception:  # noqa: BLE001  without a figure the verdict says that there is none
        return None


def eager(device: Device, name: str, seconds: float) -> float:
    """Nanoseconds of the CPU for `add_` on one element."""
    return _row(device, partial(_one(name).add_, 1), seconds)


def module(device: Device, name: str, seconds: float) -> float:
    """Nanoseconds of the CPU for a call of `nn.Linear` on one element, gradients recorded."""
    import torch

    with torch.enable_grad():
        linear = torch.nn.Linear(1, 1, device=name, dtype=torch.float32)
        return _row(device, partial(linear, _one(name)), seconds)


def compiled(device: Device, name: str, seconds: float) -> float:
    """Nanoseconds of the CPU for a call of a compiled function of one kernel, on one element."""
    import torch

    def add(x: Any) -> Any:
        return x + 1

    call = partial(torch.compile(add), _one(name))
    call()
    return _row(device, call, seconds)


def _one(name: str) -> Any:
    import torch

    return torch.ones(1, device=name, dtype=torch.float32)


def _row(device: Device, call: Callable[[], object], seconds: float) -> float:
    """Nanoseconds that the CPU needs for a call, which the GPU never makes it wait for."""

    def row() -> None:
        for _ in range(_QUEUED):
            call()

    candidate = timing.Candidate("row", [row], nullcontext, device.synchronize)
    timing.in_turn([candidate], DEVICES["cpu"], seconds)
    return median(candidate.samples) / _QUEUED
