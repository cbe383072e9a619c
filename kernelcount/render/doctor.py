"""What can be measured on a machine, for a person or a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from kernelcount.conclusions.rates import FIGURES, PRECISIONS, figures
from kernelcount.model import Check, Diagnosis, Environment, Rates
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import Line, cells, columns, pad, paint, wrap
from kernelcount.render.wording import clean, duration, plural, rate, setting

FORMS = ("table", "json")
UNKNOWN = "unknown"


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
        "rates": _rates(diagnosis),
    }
    if diagnosis.recorded:
        document["recorded"] = diagnosis.recorded
    if diagnosis.code:
        document["error"] = {"code": diagnosis.code, "message": diagnosis.said}
    return document


def _rates(diagnosis: Diagnosis) -> dict[str, Any]:
    """Every figure, null where it is not known, and why: none is ever zero."""
    found = diagnosis.rates
    if found is None and not diagnosis.unrated:
        return {}  # nobody came to it
    values = dict.fromkeys(FIGURES) if found is None else figures(found)
    reasons = dict(found.missing) if found else dict.fromkeys(FIGURES, diagnosis.unrated)
    shown = {name: None if value is None else round(value) for name, value in values.items()}
    return {
        "device": found.device if found else None,
        "torch": found.torch if found else None,
        "multiprocessors": found.multiprocessors if found else None,
        **{name: value for name, value in shown.items() if "." not in name},
        "matmul": {precision: shown[f"matmul.{precision}"] for precision in PRECISIONS},
        "unmeasured": reasons,
        "notes": [asdict(note) for note in found.notes] if found else [],
        "measured_at": found.measured_at if found else None,
        "kept": diagnosis.kept or None,
    }


def _lines(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    names = max((cells(check.name) for check in diagnosis.checks), default=0)
    for check in diagnosis.checks:
        yield from _check(check, names, width)
    if diagnosis.rates is not None:
        yield from _block(diagnosis.rates, diagnosis.kept, width)
    elif diagnosis.unrated:
        yield ()
        for part in wrap(clean(f"no rates were measured: {diagnosis.unrated}"), width):
            yield ((part, ""),)
    for part in wrap(clean(diagnosis.recorded), width):
        yield ((part, ""),)


_TITLES = {
    "copy": "copy, DRAM",
    "copy_l2": "copy, L2 cache",
    **{f"matmul.{precision}": f"matmul, {precision}" for precision in PRECISIONS},
    "launch_ns": "kernel in a CUDA graph",
    "eager_ns": "eager op, on the CPU",
    "module_ns": "module call, on the CPU",
    "compiled_ns": "compiled call, on the CPU",
}


def _block(rates: Rates, kept: str, width: int) -> Iterator[Line]:
    """What the GPU reaches, a figure a line, or why it is not known."""
    where = setting(Environment(rates.device, torch=rates.torch))
    head = f"{where} · {plural(rates.multiprocessors, 'multiprocessor')}"
    yield ()
    for part in wrap(clean(f"measured on {head}, {rates.measured_at}"), width):
        yield ((part, "bold"),)
    reasons = dict(rates.missing)
    values = [(name, _figure(name, value)) for name, value in figures(rates).items()]
    margin = "  "
    for (name, value), row in zip(
        values, columns([(_TITLES[n], v) for n, v in values], "lr"), strict=True
    ):
        yield ((margin + row, ""),)
        if value == UNKNOWN:
            for part in wrap(clean(reasons.get(name, "")), width - 2 * len(margin)):
                yield ((margin * 2 + part, "dim"),)
    for text in (*(note.detail for note in rates.notes), kept):
        for part in wrap(clean(text), width):
            yield ((part, ""),)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if name.endswith("_ns"):
        return duration(value)
    return rate(value, "B" if name.startswith("copy") else "FLOP")


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
