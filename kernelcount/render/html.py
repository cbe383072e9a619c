"""HTML for a notebook: the same answer and figures, without a style sheet or a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from kernelcount.model import Report
from kernelcount.render import remedies, sweep
from kernelcount.render.answer import Statement, answer_read, answer_run, legend, notes
from kernelcount.render.figures import Figures, figures, listed, side_by_side
from kernelcount.render.lines import key, number_of, numbered, replaced, said
from kernelcount.render.listing import figure_of, heading_of
from kernelcount.render.verdict import sentences
from kernelcount.render.wording import caption, clean, left_out, setting, target_name

_RIGHT = ' style="text-align: right"'
_NAME = 2  # the column of a list of kernels that holds their names
_LEFT = ' style="text-align: left"'


def render(report: Report) -> str:
    """Show a report of one size, or of files, as an HTML fragment."""
    blocks = _read(report) if report.command == "read" else _run(report)
    return "<div>\n" + "\n".join(block for block in blocks if block) + "\n</div>\n"


def text(value: str) -> str:
    """Write `value` so that exactly it is shown."""
    return escape(clean(value))


def _run(report: Report) -> Iterator[str]:
    runs = sweep.sized(report)
    every = [e for _, entries in runs for e in entries]
    target = report.target
    where = text(setting(report.environment, on_paper=any(e.on_paper for e in every)))
    name = f"<b>{text(target_name(target.spec))}</b>" if target else ""
    given = text(", ".join(target.inputs)) if target else ""
    yield _paragraph(" · ".join(part for part in (name, given, where) if part))
    for _, entries in runs:
        yield from _block(answer_run(entries), entries)


def _read(report: Report) -> Iterator[str]:
    for outcome in report.outcomes:
        entry = figures(outcome)
        where = text(entry.where(report.environment))
        yield _paragraph(f"<b>{text(entry.name)}</b>" + (f" · {where}" if where else ""))
        yield from _block(answer_read(entry), [entry])


def _block(statements: Iterable[Statement], entries: Sequence[Figures]) -> Iterator[str]:
    for statement in statements:
        shown = text(statement.text)
        yield _paragraph(f"<strong>{shown}</strong>" if statement.loud else shown)
    if any(e.capture for e in entries):
        yield _figures(entries)
    yield _ran(entries)
    for tried in remedies.tried(entries):
        rows = [[f"tried on {tried.title}", "gain", "cost"], *map(list, tried.rows)]
        yield _table(rows, "lrl") if tried.rows else ""
        yield _list(tried.rest)
    yield _paragraph(text(remedies.closing(entries)))
    yield _list(notes(entries))
    yield _paragraph(" ".join(map(text, sentences(entries))))
    yield _paragraph(f"<small>{text(legend(entries))}</small>")


def _figures(entries: Sequence[Figures]) -> str:
    lines = side_by_side(entries)
    heads = [e.title for e in entries] if len(entries) > 1 else [""]
    rows = [["", *heads, ""], *([line.label, *line.cells, line.remark] for line in lines)]
    return _table(rows, "l" + "r" * len(entries) + "l")


def _ran(entries: Sequence[Figures]) -> str:
    """List what each variant ran; the whole name is told to whoever points at it."""
    rows = [["variant", "", "name", "count", heading_of(entries[0], repeated=False) or "time"]]
    rows[0].append("line")
    whole = [""]
    numbers = numbered(listed(entries[0].rows, full=False)[0])
    for entry in entries:
        shown, rest = listed(entry.rows, full=False)
        origins, instead = entry.origins, replaced(entry, entries[0], numbers)
        own = numbered(shown)
        for row in shown:
            label, name = caption(row)
            named = f"{label}  {name}" if label else name
            line = said(origins.get(key(row)), row.label or "")
            line += f" ({instead[key(row)]})" if key(row) in instead else ""
            counted = [str(row.count), figure_of(row, entry), line.strip()]
            rows.append([entry.title, number_of(row, own), named, *counted])
            whole.append(row.name)
        if rest:
            rows.append([entry.title, "", left_out(rest), "", "", ""])
            whole.append("")
    if len(rows) == 1:
        return ""
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return _table(rows, "lrlrrl"[: len(rows[0])], whole)


def _table(rows: Sequence[Sequence[str]], align: str, titles: Sequence[str] = ()) -> str:
    """Rows as a table, the first as its head. `titles` stand behind the names."""
    shown = []
    for i, row in enumerate(rows):
        tag = "td" if i else "th"
        cells = []
        for j, (cell, side) in enumerate(zip(row, align, strict=True)):
            title = f' title="{text(titles[i])}"' if titles and j == _NAME and titles[i] else ""
            cells.append(f"<{tag}{_RIGHT if side == 'r' else _LEFT}{title}>{text(cell)}</{tag}>")
        shown.append(f"<tr>{''.join(cells)}</tr>")
    head, *body = shown
    return f"<table>\n<thead>{head}</thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table>"


def _paragraph(html: str) -> str:
    return f"<p>{html}</p>" if html and html != "<small></small>" else ""


def _list(items: Sequence[str]) -> str:
    if not items:
        return ""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"
