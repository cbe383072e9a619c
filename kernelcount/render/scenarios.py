"""The scenarios there are, and what became of those that were run, for a person or a program."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from io import StringIO
from itertools import groupby
from pathlib import Path

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Checked, Held, Scenario
from kernelcount.render import check
from kernelcount.render.csv import as_text
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import Line, cells, pad, paint, wrap
from kernelcount.render.markdown import escape, table
from kernelcount.render.wording import clean, plural, setting

FORMS = ("table", "json", "markdown", "csv")
COLUMNS = ("theme", "name", "claim", "function", "budget", "problem", "replaces")
_INDENT = "    "


def render(
    scenarios: Sequence[Scenario],
    folder: Path,
    *,
    form: str,
    width: int = 80,
    colour: bool = False,
) -> str:
    """List the scenarios by theme in one of `FORMS`, ended by a newline.

    `folder` is where those are that come with the tool.
    """
    if form == "json":
        listed = [asdict(scenario) for scenario in scenarios]
        document = {"schema": SCHEMA, "command": "scenarios", "folder": str(folder)}
        return text_of({**document, "scenarios": listed})
    if form == "markdown":
        return "\n\n".join(_blocks(scenarios)) + "\n"
    if form == "csv":
        page = StringIO()
        writer = csv.writer(page, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([as_text(asdict(s)[name]) for name in COLUMNS] for s in scenarios)
        return page.getvalue()
    return paint(_lines(scenarios, folder, width), colour=colour)


def _blocks(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Each theme and a table of its scenarios, as Markdown."""
    for theme, members in groupby(scenarios, key=lambda scenario: scenario.theme):
        yield f"### {escape(theme)}"
        yield table([["scenario", "claim"], *([escape(s.name), _listed(s)] for s in members)], "ll")


def _listed(scenario: Scenario) -> str:
    """What the list says of it: what is wrong with it, or else its claim."""
    return escape(scenario.problem) if scenario.problem else _claim(scenario)


def _claim(scenario: Scenario) -> str:
    """The claim as Markdown, and what it replaces."""
    return escape(" ".join(filter(None, (scenario.claim, _replacing(scenario)))))


def _replacing(scenario: Scenario) -> str:
    """A note on one of the user's that has the name of another."""
    return f"(in the place of {clean(scenario.replaces)})" if scenario.replaces else ""


def _lines(scenarios: Sequence[Scenario], folder: Path, width: int) -> Iterator[Line]:
    names = max((cells(scenario.name) for scenario in scenarios), default=0)
    for theme, members in groupby(scenarios, key=lambda scenario: scenario.theme):
        yield ((theme, "bold"),)
        for scenario in members:
            style = "bold red" if scenario.problem else "dim"
            room = width - names - 4
            first, *rest = wrap(clean(scenario.problem or scenario.claim), room)
            rest += wrap(_replacing(scenario), room) if scenario.replaces else []
            yield (("  ", ""), (pad(scenario.name, names), ""), ("  ", ""), (first, style))
            for part in rest:
                yield ((" " * (names + 4), ""), (part, style))
        yield ()
    yield (("kernelcount scenarios run NAME holds one to its budget; --all, all of them.", ""),)
    for line in wrap(f"Those that come with kernelcount are in {clean(str(folder))}", width):
        yield ((line, ""),)


# ── those that were run ──────────────────────────────────────────────────────────────────────────


def part(
    scenario: Scenario, checked: Checked, *, width: int = 80, colour: bool = False, full: bool
) -> str:
    """What became of one: its limits that are not kept, with the reasons. `full`: the kept too."""
    lines: list[Line] = [((scenario.name, _style(checked)), (f"   {_counts(checked)}", ""))]
    for text in filter(None, (clean(scenario.claim), _replacing(scenario))):
        lines += [((f"  {line}", "dim"),) for line in wrap(text, width - 2)]
    for held in checked.held:
        if held.status == "broken" or (held.status == "kept" and full):
            of = _which(held, several=checked.budgets > 1)
            said = f"{of}: {check.sentence(held)}".removeprefix(": ")
            if held.status == "broken":
                said = f"{said}   {clean(held.file)}:{held.line}"
            lines += _told(held.status, [said, *map(clean, held.details)], width)
    for (word, why), limits in _by_reason(checked.held).items():
        lines += _told(word, [f"{_named(limits)}: {clean(why)}"], width)
    return paint([*lines, ()], colour=colour)


