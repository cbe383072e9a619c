"""Memory: how much there is, and out of memory in one line, with a size that might fit."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from pathlib import Path

_CPU = re.compile(r"you tried to allocate (\d+) bytes")
_GPU = re.compile(r"Tried to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB|PiB|EiB)")
_CAPACITY = re.compile(r"total capacity of ([\d.]+) (KiB|MiB|GiB|TiB)")
_NUMPY = re.compile(r"Unable to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB|PiB|EiB)")
_OVERFLOW = re.compile(r"Storage size calculation overflowed|invalid size, tried to allocate")
_BINARY = {
    "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60,
}  # fmt: skip
_THOUSAND = 1000
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_HOPELESS = 8  # times the memory there is: no fusion makes that fit, and the work would take days
_TELLING = 1000  # from this size on, the power by which memory grows shows in the bytes asked for
_STEEPEST = 3
_MARGIN = 2  # a call holds more than the one block that was refused


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is torch's or Python's way of saying that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = _text(error)
    return isinstance(error, RuntimeError) and bool(_CPU.search(text) or _OVERFLOW.search(text))


def is_hopeless(error: BaseException) -> bool:
    """Whether far more was asked for than there is, so that no other variant is worth a try."""
    text = _text(error)
    asked = _asked(text)
    if asked is None:
        return bool(_OVERFLOW.search(text))
    return asked > _HOPELESS * (_capacity(text) or physical())


def explain(error: BaseException, size: int | None) -> str:
    """One line: the bytes asked for in a readable unit, and a smaller ``--size`` to try.

    `size` None: the inputs do not depend on ``--size``, or nobody gave it.
    """
    text = _text(error)
    asked = _asked(text)
    amount = f"it asked for {readable(asked)}" if asked else "it asked for more than there is"
    if not size:
        return f"out of memory: {amount}; try smaller inputs, such as a smaller --size"
    smaller = _smaller(size, asked, _capacity(text) or physical())
    return f"out of memory: {amount}; try a smaller --size, such as {_short(smaller)}"


def readable(n: int) -> str:
    """Bytes in decimal units: ``40 PB``, ``1.2 GB``."""
    power = 0
    value = float(n)
    while value >= _THOUSAND and power < len(_DECIMAL) - 1:
        value /= _THOUSAND
        power += 1
    return f"{value:.3g} {_DECIMAL[power]}"


def physical() -> int:
    """Bytes of main memory on this machine, or of the container that this runs in."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        return min(whole, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return whole


def available() -> int:
    """Bytes of main memory that can be had without swapping; half of all where that is unknown."""
    with suppress(OSError):
        if match := re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text()):
            return min(physical(), int(match[1]) * 1024)
    return physical() // 2


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  the user's own exception class may fail at this
        return ""


def _asked(text: str) -> int | None:
    if match := _CPU.search(text):
        return int(match[1])
    if match := _GPU.search(text) or _NUMPY.search(text):
        return int(float(match[1]) * _BINARY[match[2]])
    return None


def _capacity(text: str) -> int | None:
    """The memory of the GPU, where torch tells it."""
    match = _CAPACITY.search(text)
    return int(float(match[1]) * _BINARY[match[2]]) if match else None


def _smaller(size: int, asked: int | None, room: int) -> int:
    """A power of ten that fits into `room`, if memory grows by the power of size that it seems to.

    An n x n temporary of floats asks for 4 n^2 bytes, an input for 4 n.
    """
    if not asked or asked * _MARGIN <= room:
        return max(1, size // 10)
    power = 1
    if size >= _TELLING:
        power = min(_STEEPEST, max(1, math.floor(math.log(asked) / math.log(size))))
    fits = size * (room / (asked * _MARGIN)) ** (1 / power)
    smaller: int = 10 ** max(0, math.floor(math.log10(max(1.0, fits))))
    return smaller if smaller < size else max(1, size // 10)


def _short(size: int) -> str:
    """A size as a person would type it: 100, 1e9."""
    text = str(size)
    zeros = len(text) - len(text.rstrip("0"))
    short = f"{text[:-zeros]}e{zeros}" if zeros else text
    return text if size < _TELLING * 10 else short
