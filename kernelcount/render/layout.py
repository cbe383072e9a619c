"""Text in the cells of a terminal: the one file that knows rich.

A line is a tuple of spans, and a span is a text with a style ("" for none). Widths are in cells: a
letter of an East Asian script takes two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Line = tuple[tuple[str, str], ...]

NARROWEST, WIDEST = 40, 120

# Between words, but never between a number and its unit.
_BREAK = re.compile(r"(?<!\d) | (?!(?:s|ms|µs|ns)\b)")


@dataclass(frozen=True, slots=True)
class Page:
    """What the caller asked of the screen: its width in cells, and whether to leave nothing out.

    `explain`: all rows, in the order in which they first ran, and the sections of `explain`.
    """

    width: int
    full: bool
    explain: bool = False

    @property
    def every(self) -> bool:
        """Whether all rows are listed."""
        return self.full or self.explain


def cells(text: str) -> int:
    """Count the cells of a terminal that `text` takes."""
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Leave out the middle where `text` is too wide: both ends of a kernel's name tell it."""
    if cells(text) <= width:
        return text
    from rich.cells import set_cell_size

    tail = (width - 1) * 2 // 5
    start = set_cell_size(text, width - 1 - tail).rstrip()
    return f"{start}…{set_cell_size(text[::-1], tail)[::-1].lstrip()}"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Make `text` exactly `width` cells wide, at the left edge or at the right."""
    text = fit(text, width)
    space = " " * (width - cells(text))
    return space + text if right else text + space


def wrap(text: str, width: int) -> list[str]:
    """Break `text` into lines at most `width` cells wide, between words where possible."""
    lines = [""]
    for word in _BREAK.split(text):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop(word, width)
    return [line for line in lines if line]


def chop(text: str, width: int) -> list[str]:
    """Break `text` into lines at most `width` cells wide, anywhere: a name has no words."""
    from rich.cells import chop_cells

    return chop_cells(text, width) if text else []


def columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Join rows to lines in which columns stand below each other; `align` has an l or r each."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        (" " * 3).join(
            pad(cell, width, right=side == "r")
            for cell, width, side in zip(row, widths, align, strict=True)
        )
        for row in rows
    ]


def fitting(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Cut columns of these widths into runs that each fit into `room`."""
    start, used = 0, 0
    for i, width in enumerate(widths):
        if used and used + width > room:
            yield slice(start, i)
            start, used = i, 0
        used += width
    yield slice(start, len(widths))


def paint(lines: Iterable[Line], *, colour: bool) -> str:
    """Join the lines to one text, with colour or without, and no blank at any line's end."""
    return "".join(f"{_painted(line, colour)}\n" for line in lines)


def _painted(line: Line, colour: bool) -> str:
    spans = list(line)
    while spans and not spans[-1][0].rstrip():
        spans.pop()
    if not spans:
        return ""
    spans[-1] = (spans[-1][0].rstrip(), spans[-1][1])
    if not colour:
        return "".join(text for text, _ in spans)
    from rich.color import ColorSystem
    from rich.style import Style

    # Not through a console: it would read NO_COLOR and its like, and the caller has decided.
    return "".join(
        Style.parse(style).render(text, color_system=ColorSystem.STANDARD) for text, style in spans
    )
