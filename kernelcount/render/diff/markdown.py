"""What changed, in GitHub's Markdown: for a job's summary, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from kernelcount.model import Diff, Pair
from kernelcount.render.diff import facts, said
from kernelcount.render.findings import tally
from kernelcount.render.markdown import escape, table


def render(diff: Diff, *, full: bool = False) -> str:
    """Write what changed as Markdown; `full` lists what did not, too."""
    return "\n\n".join(block for block in _blocks(diff, full) if block) + "\n"


def _blocks(diff: Diff, full: bool) -> Iterator[str]:
    files = f"**{escape(diff.before)} → {escape(diff.after)}**"
    yield " · ".join(filter(None, (files, escape(said.where(diff)))))
    for statement in said.statements(diff):
        yield f"**{escape(statement.text)}**" if statement.loud else escape(statement.text)
    yield _limits(diff)
    for pair in diff.pairs:
        if said.worth_showing(pair) or full:
            yield _figures(pair, full)
            yield _rows(pair, full)
    yield "\n".join(f"- {escape(note)}" for note in said.notes(diff))
    yield escape(said.noise(diff.pairs))


def _limits(diff: Diff) -> str:
    found = said.findings(diff).every if diff.decisions else ()
    bad = [f for f in found if f.status != "kept"]
    rows = [["", "limit", ""], *([f.status, escape(f.name), escape(f.message)] for f in bad)]
    summary = f"Limits: {tally(found)}." if found else ""
    return f"{table(rows, 'lll')}\n\n{summary}" if bad else summary


def _figures(pair: Pair, full: bool) -> str:
    lines = facts.lines(pair, full=full)
    if not lines:
        return ""
    rows = [[escape(pair.name), "before", "after", ""]]
    rows += [[escape(cell) for cell in (x.label, x.before, x.after, x.remark)] for x in lines]
    return table(rows, "lrrl")


def _rows(pair: Pair, full: bool) -> str:
    shown, rest = facts.rows(pair, full=full)
    if not shown:
        return ""
    placed = any(change.places for change in shown)
    rows = [["", "name", *(["line"] if placed else []), "before", "after"]]
    for change in shown:
        label, name = facts.named(change, full=full)
        code = f"<code>{escape(name)}</code>"
        cells = (facts.cell(change.before), facts.cell(change.after))
        named = f"{escape(label)} {code}" if label else code
        line = [escape(facts.line(change))] if placed else []
        rows.append([facts.word(change), named, *line, *map(escape, cells)])
    if rest:
        rows.append(["", escape(rest), *([""] if placed else []), "", ""])
    return table(rows, "lllrr" if placed else "llrr")
