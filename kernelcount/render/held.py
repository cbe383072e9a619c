"""Budgets that were held, for pipelines: findings, and GitHub's Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kernelcount.model import Checked, Held, Place
from kernelcount.render.check import sentence, summary
from kernelcount.render.findings import Finding, Findings
from kernelcount.render.markdown import escape, table
from kernelcount.render.wording import amount, plural, prose, setting, target_name


def findings(checked: Checked) -> Findings:
    """Every limit of every budget, each with the line of the budget and those of the code."""
    names = [_name(held) for held in checked.held]
    often = Counter((h.target, name) for h, name in zip(checked.held, names, strict=True))
    every = []
    shown: set[tuple[str, str, str, int]] = set()
    for held, name in zip(checked.held, names, strict=True):
        alone = often[held.target, name] == 1
        # Limits and the lock file of a variant have the same cause: its line is shown once.
        causes = {(held.target, held.variant, p.file, p.line): p for p in held.places}
        places = [p for cause, p in causes.items() if cause not in shown]
        shown |= causes.keys()
        every.append(
            Finding(
                held.target,
                name if alone else f"{name} ({held.file}:{held.line})",
                held.status,
                "" if held.status == "kept" else sentence(held),
                () if held.status == "kept" else held.details,
                (Place(held.file, held.line), *places),
                allowed=checked.allow_undecided and not held.is_fault,
            )
        )
    notes = "".join(f"; {note.detail}" for note in checked.notes)
    return Findings("check", tuple(every), f"{summary(checked)}{notes}")


def _name(held: Held) -> str:
    """The limit, and of what: ``compile: kernels``, ``eager: transfers at 1e8``."""
    limit = held.limit.replace("_", " ")
    at = f" at {amount(held.size)}" if held.size is not None else ""
    return f"{held.variant}: {limit}{at}" if held.variant else f"{limit}{at}"


def markdown(checked: Checked) -> str:
    """A table of what is not kept, and how many are."""
    return "\n\n".join(block for block in _blocks(checked) if block) + "\n"


def _blocks(checked: Checked) -> Iterator[str]:
    where = setting(checked.environment) if checked.environment else ""
    head = " · ".join(filter(None, (plural(checked.budgets, "budget"), where)))
    yield f"**{escape(head)}: {escape(summary(checked))}**"
    # What may be undecided is in the sum alone, as it is on paper for all that needs a GPU.
    passed = {"kept", "undecided"} if checked.allow_undecided else {"kept"}
    bad = [h for h in checked.held if h.status not in passed or h.is_fault]
    bad.sort(key=lambda h: (h.status, not h.is_fault))
    if bad:
        yield table([["", "target", "variant", "", "budget"], *_rows(bad)], "lllll")
    yield "\n".join(f"- {escape(prose(note.detail))}" for note in checked.notes)
    yield "\n".join(f"- written: {escape(text)}" for text in checked.written)


def _rows(bad: Sequence[Held]) -> Iterator[list[str]]:
    """A row for each; a detail that a row above has of the same variant is not said again."""
    told: set[tuple[str, str, str]] = set()
    for held in bad:
        details = [d for d in held.details if (held.target, held.variant, d) not in told]
        told |= {(held.target, held.variant, d) for d in details}
        said = "<br>".join(map(escape, (sentence(held), *details)))
        where = f"{held.file}:{held.line}"
        names = (target_name(held.target), held.variant)
        yield ["failed" if held.is_fault else held.status, *map(escape, names), said, escape(where)]
