"""GitHub's Markdown: the same answer and figures, for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kernelcount.model import Report
from kernelcount.render import remedies, sweep, syncs
from kernelcount.render.answer import Statement, answer_read, answer_run, legend, notes
from kernelcount.render.explain import sections
from kernelcount.render.figures import Figures, figures, listed, side_by_side
from kernelcount.render.layout import WIDEST, Page
from kernelcount.render.lines import key, numbered, replaced, said
from kernelcount.render.listing import figure_of, heading_of
from kernelcount.render.verdict import sentences
from kernelcount.render.wording import caption, clean, left_out, setting, target_name

# What begins markup, ends a table cell, or makes a link, an emoji (:x:) or a workflow command (::).
# An underscore inside a word is none of these, and most kernels have several.
_MARKUP = re.compile(
    r"[\\`*|~#$]|\](?=\()|:(?=[\w+-]*:|//)|(?<=:):|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
)
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def render(report: Report, *, full: bool = False, explain: bool = False) -> str:
    """Write a report as Markdown; `full` lists all kernels by their complete names.

    `explain` adds what `explain.SECTIONS` tell.
    """
    page = Page(WIDEST, full, explain)
    if report.command == "read":
        blocks = _read(report, page)
    else:
        blocks = _sweep(report, page) if len(report.runs) > 1 else _run(report, page)
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """Write `text` so that exactly it is shown: on one line, without markup, HTML or commands."""
    text = _MARKUP.sub(lambda match: "\\" + match[0], clean(text))
    return re.sub("[&<>@]", lambda match: _HTML[match[0]], text)


def _run(report: Report, page: Page) -> Iterator[str]:
    target = report.target
    runs = sweep.sized(report)
    given = ", ".join(target.inputs) if target and runs else ""
    yield _head(report, given, [e for _, entries in runs for e in entries])
    for _, entries in runs:
        yield from _block(answer_run(entries), entries, page)


def _sweep(report: Report, page: Page) -> Iterator[str]:
    """One target at several sizes: a table of them all, and with `full` each by itself."""
    runs = sweep.sized(report)
    every = [e for _, entries in runs for e in entries]
    yield _head(report, "", every)
    yield from _said(sweep.statements(report, runs))
    if (sheet := sweep.sheet(runs)) is not None:
        yield _sheet(sheet)
    for run, entries in runs if page.every else ():
        yield f"### size {sweep.named([run.size])}"
        yield from _block(answer_run(entries), entries, page)
    yield "" if page.every else "\n".join(f"- {escape(note)}" for note in sweep.notes(runs))
    if any(e.on_paper for e in every) and not page.every:
        yield escape(legend(every))


def _head(report: Report, given: str, entries: Sequence[Figures]) -> str:
    """Name, inputs and device."""
    where = setting(report.environment, on_paper=any(e.on_paper for e in entries))
    name = f"**{escape(target_name(report.target.spec))}**" if report.target else ""
    return " · ".join(part for part in (name, escape(given), escape(where)) if part)


def _read(report: Report, page: Page) -> Iterator[str]:
    for outcome in report.outcomes:
        entry = figures(outcome)
        where = escape(entry.where(report.environment))
        yield f"### {escape(entry.name)}" + (f" · {where}" if where else "")
        yield from _block(answer_read(entry), [entry], page)


def _block(
    statements: Iterable[Statement], entries: Sequence[Figures], page: Page
) -> Iterator[str]:
    """Yield what is said, the figures, what ran, and the notes."""
    yield from _said(statements)
    if any(e.capture for e in entries):
        yield _figures(entries)
    yield _ran(entries, page)
    if page.every:
        yield "\n".join(f"- {escape(text)}" for text in syncs.texts(entries))
    yield from _remedies(entries)
    yield from _explained(entries, page)
    yield "\n".join(f"- {escape(note)}" for note in notes(entries))
    yield " ".join(map(escape, sentences(entries)))
    if any(e.on_paper for e in entries):
        yield escape(legend(entries))


def _said(statements: Iterable[Statement]) -> Iterator[str]:
    for statement in statements:
        yield f"**{escape(statement.text)}**" if statement.loud else escape(statement.text)


def _sheet(sheet: sweep.Sheet) -> str:
    """The table of a sweep, with what the figures are beside the variant's name."""
    alone = len(sheet.groups[0].heads) == 1
    heads = [
        escape(group.label if alone else f"{group.label}, {head}")
        for group in sheet.groups
        for head in group.heads
    ]
    align = "r" + "".join(
        ("r" if group.figure else "l") * len(group.heads) for group in sheet.groups
    )
    measured = zip(*(column for group in sheet.groups for column in group.columns), strict=True)
    rows = [["size", *heads]]
    for size, reason in zip(sheet.sizes, sheet.reasons, strict=True):
        given = [reason, *[""] * (len(heads) - 1)] if reason else next(measured)
        rows.append([size, *map(escape, given)])
    return table(rows, align)


def _figures(entries: Sequence[Figures]) -> str:
    lines = side_by_side(entries)
    heads = [e.title for e in entries] if len(entries) > 1 else [""]
    rows = [["", *heads, ""], *([line.label, *line.cells, line.remark] for line in lines)]
    if not any(line.remark for line in lines):
        rows = [row[:-1] for row in rows]
    return table([[escape(cell) for cell in row] for row in rows], "l" + "r" * len(entries))


def _ran(entries: Sequence[Figures], page: Page) -> str:
    """List what each variant ran; a variant that is alone is not named again in each row."""
    rows = [["variant", "name", "count", heading_of(entries[0], repeated=False) or "time", "line"]]
    numbers = numbered(listed(entries[0].rows, full=page.every)[0])
    for entry in entries:
        title = escape(entry.title)
        shown, rest = listed(entry.rows, full=page.every)
        origins, instead = entry.origins, replaced(entry, entries[0], numbers)
        for row in shown:
            label, name = caption(row, full=page.full)
            code = f"<code>{escape(name)}</code>"
            named = f"{escape(label)} {code}" if label else code
            line = said(origins.get(key(row)), row.label or "")
            line += f" ({instead[key(row)]})" if key(row) in instead else ""
            figure = escape(figure_of(row, entry))
            rows.append([title, named, str(row.count), figure, escape(line.strip())])
        if rest:
            rows.append([title, escape(left_out(rest)), "", "", ""])
    if len(rows) == 1:
        return ""
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    alone = len(entries) == 1
    return table([row[1:] for row in rows] if alone else rows, "lrr" if alone else "llrr")


def _explained(entries: Sequence[Figures], page: Page) -> Iterator[str]:
    """Yield what ``--explain`` adds, section by section."""
    for found in sections(entries) if page.explain else ():
        yield f"**{escape(found.title)}**"
        if found.rows:
            yield table([[escape(cell) for cell in row] for row in found.rows], found.align)
        yield "\n".join(f"- {escape(text)}" for text in found.closing)


def _remedies(entries: Sequence[Figures]) -> Iterator[str]:
    """Yield what was tried on each variant, and what comes next."""
    for tried in remedies.tried(entries):
        rows = [(f"tried on {tried.title}", "gain", "cost"), *tried.rows]
        if tried.rows:
            yield table([[escape(cell) for cell in row] for row in rows], "lrl")
        yield "\n".join(f"- {escape(text)}" for text in (*tried.rest, *tried.why_not))
    yield escape(remedies.closing(entries))


def table(rows: Sequence[Sequence[str]], align: str) -> str:
    """Join cells that are already escaped to a table; columns beyond `align` are text."""
    head, *body = rows
    rule = ["---:" if side == "r" else "---" for side in align.ljust(len(head), "l")]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))
