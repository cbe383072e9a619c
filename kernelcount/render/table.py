"""The screen: one sentence that answers, then what supports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kernelcount.model import Report
from kernelcount.render import listing, remedies, sheet, sweep, syncs
from kernelcount.render.answer import Statement, answer_read, answer_run, legend, notes
from kernelcount.render.explain import sections, shown
from kernelcount.render.figures import (
    LISTED,
    Figures,
    figures,
    figures_of,
    listed,
    same_rows,
    side_by_side,
)
from kernelcount.render.figures import Line as Figure
from kernelcount.render.layout import (
    NARROWEST,
    WIDEST,
    Line,
    Page,
    cells,
    columns,
    fit,
    fitting,
    paint,
    wrap,
)
from kernelcount.render.lines import numbered, replaced
from kernelcount.render.verdict import sentences
from kernelcount.render.wording import clean, setting, target_name

_LOUD = "bold yellow"
_INPUTS = 12
_TITLE = 36
_BLANK: Line = ()


def render(
    report: Report,
    *,
    width: int = 80,
    colour: bool = False,
    full: bool = False,
    explain: bool = False,
) -> str:
    """Show a report on a terminal of `width` cells, of which at most 120 are used.

    `full` lists all kernels by their complete names, in the order in which they first ran;
    `explain` lists them in that order, too, and adds what `explain.SECTIONS` tell.
    """
    page = Page(max(NARROWEST, min(width, WIDEST)), full, explain)
    if report.command == "read":
        blocks = _read(report, page)
    elif len(report.runs) > 1:
        blocks = _sweep(report, page)
    else:
        blocks = _run(report, page)
    lines = [line for block in blocks if block for line in (_BLANK, *block)]
    return paint(lines[1:], colour=colour)


def _run(report: Report, page: Page) -> Iterator[list[Line]]:
    """One target at one size: its variants beside each other."""
    entries = [e for run in report.runs for e in figures_of(run)]
    yield _target(report, entries, page)
    if entries:
        yield _statements(answer_run(entries), page)
        yield _figures(entries, page)
        yield _ran(entries, page)
        yield syncs.listing(entries, page) if page.every else []
        yield from _remedies(entries, page)
        yield from _explained(entries, page)
        yield _notes(entries, page)
        yield _legend(entries, page)
        yield _verdicts(entries, page)


def _read(report: Report, page: Page) -> Iterator[list[Line]]:
    """Files, a block each."""
    entries = [figures(o) for o in report.outcomes]
    for entry in entries:
        capture = entry.capture
        inputs = capture.target.inputs if capture and capture.target else ()
        yield _head(clean(entry.name), inputs, entry.where(report.environment), page)
        yield _statements(answer_read(entry), page)
        if capture is not None:
            yield _figures([entry], page)
            yield listing.devices(capture.devices())
            yield listing.steps(capture.steps, page)
            every = page.full or len(entry.rows) <= LISTED
            yield listing.ran("what ran" if every else "what ran, longest first", entry, page)
            yield syncs.listing([entry], page) if page.every else []
            yield from _remedies([entry], page)
            yield _notes([entry], page)
    yield _legend(entries, page)


def _sweep(report: Report, page: Page) -> Iterator[list[Line]]:
    """One target at several sizes: a table of them all."""
    runs = sweep.sized(report)
    every = [e for _, entries in runs for e in entries]
    yield _target(report, every, page)
    yield _statements(sweep.statements(report, runs), page)
    table = sweep.sheet(runs)
    yield sheet.lines(table, page) if table else []
    known: set[str] = set()
    for run, entries in runs:
        at = f"size {sweep.named([run.size])}"
        if page.every:
            yield [((at, "bold"),), *_figures(entries, page)]
            yield _ran(entries, page, at=f", {at}")
            yield syncs.listing(entries, page)
            yield from _explained(entries, page)
        yield from _remedies(entries, page, at=f", {at}", known=known)
    yield _noted(sweep.notes(runs), page)
    more = "" if page.every or not any(e.rows for e in every) else sweep.MORE
    yield _dim(" ".join(filter(None, (legend(every), more))), page)


def _target(report: Report, entries: Sequence[Figures], page: Page) -> list[Line]:
    """Head of a run. The inputs of a sweep change with its size, so they are left out."""
    target = report.target
    return _head(
        target_name(target.spec) if target else "",
        target.inputs if target and len(report.runs) == 1 else (),
        setting(report.environment, on_paper=any(e.on_paper for e in entries)),
        page,
    )


def _head(name: str, inputs: Sequence[str], where: str, page: Page) -> list[Line]:
    """Name, inputs and device on one line where they fit, else on several."""
    shown = list(inputs) if page.full else list(inputs[:_INPUTS])
    if len(inputs) > len(shown):
        shown.append(f"and {len(inputs) - len(shown)} more")
    given = clean(", ".join(shown))
    beside = f"   {given}" if given else ""
    space = page.width - cells(name + where)
    if cells(beside) + 3 <= space:
        return [((name, "bold"), (beside + " " * (space - cells(beside)), ""), (where, ""))]
    if cells(name + where) + 3 <= page.width:
        lines: list[Line] = [((name, "bold"), (" " * space, ""), (where, ""))]
    else:
        lines = [((part, "bold"),) for part in wrap(name, page.width)]
        lines.append(((fit(where, page.width), ""),))
    return [*lines, *(((f"  {line}", ""),) for line in wrap(given, page.width - 2))]


def _statements(said: Iterable[Statement], page: Page) -> list[Line]:
    return [
        ((line, _LOUD if statement.loud else "bold"),)
        for statement in said
        for line in wrap(statement.text, page.width)
    ]


def _figures(entries: Sequence[Figures], page: Page) -> list[Line]:
    """Side-by-side table; where the variants are too many for the width, several tables."""
    lines = side_by_side(entries)
    alone = len(entries) == 1
    room = page.width - 2 - max(cells(line.label) for line in lines)
    heads = ["" if alone else fit(e.title, min(room - 3, _TITLE)) for e in entries]
    upright = list(zip(heads, *(line.cells for line in lines), strict=True))
    shown: list[Line] = []
    for chosen in fitting([max(map(cells, column)) + 3 for column in upright], room):
        rows = zip(["", *(line.label for line in lines)], *upright[chosen], strict=True)
        head, *table = columns(list(rows), "l" + "r" * len(upright[chosen]))
        shown += [_BLANK] if shown else []
        shown += [] if alone else [((f"  {head}", "bold"),)]
        for cut, line in zip(table, lines, strict=True):
            shown += _remarked(cut, _part(line, chosen), page)
    return shown


def _part(line: Figure, chosen: slice) -> Figure:
    """A line with the remark on these columns; one on them all stands with the first ones."""
    if line.of_each:
        return replace(line, remark="; ".join(filter(None, line.of_each[chosen])))
    return replace(line, remark="") if line.kept and chosen.start else line


def _remarked(text: str, line: Figure, page: Page) -> list[Line]:
    """Figures, with the remark beside them where there is room for it, or below if it must be."""
    remark = f"   {line.remark}" if line.remark else ""
    if cells(text + remark) + 2 <= page.width:
        return [((f"  {text}", ""), (remark, ""))]
    below = wrap(line.remark, page.width - 4) if line.kept else []
    return [((f"  {text}", ""),), *(((f"    {part}", ""),) for part in below)]


def _ran(entries: Sequence[Figures], page: Page, *, at: str = "") -> list[Line]:
    """List what each variant ran. Eager code that ran under another name is not listed twice."""
    lines: list[Line] = []
    base = entries[0]
    numbers = numbered(listed(base.rows, full=page.every)[0])
    for entry in entries:
        again = entry is not base and entry.eager_code and same_rows(base, entry)
        if again and not page.full:
            lines.append(((f"  {entry.title}{at}", "bold"), (f"   as {clean(base.name)}", "")))
        else:
            instead = replaced(entry, base, numbers)
            lines += listing.ran(f"{entry.title}{at}", entry, page, instead)
    return lines


def _explained(entries: Sequence[Figures], page: Page) -> Iterator[list[Line]]:
    """What ``--explain`` adds, section by section."""
    for found in sections(entries) if page.explain else ():
        yield shown(found, page)


def _remedies(
    entries: Sequence[Figures], page: Page, *, at: str = "", known: set[str] | None = None
) -> Iterator[list[Line]]:
    """What was tried to make variants faster, what it gained and cost, and what comes next.

    Of a sweep, what is `known` from another size is not said again, and what is said joins it.
    """
    found = remedies.tried(entries)
    said = set() if known is None else known
    for tried in found:
        lines: list[Line] = [((f"  remedies tried on {tried.title}{at}", "bold"),)]
        if tried.rows:
            table = columns(tried.rows, "lrl")
            lines += [((fit(f"  {line}", page.width), ""),) for line in table]
        for text in (t for t in (*tried.rest, *tried.why_not) if t not in said):
            lines += [((f"  {line}", ""),) for line in wrap(text, page.width - 2)]
        yield lines
        if known is not None:
            known.update(tried.why_not)
    if found and (closing := remedies.closing(entries)) not in said:
        yield [((line, "bold"),) for line in wrap(closing, page.width)]
        if known is not None:
            known.add(closing)


def _notes(entries: Sequence[Figures], page: Page) -> list[Line]:
    return _noted(notes(entries), page)


def _noted(every: Iterable[str], page: Page) -> list[Line]:
    shown: list[Line] = []
    for note in every:
        first, *more = wrap(note, page.width - 6)
        shown.append((("note: ", "bold"), (first, "")))
        shown += [((" " * 6 + line, ""),) for line in more]
    return shown


def _verdicts(entries: Sequence[Figures], page: Page) -> list[Line]:
    return [((line, ""),) for said in sentences(entries) for line in wrap(said, page.width)]


def _legend(entries: Sequence[Figures], page: Page) -> list[Line]:
    return _dim(legend(entries), page)


def _dim(text: str, page: Page) -> list[Line]:
    return [((line, "dim"),) for line in wrap(text, page.width)]
