"""The scenarios there are, and what became of those that were run, for a person or a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Checked, Held, Scenario
from kernelcount.render import check
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import Line, cells, pad, paint, wrap
from kernelcount.render.wording import clean, plural, setting

FORMS = ("table", "json")
_INDENT = "    "


def render(
    scenarios: Sequence[Scenario], *, form: str, width: int = 80, colour: bool = False
) -> str:
    """List the scenarios by theme in one of `FORMS`, ended by a newline."""
    if form == "json":
        listed = [asdict(scenario) for scenario in scenarios]
        return text_of({"schema": SCHEMA, "command": "scenarios", "scenarios": listed})
    return paint(_lines(scenarios, width), colour=colour)


def _lines(scenarios: Sequence[Scenario], width: int) -> Iterator[Line]:
    names = max((cells(scenario.name) for scenario in scenarios), default=0)
    for theme, members in groupby(scenarios, key=lambda scenario: scenario.theme):
        yield ((theme, "bold"),)
        for scenario in members:
            style = "bold red" if scenario.problem else "dim"
            first, *rest = wrap(clean(scenario.claim), width - names - 4)
            yield (("  ", ""), (pad(scenario.name, names), ""), ("  ", ""), (first, style))
            for part in rest:
                yield ((" " * (names + 4), ""), (part, style))
        yield ()
    yield (("kernelcount scenarios run NAME holds one to its budget; --all, all of them.", ""),)


# ── those that were run ──────────────────────────────────────────────────────────────────────────


def part(
    scenario: Scenario, checked: Checked, *, width: int = 80, colour: bool = False, full: bool
) -> str:
    """What became of one: its limits that are not kept, with the reasons. `full`: the kept too."""
    lines: list[Line] = [((scenario.name, _style(checked)), (f"   {_counts(checked)}", ""))]
    lines += [((f"  {line}", "dim"),) for line in wrap(clean(scenario.claim), width - 2)]
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
    failed = sum(held.is_fault for held in checked.held)
    why = ""
    if checked.exit_code == UsageError.code and failed:
        why = f"{failed} failed: exit code {checked.exit_code}; a function or a budget is at fault"
    elif checked.exit_code == NotMeasuredError.code:
        code = f"exit code {checked.exit_code}; --allow-undecided makes it 0"
        why = f"{checked.count('undecided')} skipped: {code}"
    lines += [((line, ""),) for line in wrap(why, width)] if why else []
    return paint(lines, colour=colour)


def results(scenarios: Sequence[Scenario], checked: Checked) -> str:
    """What became of all, as the document of ``check`` with the scenarios that they belong to."""
    ran = [asdict(scenario) for scenario in scenarios]
    return text_of({**check.document(checked), "command": "scenarios", "scenarios": ran})


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
    return "; ".join(f"{limit} of {' and '.join(who)}" for limit, who in variants.items())


def _told(word: str, texts: Sequence[str], width: int) -> Iterator[Line]:
    """A word, and beside it the texts, each on lines of its own."""
    room = width - len(_INDENT) - 9
    lines = [line for text in texts for line in wrap(text, room)]
    for i, line in enumerate(lines):
        yield ((_INDENT, ""), (pad("" if i else word, 7), _STYLES[word]), (f"  {line}", ""))
