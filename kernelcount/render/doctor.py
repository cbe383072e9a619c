"""What can be measured on a machine, for a person or a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from kernelcount.model import Check, Diagnosis
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import Line, cells, pad, paint, wrap
from kernelcount.render.wording import clean

FORMS = ("table", "json")


def render(diagnosis: Diagnosis, *, form: str, width: int = 80, colour: bool = False) -> str:
    """Turn what was found into text in one of `FORMS`, ended by a newline."""
    if form == "json":
        return text_of(_document(diagnosis))
    return paint(_lines(diagnosis, width), colour=colour)


def _document(diagnosis: Diagnosis) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "command": "doctor",
        "checks": [{**asdict(c), "remedy": c.remedy or None} for c in diagnosis.checks],
        "rates": {},
    }
    if diagnosis.recorded:
        document["recorded"] = diagnosis.recorded
    if diagnosis.code:
        document["error"] = {"code": diagnosis.code, "message": diagnosis.said}
    return document


def _lines(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    names = max((cells(check.name) for check in diagnosis.checks), default=0)
    for check in diagnosis.checks:
        yield from _check(check, names, width)
    for part in wrap(clean(diagnosis.recorded), width):
        yield ((part, ""),)


def _check(check: Check, names: int, width: int) -> Iterator[Line]:
    """A check: its name, whether it is there, what was found, and below it the way out."""
    verdict, style = ("yes", "green") if check.ok else ("no", "yellow")
    start = f"{pad(check.name, names)}  "
    room = width - cells(start) - 5
    first, *rest = wrap(clean(check.detail), room) or [""]
    yield ((start, "bold"), (pad(verdict, 5), style), (first, ""))
    margin = " " * (cells(start) + 5)
    for part in rest:
        yield ((margin + part, ""),)
    for part in wrap(clean(check.remedy), room):
        yield ((margin + part, "dim"),)
