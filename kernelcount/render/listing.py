"""Lists on the screen: what ran, on which device, in which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelcount.model import DeviceTally, Row, Step
from kernelcount.render import counters
from kernelcount.render.figures import LISTED, Figures, listed
from kernelcount.render.layout import Line, Page, cells, chop, columns, fit, pad
from kernelcount.render.wording import (
    caption,
    clean,
    duration,
    left_out,
    memory_rate,
    plural,
    transfers,
)

_LABEL_WIDTH = 16
_WIDE = 60  # cells of a page that has room for a second column of figures


def ran(title: str, entry: Figures, page: Page) -> list[Line]:
    """List the rows of one variant; see `listed` for their order."""
    shown, rest = listed(entry.rows, full=page.full)
    if not shown:
        return []
    repeated = any(row.count > 1 for row in shown)
    heading = heading_of(entry, repeated=repeated)
    tails = columns(
        [[_times(row), *([figure_of(row, entry)] if heading else [])] for row in shown],
        "rr" if heading else "r",
    )
    if page.width >= _WIDE and any(_rate(row) for row in shown) and not entry.on_paper:
        rates = [[tail, _rate(row) or "unknown"] for tail, row in zip(tails, shown, strict=True)]
        heading, *tails = columns([[heading, "memory rate"], *rates], "rr")
    room = page.width - cells(tails[0]) - 3
    top = "  " + pad(title, page.width - 3 - cells(heading)) + " " + heading
    lines: list[Line] = [((top, "bold"),)]
    widest = max(cells(caption(row, full=page.full)[0]) for row in shown)
    label_width = min(widest, _LABEL_WIDTH, room // 3)
    details = counters.by_row(entry) if page.full else {}
    for number, (row, tail) in enumerate(zip(shown, tails, strict=True), start=1):
        start = f"  {number:>{len(str(len(shown)))}}  "
        spans, below = _entry(row, room - len(start), label_width, page)
        lines.append(((start, ""), *spans, ("   " + tail, "")))
        parts = chop(below, page.width - len(start))
        if page.full:
            parts += counters.said(details[row.name, row.label, row.activity], page, len(start))
        lines += [((" " * len(start) + part, "dim"),) for part in parts]
    if rest:
        lines.append(((fit(f"  {left_out(rest)}: --full shows all", page.width), "dim"),))
    return lines


def heading_of(entry: Figures, *, repeated: bool) -> str:
    """What stands above the last column: on paper nothing took any time."""
    if not entry.on_paper:
        return "total time" if repeated else "time"
    moved = entry.paper and entry.paper.unit and any(row.read is not None for row in entry.rows)
    return "transfers" if moved else ""


def figure_of(row: Row, entry: Figures) -> str:
    """Its time, or on paper the arrays that it moves."""
    if not entry.on_paper or entry.paper is None:
        return duration(row.time_ns)
    if row.read is None or row.written is None:
        return "unknown"
    return transfers((row.read + row.written) / entry.paper.unit)


def devices(tallies: Mapping[str, DeviceTally]) -> list[Line]:
    """Show kernels and kernel time of each device, where there are several."""
    several = [(f"device {name}", t.kernels, t.kernel_time_ns) for name, t in tallies.items()]
    return _tallied(several) if len(several) > 1 else []


def steps(every: Sequence[Step], page: Page) -> list[Line]:
    """Show kernels and kernel time of each profiler step."""
    shown = every if page.full else every[:LISTED]
    lines = _tallied([(s.name, s.kernels, s.kernel_time_ns) for s in shown])
    left = len(every) - len(shown)
    if left:
        lines.append(((f"  … and {plural(left, 'more step')}: --full shows all", "dim"),))
    return lines


def _tallied(rows: Sequence[tuple[str, int, int]]) -> list[Line]:
    """Name, kernels and kernel time, a line each."""
    table = [
        [fit(clean(name), _LABEL_WIDTH), plural(count, "kernel"), duration(time) if count else ""]
        for name, count, time in rows
    ]
    return [((f"  {line}", ""),) for line in columns(table, "lrr")]


def _entry(row: Row, room: int, label_width: int, page: Page) -> tuple[Line, str]:
    """One row on `room` cells, and its complete name for the lines below where it needs them."""
    label, name = caption(row, full=page.full)
    beside = label_width + 2 if label else 0
    if page.full and cells(name) > room - beside:
        return ((pad(label or row.activity, room), ""),), name
    if not label:
        # Such a name, a fused kernel's for one, says itself what it does.
        return ((pad(name, room), ""),), ""
    before, after = pad(label, beside - 2) + "  ", pad(name, room - beside)
    return ((before, ""), (after, "dim")), ""


def _rate(row: Row) -> str:
    """The bytes of a row over its time, as far as both are known: ``4.3 TB/s``."""
    if row.read is None or row.written is None or not row.time_ns:
        return ""
    moved = row.read + row.written
    return f"{'≤ ' if row.at_most else ''}{memory_rate(moved / row.time_ns * 1e9)}" if moved else ""


def _times(row: Row) -> str:
    return f"×{row.count}" if row.count > 1 else ""
