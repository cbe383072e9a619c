"""Lists on the screen: what ran, on which device, in which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelcount.model import DeviceTally, Row, Step
from kernelcount.origins.sources import Key, OfRow
from kernelcount.render import counters, lines
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


def ran(
    title: str, entry: Figures, page: Page, replaced: Mapping[Key, str] | None = None
) -> list[Line]:
    """List the rows of one variant; see `listed` for their order.

    `replaced`: by row, the numbers of the rows of eager code that it replaces.
    """
    shown, rest = listed(entry.rows, full=page.every)
    if not shown:
        return []
    origins = entry.origins
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
    listing: list[Line] = [((top, "bold"),)]
    beside = [_beside(row, origins, replaced or {}, room // 2) for row in shown]
    numbers = lines.numbered(shown)
    label_width = _label_width(shown, beside, room - cells(_start("", shown)), page)
    details = counters.by_row(entry) if page.full else {}
    for row, tail, aside in zip(shown, tails, beside, strict=True):
        start = _start(lines.number_of(row, numbers), shown)
        spans, below = _entry(row, room - len(start), label_width, page, aside)
        listing.append(((start, ""), *spans, ("   " + tail, "")))
        parts = chop(below, page.width - len(start))
        if page.full:
            parts += counters.said(details[row.name, row.label, row.activity], page, len(start))
        listing += [((" " * len(start) + part, "dim"),) for part in parts]
    if rest:
        listing.append(((fit(f"  {left_out(rest)}: --full shows all", page.width), "dim"),))
    return listing


def _start(number: str, shown: Sequence[Row]) -> str:
    return f"  {number:>{len(str(len(shown)))}}  "


def _beside(row: Row, origins: Mapping[Key, OfRow], replaced: Mapping[Key, str], room: int) -> str:
    """What is said of where a row comes from: its line, or the rows of eager code it replaces.

    Both, where they fit into the room; what names itself is told by the rows first.
    """
    instead = replaced.get(lines.key(row), "")
    place = lines.said(origins.get(lines.key(row)), row.label or "")
    numbers = f"({instead})" if instead else ""
    if _names_itself(row):
        return next((text for text in (numbers, place) if text and cells(text) <= room), "")
    both = "  ".join(filter(None, (place, numbers)))
    return both if cells(both) <= room else place or numbers


def _names_itself(row: Row) -> bool:
    """Whether its own name is what a row is called, as that of a generated kernel."""
    return row.label is None or row.label == row.name


def _label_width(shown: Sequence[Row], beside: Sequence[str], room: int, page: Page) -> int:
    """Cells for what rows are called, where something stands beside it."""
    labels = [_called(row, text, page)[0] for row, text in zip(shown, beside, strict=True)]
    widest = max(map(cells, labels))
    if not any(beside):
        return min(widest, _LABEL_WIDTH, room // 3)
    named = [text for row, text in zip(shown, beside, strict=True) if not _names_itself(row)]
    return min(widest, max(room - max(map(cells, named), default=0) - 2, room // 3))


def _called(row: Row, beside: str, page: Page) -> tuple[str, str]:
    """What a row is called, and its name, or in its place the line that it comes from."""
    label, name = caption(row, full=page.full)
    if not beside or page.full or _names_itself(row):
        return label, name
    return label or name, beside


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
    return f"{_bound(row)}{transfers((row.read + row.written) / entry.paper.unit)}"


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


def _entry(row: Row, room: int, label_width: int, page: Page, aside: str) -> tuple[Line, str]:
    """One row on `room` cells, and its complete name for the lines below where it needs them."""
    label, name = _called(row, aside, page)
    beside = label_width + 2 if label else 0
    if page.full and cells(name) > room - beside:
        return ((pad(label or row.activity, room), ""),), f"{name}  {aside}".rstrip()
    if not label:
        # Such a name, a fused kernel's for one, says itself what it does.
        return _with_aside(name, aside, room), ""
    before, after = pad(label, beside - 2) + "  ", pad(name, room - beside)
    if page.full and aside:
        after = pad(f"{name}  {aside}", room - beside)
    return ((before, ""), (after, "dim")), ""


def _with_aside(name: str, aside: str, room: int) -> Line:
    """A name and what stands beside it, which is not cut."""
    if not aside or cells(aside) + 2 > room:
        return ((pad(name, room), ""),)
    name = fit(name, room - cells(aside) - 2)
    return ((name, ""), (pad(f"  {aside}", room - cells(name)), "dim"))


def _rate(row: Row) -> str:
    """The bytes of a row over its time, as far as both are known: ``4.3 TB/s``."""
    if row.read is None or row.written is None or not row.time_ns:
        return ""
    moved = row.read + row.written
    return f"{_bound(row)}{memory_rate(moved / row.time_ns * 1e9)}" if moved else ""


def _bound(row: Row) -> str:
    """What stands before the bytes of a row, where they are a bound."""
    return "≤ " if row.at_most else "≥ " if row.at_least else ""


def _times(row: Row) -> str:
    return f"×{row.count}" if row.count > 1 else ""
