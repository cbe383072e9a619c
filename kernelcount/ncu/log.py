"""What `ncu` writes to its log: its own lines, which begin with ``==``, and a table as CSV.

The table has a line for each metric of each kernel, with the columns that the Nsight Compute CLI
documentation names. Whatever else stands between is passed over.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_HEADER = '"ID",'
_ROW = '"'
_ERROR = "==ERROR=="

# As in: ==PROF== Profiling "kernel" - 0: 0%....50%....100% - 3 passes
_PASSES = re.compile(r"^==PROF== Profiling .* - (\d+) pass(?:es)?$")

_WHOLE = re.compile(r"[-+]?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?(e[-+]?\d+)?", re.IGNORECASE)
"""A number, with or without thousands separators. Everything else, as in "n/a", is none."""

_UNITS = {
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6,
    "second": 1e9, "s": 1e9, "%": 0.01,
}  # fmt: skip
"""Factors to bytes, nanoseconds and shares. Other units are counts, which stay as they are."""


@dataclass(frozen=True, slots=True)
class Profiled:
    """One kernel, by its name without arguments; `grid` and `block` in blocks and threads.

    `metrics` in bytes, nanoseconds, shares from 0 to 1, or counts; None: ncu has no value.
    """

    name: str
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """What a log says: the kernels in the order in which they were launched.

    `passes`: how often a kernel was run at the most; None: it does not say. `errors`: ncu's own.
    """

    kernels: tuple[Profiled, ...] = ()
    passes: int | None = None
    errors: tuple[str, ...] = ()


def parse(text: str) -> Log:
    """Read a log, be it cut short: what is whole counts."""
    lines = text.splitlines()
    passes = [int(match[1]) for line in lines if (match := _PASSES.match(line.rstrip()))]
    errors = [line.removeprefix(_ERROR).strip() for line in lines if line.startswith(_ERROR)]
    return Log(tuple(_kernels(lines)), max(passes, default=None), tuple(errors))


def _kernels(lines: Iterable[str]) -> list[Profiled]:
    """The rows of one process and id are those of one kernel."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in _rows(lines):
        key = row.get("Process ID", ""), row["ID"]
        found.setdefault(key, []).append(row)
    return [_profiled(rows) for rows in found.values()]


def _rows(lines: Iterable[str]) -> Iterable[dict[str, str]]:
    columns: list[str] | None = None
    for line in lines:
        # A row that does not end with a quote, or ends within quotes, was cut short.
        if not (line.startswith(_ROW) and line.endswith(_ROW)) or line.count(_ROW) % 2:
            continue
        cells = next(csv.reader([line]))
        if line.startswith(_HEADER):
            columns = cells
        elif columns is not None and len(cells) >= len(columns):
            yield dict(zip(columns, cells, strict=False))


def _profiled(rows: list[dict[str, str]]) -> Profiled:
    first = rows[0]
    metrics = {
        row["Metric Name"]: value(row.get("Metric Value", ""), row.get("Metric Unit", ""))
        for row in rows
        if row.get("Metric Name")
    }
    grid, block = _triple(first.get("Grid Size", "")), _triple(first.get("Block Size", ""))
    return Profiled(first.get("Kernel Name", ""), grid, block, metrics)


def value(text: str, unit: str) -> float | None:
    """A metric's value in our units; None for "n/a", "nan" and what else is no number."""
    number = text.strip()
    if not _WHOLE.fullmatch(number):
        return None
    return float(number.replace(",", "")) * _UNITS.get(unit.strip(), 1.0)


def _triple(text: str) -> tuple[int, ...] | None:
    """Three numbers, as in "(977, 1, 1)"."""
    numbers = tuple(map(int, re.findall(r"\d+", text)))
    return numbers if len(numbers) == 3 else None  # noqa: PLR2004  x, y and z
