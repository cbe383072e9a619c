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
_COUNTERS = frozenset({"cuda", "fake"})
_CALLED = {"fake": "cpu", "paper": "cuda"}  # by torch, where it is another name
_ALSO = {"gpu": "cuda", "nvidia": "cuda", "hip": "cuda", "rocm": "cuda", "amd": "cuda"}
_ALSO |= {"intel": "xpu", "sycl": "xpu", "host": "cpu"}
_LONGEST_INDEX = 4  # digits


def names() -> str:
    """The devices that a user may ask for, as a list in words."""
    return ", ".join(name for name in DEVICES if name not in HIDDEN)


def parse(text: str) -> tuple[Device, str]:
    """The device that ``cuda``, ``cuda:1`` or ``cpu`` names, and torch's name for it.

    Imports no torch. Raises UsageError for a name that there is not.
    """
    kind, colon, index = text.partition(":")
    device = DEVICES.get(kind)
    hidden = kind in HIDDEN and DEVICES[kind].missing() is not None
    if device is None or hidden or (colon and not (_is_index(index) and isinstance(device, Gpu))):
        raise UsageError(f"--device {text!r} is not one of {names()}{_nearest(text, kind)}")
    if colon and isinstance(device, Gpu):
        return Gpu(device.kind, device.summary, int(index)), f"{kind}:{int(index)}"
    return device, _CALLED.get(kind, kind)


def check_counters(kind: str | None) -> None:
    """Raises UsageError where Nsight Compute can read no counters on a device of this kind.

    Kinds are those of an environment, which tells NVIDIA's GPUs (cuda) from AMD's (hip).
    """
    if kind not in _COUNTERS:
        why = {
            "paper": "on paper nothing runs that it could look at",
            "cpu": "the CPU has none of these",
            "hip": "this is one of AMD's",
            "xpu": "this is one of Intel's",
        }.get(kind or "", f"this is {kind}")
        raise UsageError(f"--ncu: Nsight Compute reads the counters of NVIDIA's GPUs; {why}")


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_INDEX


def _nearest(text: str, kind: str) -> str:
    shown = set(DEVICES) - HIDDEN
    lower = kind.strip().lower()
    near = _ALSO.get(lower) or next(iter(difflib.get_close_matches(lower, shown, n=1)), None)
    if near is None or near == text:
        return ""
    example = f"{near}:0" if ":" in text and isinstance(DEVICES[near], Gpu) else near
    return f"; did you mean {example}?"


def choose(text: str | None) -> tuple[Device, str]:
    """The device asked for, or the GPU here, or paper.

    Raises UsageError for an unknown name, NotMeasuredError where there is no such device.
    """
    if text is None:
        text = next((n for n in ("cuda", "xpu") if DEVICES[n].missing() is None), "paper")
    device, name = parse(text)
    if reason := device.missing():
        raise NotMeasuredError(f"{reason}; --device paper counts without a GPU")
    return device, name
