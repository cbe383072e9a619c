"""Out of memory, in one line: what was asked for, and a size that might fit."""

from __future__ import annotations

import math
import os
import re

_CPU = re.compile(r"you tried to allocate (\d+) bytes")
_GPU = re.compile(r"Tried to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB)")
_OVERFLOW = re.compile(r"Storage size calculation overflowed|invalid size, tried to allocate")
_BINARY = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_THOUSAND = 1000
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is torch's or Python's way of saying that memory ran out."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and bool(_CPU.search(text) or _OVERFLOW.search(text)))
    )


def explain(error: BaseException, size: int | None, available: int | None = None) -> str:
    """One line: the bytes asked for in a readable unit, and a smaller ``--size`` to try.

    `available` is in bytes; None: this machine's physical memory. The size suggested holds where
    memory grows with the square of the size, so that it errs on the small side.
    """
    asked = _asked(str(error))
    amount = f"it asked for {readable(asked)}" if asked else "it asked for more than there is"
    if size is None:
        return f"out of memory: {amount}; try smaller inputs, such as a smaller --size"
    room = available if available is not None else _physical()
    ratio = math.sqrt(room / asked) if asked and asked > room else 0.1
    smaller = 10 ** max(0, math.floor(math.log10(max(1.0, size * ratio))))
    if smaller >= size:
        smaller = max(1, size // 10)
    return f"out of memory: {amount}; try a smaller --size, such as {smaller}"


def readable(n: int) -> str:
    """Bytes in decimal units: ``40 PB``, ``1.2 GB``."""
    power = 0
    value = float(n)
    while value >= _THOUSAND and power < len(_DECIMAL) - 1:
        value /= _THOUSAND
        power += 1
    return f"{value:.3g} {_DECIMAL[power]}"


def _asked(text: str) -> int | None:
    if match := _CPU.search(text):
        return int(match[1])
    if match := _GPU.search(text):
        return int(float(match[1]) * _BINARY[match[2]])
    return None


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
