"""The scenarios there are, for a person or a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from kernelcount.model import Scenario
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import Line, cells, pad, paint, wrap

FORMS = ("table", "json")


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
            first, *rest = wrap(scenario.claim, width - names - 4)
            yield (("  ", ""), (pad(scenario.name, names), ""), ("  ", ""), (first, "dim"))
            for part in rest:
                yield ((" " * (names + 4), ""), (part, "dim"))
        yield ()
    yield (("kernelcount scenarios run NAME holds one to its budget; --all, all of them.", ""),)
