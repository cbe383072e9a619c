"""What ``--explain`` adds below the figures: sections, one after the other, each a short table.

A section is a function from the entries to listings, and its line in `SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernelcount.render.figures import Figures
from kernelcount.render.layout import Line, Page, cells, columns, fit, wrap

_GAPS = 3  # cells between columns
_LEAST = 3  # cells that a column keeps, be the page as narrow as it may


@dataclass(frozen=True, slots=True)
class Listing:
    """A table under a title; the first of `rows` is its head, and `align` has an l or r a column.

    `closing`: what is to be said below it, a paragraph each. `whole`: the column that is cut last.
    """

    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    align: str = ""
    closing: tuple[str, ...] = ()
    whole: int | None = None


Section = Callable[[Sequence[Figures]], Iterable[Listing]]


def sections(entries: Sequence[Figures]) -> Iterator[Listing]:
    """All that there is to explain, section by section."""
    from kernelcount.render import breaks, fusion, origins

    every: tuple[Section, ...] = (origins.section, fusion.section, breaks.section)
    for section in every:
        yield from section(entries)


def shown(listing: Listing, page: Page) -> list[Line]:
    """A listing on a page; of columns that are too wide the middle of the cells is left out."""
    lines: list[Line] = [((f"  {fit(listing.title, page.width - 2)}", "bold"),)]
    if len(listing.rows) > 1:
        table = columns(_squeezed(listing, page.width - 2), listing.align)
        head, *body = (fit(line, page.width - 2) for line in table)
        lines += [((f"  {head}", "dim"),), *(((f"  {line}", ""),) for line in body)]
    for text in listing.closing:
        lines += [((f"  {line}", ""),) for line in wrap(text, page.width - 2)]
    return lines


def _squeezed(listing: Listing, room: int) -> list[list[str]]:
    """The cells, the widest columns first made so narrow that all fit."""
    widths = [max(map(cells, column)) for column in zip(*listing.rows, strict=True)]
    spare = room - _GAPS * (len(widths) - 1)
    while sum(widths) > spare:
        wide = {i: w for i, w in enumerate(widths) if w > _LEAST}
        if not wide:
            break
        others = {i: w for i, w in wide.items() if i != listing.whole} or wide
        widths[max(others, key=others.__getitem__)] -= 1
    return [[fit(cell, w) for cell, w in zip(row, widths, strict=True)] for row in listing.rows]
