"""A line for each variant, for a spreadsheet. An unknown figure is an empty cell, never a zero."""

from __future__ import annotations

import csv
from io import StringIO

from kernelcount.model import Report
from kernelcount.render.figures import Figures, figures_of
from kernelcount.render.wording import clean

COLUMNS = (
    "command",
    "name",
    "size",
    "status",
    "reason",
    "kernels",
    "copies",
    "fills",
    "launches",
    "graph_launches",
    "kernel_time_ns",
    "busy_ns",
    "complete",
    "stable",
    "aten",
    "generated",
    "basis",
    "at_least",
    "transfers",
    "paper_kernels",
    "notes",
    "call_time_ns",
    "speedup",
    "speed_verdict",
    "result_verdict",
    "max_abs",
    "peak_memory",
)

_FORMULA = ("=", "+", "-", "@")


def render(report: Report) -> str:
    """Every outcome at every size, below a line of column names."""
    page = StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in report.runs:
        for entry in figures_of(run):
            writer.writerow(_line(report.command, entry, run.size))
    return page.getvalue()


def _line(command: str, f: Figures, size: int | None) -> list[str]:
    known = {
        "command": command,
        "name": as_text(f.name),
        "size": size,
        "status": "measured" if f.reason is None else "unmeasured",
        "basis": f.basis,
        "at_least": _truth(f.paper.at_least if f.paper else None),
        "generated": f.paper.generated if f.paper else f.generated,
        "transfers": f.modelled.transfers if f.modelled and not f.modelled.moves_more else None,
        "paper_kernels": f.beside.kernels if f.beside else None,
        "speedup": f.speed.ratio if f.speed else None,
        "speed_verdict": f.speed.verdict if f.speed else None,
        "result_verdict": f.numerics.verdict if f.numerics else None,
        "max_abs": f.numerics.max_abs if f.numerics else None,
        "reason": None if f.reason is None else as_text(" ".join(f.reason.split())),
        "complete": _truth(f.capture.complete if f.capture else None),
        "stable": _truth(f.capture.stable if f.capture else None),
        "notes": as_text(" ".join(dict.fromkeys(n.code for n in f.notes))),
    }
    cells = (known[c] if c in known else getattr(f, c) for c in COLUMNS)
    return ["" if cell is None else str(cell) for cell in cells]


def _truth(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def as_text(value: str) -> str:
    """Make a cell that a spreadsheet shows as it is instead of computing it."""
    cell = clean(value)
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) else cell
