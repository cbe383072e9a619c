"""The table of a sweep on a screen, with a row for each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelcount.render.layout import Line, Page, cells, columns, fit, fitting, pad, wrap
from kernelcount.render.sweep import Group, Sheet

_GAP = "   "
_HEAD = 36  # cells of a variant's name


def lines(sheet: Sheet, page: Page) -> list[Line]:
    """All sizes below each other; where the figures are too wide, several tables of them."""
    alone = len(sheet.groups[0].heads) == 1
    beside = max(map(cells, ("size", *sheet.sizes))) + 2
    room = page.width - beside
    blocks = [_block(g, alone=alone) for whole in sheet.groups for g in _cut(whole, room)]
    shown: list[Line] = []
    for chosen in fitting([cells(block[0]) + len(_GAP) for block in blocks], room):
        rows = [
            "".join(_GAP + part for part in parts) for parts in zip(*blocks[chosen], strict=True)
        ]
        shown += [()] if shown else []
        shown += _table(sheet, rows, beside, page)
    return shown


def _cut(group: Group, room: int) -> Iterator[Group]:
    """A figure in parts of some variants each, where it does not fit into `room` as a whole."""
    most = min(_HEAD, room - len(_GAP))
    heads = tuple(fit(head, most) for head in group.heads)
    widths = [
        max(map(cells, (head, *column))) + len(_GAP)
        for head, column in zip(heads, group.columns, strict=True)
    ]
    for chosen in fitting(widths, room):
        yield replace(
            group,
            label=fit(group.label, most),
            heads=heads[chosen],
            columns=group.columns[chosen],
        )


def _block(group: Group, *, alone: bool) -> list[str]:
    """The lines of one figure, all as wide; a variant that is `alone` is not named."""
    heads = () if alone else (group.heads,)
    rows = columns([*heads, *zip(*group.columns, strict=True)], _align(group) * len(group.heads))
    width = max(cells(group.label), cells(rows[0]))
    right = alone and group.figure
    return [pad(line, width, right=right) for line in (group.label, *rows)]


def _align(group: Group) -> str:
    return "r" if group.figure else "l"


def _table(sheet: Sheet, rows: Sequence[str], beside: int, page: Page) -> list[Line]:
    """Sizes and their rows below what stands above them, reasons in the place of figures."""
    above = len(rows) - sheet.reasons.count("")
    shown: list[Line] = [
        ((pad("size" if i == above - 1 else "", beside, right=True) + row, "bold"),)
        for i, row in enumerate(rows[:above])
    ]
    measured = iter(rows[above:])
    for size, reason in zip(sheet.sizes, sheet.reasons, strict=True):
        start = pad(size, beside, right=True) + _GAP
        if not reason:
            shown.append(((start[: -len(_GAP)] + next(measured), ""),))
            continue
        first, *more = wrap(reason, page.width - cells(start))
        shown.append(((start + first, ""),))
        shown += [((" " * cells(start) + part, ""),) for part in more]
    return shown
