"""Figures and rows of a diff, in cells: the same in every format."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from kernelcount.model import Change, Pair, Row, Speed, Total
from kernelcount.origins.sources import OfRow
from kernelcount.render.figures import LISTED, compared
from kernelcount.render.lines import said as lines_said
from kernelcount.render.wording import caption, duration, joined, size, transfers

LABELS = {
    "kernels": "kernels",
    "generated": "generated kernels",
    "library": "library calls",
    "copies": "copies",
    "fills": "fills",
    "launches": "launches",
    "aten": "ATen operations",
    "bytes": "bytes moved",
    "transfers": "transfers",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "syncs": "waits for the GPU",
    "peak_memory": "peak memory",
    "kernel_time": "kernel time",
    "call_time": "time per call",
}
"""How figures are called, by their names."""

# Shown also where both are alike.
_ALWAYS = ("kernels", "launches", "aten", "transfers", "peak_memory", "kernel_time", "call_time")
_BYTES = ("bytes", "peak_memory")
TIMES = ("kernel_time", "call_time")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a variant on both sides; `remark` stands beside it."""

    label: str
    before: str
    after: str
    remark: str = ""


def lines(pair: Pair, *, full: bool = False) -> list[Line]:
    """The figures of one variant, without those that say nothing."""
    shown = []
    for total in pair.known:
        alike = total.before == total.after
        if alike and not full and total.name not in _ALWAYS:
            continue
        speed = {"call_time": pair.call_speed, "kernel_time": pair.kernel_speed}.get(total.name)
        before, after = _least(total, 0, total.before), _least(total, 1, total.after)
        shown.append(Line(LABELS[total.name], before, after, _remark(total, speed)))
    return shown


def _least(total: Total, side: int, value: float | None) -> str:
    """A figure of one side, marked where it is a lower bound."""
    low, high = total.bounds[side] if total.bounds else (-inf, inf)
    open_above = isfinite(low) and high == inf
    return f"≥ {figure(total.name, value)}" if open_above else figure(total.name, value)


def figure(name: str, value: float | None) -> str:
    """One figure in the unit that suits it."""
    if value is None:
        return "unknown"
    if name in TIMES:
        return duration(value)
    if name in _BYTES:
        return size(round(value))
    return transfers(value) if name == "transfers" else str(round(value))


def _remark(total: Total, speed: Speed | None) -> str:
    if speed is not None:
        return compared(speed)
    if total.before is None or total.after is None or total.before == total.after:
        return ""
    if total.name in TIMES:
        return ""
    grown = total.after - total.before
    if total.name in _BYTES:
        return f"{'+' if grown > 0 else '-'}{size(abs(round(grown)))}"
    return f"{grown:+.1f}" if total.name == "transfers" else f"{round(grown):+d}"


def rows(pair: Pair, *, full: bool) -> tuple[list[Change], str]:
    """The changes to show, in their order, and a line that sums up the rest.

    Where there are too many, those are shown that change most of the time, or of the count.
    """
    changed = [c for c in pair.changes if c.change != "same" or c.renamed]
    same = len(pair.changes) - len(changed)
    if full:
        return list(pair.changes), ""
    shown = sorted(changed, key=_weight, reverse=True)[:LISTED]
    shown.sort(key=changed.index)
    cut = len(changed) - len(shown)
    rest = [f"{cut} more that changed"] if cut else []
    rest += [f"{same} the same"] if same and changed else []
    return shown, f"… and {joined(rest)}: --full shows all" if rest else ""


def _weight(change: Change) -> tuple[int, int]:
    """By which changes are ranked: nanoseconds between before and after, then executions."""
    before, after = change.before, change.after
    times = [(row.time_ns or 0) if row else 0 for row in (before, after)]
    counts = [row.count if row else 0 for row in (before, after)]
    return abs(times[1] - times[0]), abs(counts[1] - counts[0])


def word(change: Change) -> str:
    """What happened to a row, in one word."""
    if change.change == "same":
        return "renamed" if change.renamed else "same"
    if change.change == "count":
        more = change.before and change.after and change.after.count > change.before.count
        return "more" if more else "fewer"
    if change.change == "time":
        before, after = (r.time_ns or 0 for r in (change.before, change.after) if r)
        return "slower" if after > before else "faster"
    return {"appeared": "new", "vanished": "gone"}[change.change]


def named(change: Change, *, full: bool = False) -> tuple[str, str]:
    """The op and the name of a row; of one that has another name now, both names."""
    label, name = caption(change.row, full=full)
    if change.renamed and change.before is not None:
        was = caption(change.before, full=full)[1]
        name = f"{name}, was {was}" if was != name else name
    return label, name


def line(change: Change) -> str:
    """The line of code that a row is of, and how many more there are; empty where not known."""
    return lines_said(OfRow(change.places))


def cell(row: Row | None) -> str:
    """How often a row ran, and how long it took in all."""
    if row is None:
        return ""
    often = f"×{row.count}"
    return f"{often} {duration(row.time_ns)}" if row.time_ns is not None else often
