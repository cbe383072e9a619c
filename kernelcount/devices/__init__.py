"""Where a function can be counted: one row a device, read by the CLI, its errors and the tests."""

from __future__ import annotations

import difflib

from kernelcount.devices.base import Device as Device
from kernelcount.devices.cpu import Cpu
from kernelcount.devices.fake import Fake
from kernelcount.devices.gpu import Gpu
from kernelcount.devices.paper import OnPaper
from kernelcount.errors import NotMeasuredError, UsageError

DEVICES: dict[str, Device] = {
    "cuda": Gpu("cuda", "NVIDIA and AMD GPUs"),
    "xpu": Gpu("xpu", "Intel GPUs"),
    "cpu": Cpu(),
    "paper": OnPaper(),
    "fake": Fake(),
}
HIDDEN = frozenset({"fake"})


def names() -> str:
    """The devices that a user may ask for, as a list in words."""
    return ", ".join(name for name in DEVICES if name not in HIDDEN)


def parse(text: str) -> tuple[Device, str]:
    """The device that ``cuda``, ``cuda:1`` or ``cpu`` names, and torch's name for it.

    Imports no torch. Raises UsageError for a name that there is not.
    """
    kind, colon, index = text.partition(":")
    device = DEVICES.get(kind)
    if device is None or (colon and not (index.isdecimal() and isinstance(device, Gpu))):
        near = difflib.get_close_matches(kind, set(DEVICES) - HIDDEN, n=1)
        hint = f"; did you mean {near[0]}?" if near and near[0] != text else ""
        raise UsageError(f"--device {text!r} is not one of {names()}{hint}")
    if colon and isinstance(device, Gpu):
        return Gpu(device.kind, device.summary, int(index)), text
    return device, {"fake": "cpu", "paper": "cuda"}.get(kind, kind)


def choose(text: str | None) -> tuple[Device, str]:
    """The device asked for, or the GPU here, or paper.

    Raises UsageError for an unknown name, NotMeasuredError where there is no such device.
    """
    if text is None:
        text = next((n for n in ("cuda", "xpu") if DEVICES[n].missing() is None), "paper")
    device, name = parse(text)
    if reason := device.missing():
        raise NotMeasuredError(f"{reason}; --device paper counts without one")
    return device, name
