"""What Nsight Compute counted, and how kernels were launched: an estimate is called one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelcount.conclusions.details import Detail, dram
from kernelcount.model import Activity, Counters
from kernelcount.render.figures import Figures, Line
from kernelcount.render.layout import Page, wrap
from kernelcount.render.wording import clean, percent, size
from kernelcount.render.wording import occupancy as warps

_BASIS = "ncu"
_MOST = 1 << 63  # bytes; a trace may claim more


def moved(f: Figures) -> dict[str, Any] | None:
    """Show the bytes of all kernels; null where they were not counted."""
    found = dram(f.capture) if f.capture else None
    return found and {"read": found[0], "written": found[1], "basis": _BASIS}


def document(detail: Detail) -> dict[str, Any]:
    """Show of a row how it was launched, and its counters; null where it is not known."""
    occupancy = detail.occupancy
    return {
        "grid": None if detail.grid is None else list(detail.grid),
        "block": None if detail.block is None else list(detail.block),
        "registers": detail.registers,
        "shared_memory": detail.shared_memory,
        "occupancy": None if occupancy is None else {"share": occupancy, "basis": "estimated"},
        "counters": detail.counters and _counters(detail.counters),
    }


def _counters(found: Counters) -> dict[str, Any]:
    return {
        "dram_read": found.dram_read,
        "dram_written": found.dram_written,
        "time_ns": found.time_ns,
        "occupancy": found.occupancy,
        "dram_share": found.dram_share,
        "sm_share": found.sm_share,
        "stall": found.stall,
        "basis": _BASIS,
    }


def lines(entries: Sequence[Figures]) -> list[Line]:
    """The bytes that crossed to and from DRAM, where they were counted."""
    if not any(e.capture and e.capture.counters for e in entries):
        return []
    found = [dram(e.capture) if e.capture else None for e in entries]
    cells = tuple("unknown" if bytes_ is None else size(sum(bytes_)) for bytes_ in found)
    return [Line("DRAM bytes", cells, "by Nsight Compute")]


Key = tuple[str, str | None, Activity]


def by_row(entry: Figures) -> dict[Key, Detail]:
    """The details by what tells rows apart."""
    pairs = zip(entry.rows, entry.details, strict=True)
    return {(row.name, row.label, row.activity): detail for row, detail in pairs}


def said(detail: Detail, page: Page, indent: int) -> list[str]:
    """Lines on a row: how it was launched, and what its counters say."""
    texts = (_launched(detail), _counted(detail.counters) if detail.counters else "")
    return [line for text in texts if text for line in wrap(text, page.width - indent)]


def _launched(detail: Detail) -> str:
    parts = []
    if detail.several:
        parts.append("launched in several ways")
    if detail.grid is not None:
        parts.append(f"grid {_extent(detail.grid)}")
    if detail.block is not None:
        parts.append(f"block {_extent(detail.block)}")
    if detail.registers is not None:
        parts.append(f"{detail.registers} registers")
    if detail.shared_memory and 0 < detail.shared_memory < _MOST:
        parts.append(f"{size(detail.shared_memory)} shared")
    if detail.occupancy is not None:
        parts.append(f"occupancy {warps(detail.occupancy)} estimated")
    return " · ".join(parts)


def _counted(found: Counters) -> str:
    parts = []
    if found.dram_read is not None and found.dram_written is not None:
        parts.append(f"DRAM {size(found.dram_read)} read, {size(found.dram_written)} written")
    if found.occupancy is not None:
        parts.append(f"occupancy {warps(found.occupancy)}")
    if found.dram_share is not None:
        parts.append(f"{percent(found.dram_share)} of DRAM's peak")
    if found.sm_share is not None:
        parts.append(f"{percent(found.sm_share)} of the SMs'")
    if found.stall is not None:
        parts.append(f"waits: {clean(found.stall.replace('_', ' '))}")
    return f"ncu: {' · '.join(parts)}" if parts else ""


def _extent(numbers: Sequence[int]) -> str:
    """Blocks or threads, without the dimensions that are 1 at the end: ``8×2``."""
    shown = list(numbers)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return "×".join(map(str, shown))