def foot(scenarios: int, checked: Checked, *, width: int = 80, colour: bool = False) -> str:
    """The sum of all that were run, and where; why that is no success, where all else is kept."""
    where = setting(checked.environment) if checked.environment else ""
    said = " · ".join(filter(None, (plural(scenarios, "scenario"), _counts(checked), where)))
    lines: list[Line] = [((line, _style(checked)),) for line in wrap(said, width)]
    why, at_fault = "", "a function or a budget is at fault"
    if checked.failed and (broken := checked.count("broken")):
        code = f"exit code {checked.exit_code}"
        why = f"{broken} broken: {code}; {checked.failed} failed: {at_fault}"
    elif checked.failed:
        why = f"{checked.failed} failed: exit code {checked.exit_code}; {at_fault}"
    elif checked.exit_code == NotMeasuredError.code:
        code = f"exit code {checked.exit_code}; --allow-undecided makes it 0"
        why = f"{checked.count('undecided')} skipped: {code}"
    lines += [((line, ""),) for line in wrap(why, width)] if why else []
    return paint(lines, colour=colour)


def results(scenarios: Sequence[Scenario], checked: Checked, form: str) -> str:
    """What became of all, as ``check`` writes it, with the scenarios that the limits belong to.

    `form` is any of `FORMS` but a table. In CSV it is the limits alone, each with its file.
    """
    if form == "csv":
        return check.render(checked, form=form)
    if form == "json":
        ran = [asdict(scenario) for scenario in scenarios]
        return text_of({**check.document(checked), "command": "scenarios", "scenarios": ran})
    rows = [["scenario", "limits", "claim"]]
    for one in scenarios:
        of_it = tuple(held for held in checked.held if held.file == one.budget)
        rows.append([escape(one.name), _counts(replace(checked, held=of_it)), _claim(one)])
    return f"{table(rows, 'lll')}\n\n{check.render(checked, form=form)}"


def _which(held: Held, *, several: bool) -> str:
    """The variant, with the budget that it is of where there are several."""
    target = held.target.rpartition(":")[2]
    size = "" if held.size is None else f" at {held.size:,}"
    return clean(f"{target}{size}, {held.variant}" if several else held.variant)


_STYLES = {"kept": "green", "broken": "bold red", "failed": "bold red", "skipped": "yellow"}


def _word(held: Held) -> str:
    """What became of a limit: one of `_STYLES`. It failed where the user's code is at fault."""
    if held.status == "undecided":
        return "failed" if held.is_fault else "skipped"
    return held.status


def _style(checked: Checked) -> str:
    words = {_word(held) for held in checked.held}
    return "bold red" if words & {"broken", "failed"} else "bold"


def _counts(checked: Checked) -> str:
    """How many limits are kept, broken, failed and skipped."""
    counts = Counter(map(_word, checked.held))
    return ", ".join(f"{counts[w]} {w}" for w in _STYLES if counts[w] or w == "kept")


def _by_reason(held: Sequence[Held]) -> dict[tuple[str, str], list[Held]]:
    """What could not be decided, by whether it failed or was skipped, and why."""
    reasons: dict[tuple[str, str], list[Held]] = {}
    for one in held:
        if one.status == "undecided":
            reasons.setdefault((_word(one), one.why), []).append(one)
    return reasons


def _named(held: Sequence[Held]) -> str:
    """These limits: ``speedup of compile and eager; syncs of eager``."""
    variants: dict[str, list[str]] = {}
    for one in held:
        of_limit = variants.setdefault(clean(one.limit.replace("_", " ")), [])
        of_limit += [clean(one.variant)] if one.variant not in of_limit else []
    return "; ".join(
        f"{limit} of {' and '.join(who)}" if any(who) else limit for limit, who in variants.items()
    )


def _told(word: str, texts: Sequence[str], width: int) -> Iterator[Line]:
    """A word, and beside it the texts, each on lines of its own."""
    room = width - len(_INDENT) - 9
    lines = [line for text in texts for line in wrap(text, room)]
    for i, line in enumerate(lines):
        yield ((_INDENT, ""), (pad("" if i else word, 7), _STYLES[word]), (f"  {line}", ""))
