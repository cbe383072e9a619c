"""What changed, on a screen: a sentence for each variant, then the figures and rows behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelcount.model import Change, Diff, Pair
from kernelcount.render.diff import facts, said
from kernelcount.render.findings import tally
from kernelcount.render.layout import (
    NARROWEST,
    WIDEST,
    Line,
    Page,
    cells,
    chop,
    columns,
    fit,
    pad,
    paint,
    wrap,
)
from kernelcount.render.wording import clean

_STYLES = {"broken": "bold red", "undecided": "bold yellow", "kept": ""}
_WORD = 9  # cells of what happened to a row, or became of a limit
_TITLE = 36
_BLANK: Line = ()


def render(diff: Diff, *, width: int = 80, colour: bool = False, full: bool = False) -> str:
    """Show what changed on a terminal of `width` cells, of which at most 120 are used."""
    page = Page(max(NARROWEST, min(width, WIDEST)), full)
    lines = [line for block in _blocks(diff, page) if block for line in (_BLANK, *block)]
    return paint(lines[1:], colour=colour)


def _blocks(diff: Diff, page: Page) -> Iterator[list[Line]]:
    yield _head(diff, page)
    yield [
        ((line, "bold yellow" if statement.loud else "bold"),)
        for statement in said.statements(diff)
        for line in wrap(statement.text, page.width)
    ]
    yield _limits(diff, page)
    for pair in diff.pairs:
        if said.worth_showing(pair) or page.full:
            yield [*_figures(pair, page), *_rows(pair, page)]
    notes = [f"note: {note}" for note in said.notes(diff)]
    yield _wrapped(notes, page, "", indent=6)
    yield _wrapped([said.noise(diff.pairs)], page, "dim")


def _head(diff: Diff, page: Page) -> list[Line]:
    """Both files, and where they were recorded: beside them where there is room."""
    files, where = f"{clean(diff.before)} → {clean(diff.after)}", said.where(diff)
    space = page.width - cells(files) - cells(where)
    if where and space >= 3:  # noqa: PLR2004  as between columns
        return [((files, "bold"), (" " * space + where, ""))]
    lines = _wrapped([files], page, "bold")
    return [*lines, *([((fit(where, page.width), ""),)] if where else [])]


def _wrapped(texts: Iterable[str], page: Page, style: str, *, indent: int = 0) -> list[Line]:
    shown: list[Line] = []
    for text in texts:
        first, *_ = wrap(text, page.width) or [""]
        more = wrap(text[len(first) :].strip(), page.width - indent)
        shown += [((first, style),), *(((" " * indent + line, style),) for line in more)]
    return shown if any(line[0][0] for line in shown) else []


def _limits(diff: Diff, page: Page) -> list[Line]:
    """What is broken or undecided, and how many there are of each."""
    if not diff.decisions:
        return []
    every = said.findings(diff).every
    lines: list[Line] = []
    for finding in every:
        if finding.status == "kept":
            continue
        start = f"  {pad(finding.status, _WORD)}  "
        variant = finding.name.rpartition(": --max-")[0]
        texts = wrap(f"{clean(variant)}: {clean(finding.message)}", page.width - len(start))
        lines.append(((start, _STYLES[finding.status]), (texts[0], "")))
        lines += [((" " * len(start) + text, ""),) for text in texts[1:]]
    return [*lines, ((f"limits: {tally(every)}", ""),)]


def _figures(pair: Pair, page: Page) -> list[Line]:
    lines = facts.lines(pair, full=page.full)
    if not lines:
        return []
    cut = [[x.label, x.before, x.after] for x in lines]
    head, *table = columns([[fit(clean(pair.name), _TITLE), "before", "after"], *cut], "lrr")
    room = page.width - 2
    shown: list[Line] = [((f"  {head}", "bold"),)]
    for text, line in zip(table, lines, strict=True):
        beside = f"   {line.remark}" if line.remark else ""
        shown.append(((f"  {text}", ""), (beside if cells(text + beside) <= room else "", "")))
    return shown


def _rows(pair: Pair, page: Page) -> list[Line]:
    """What happened to each row, with how often it ran before and after."""
    shown, rest = facts.rows(pair, full=page.full)
    if not shown:
        return []
    both = [[facts.cell(c.before), facts.cell(c.after)] for c in shown]
    head, *tails = columns([["before", "after"], *both], "rr")
    room = page.width - 2 - _WORD - cells(head) - 3
    top = "  " + pad("", page.width - 2 - cells(head)) + head
    lines: list[Line] = [((top, "bold"),)]
    for change, tail in zip(shown, tails, strict=True):
        lines += _row(change, tail, room, page)
    return [*lines, *([((fit(f"  {rest}", page.width), "dim"),)] if rest else [])]


def _row(change: Change, tail: str, room: int, page: Page) -> Iterator[Line]:
    label, name = facts.named(change, full=page.full)
    start = "  " + pad(facts.word(change), _WORD)
    text = f"{label}  {name}" if label else name
    if line := facts.line(change):
        room -= cells(line) + 2
        tail = f"  {line}   {tail}"
    else:
        tail = f"   {tail}"
    if page.full and cells(text) > room:
        yield ((start, ""), (pad(label or change.row.activity, room), ""), (tail, ""))
        for part in chop(name, page.width - len(start)):
            yield ((" " * len(start) + part, "dim"),)
    else:
        yield ((start, ""), (pad(text, room), ""), (tail, ""))
