"""A file -> the variants that it holds, ready to be held against those of another.

A saved capture has several, a trace is one, and a lock file has those of a whole project.
"""

from __future__ import annotations

from array import array
from pathlib import Path

from kernelcount.budgets import lockfile
from kernelcount.budgets.lockfile import Entry
from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import (
    NO_TIME,
    Activity,
    Capture,
    Environment,
    Lane,
    Outcome,
    Records,
    Side,
    Target,
    Work,
)
from kernelcount.reading import read_file
from kernelcount.traces.source import Progress, Source

_MOST = 1 << 24  # records of a call: a trace of so many is some 10 GB
_NO_LIBRARIES = ("gpu", "torch", "triton", "basis")  # of a setup
_LIST = (b"- ", b"#", b"---", b"[]")  # how a list in YAML begins, and no trace or capture does


def read_sides(
    path: Path, region: str | None = None, progress: Progress | None = None
) -> list[Side]:
    """The variants in one file; `region` keeps of a trace what was launched in that annotation.

    Raises KernelcountError where nothing in it can be read.
    """
    # A pipe can be read but once, and no lock file comes through one.
    if path.is_file() and Source(path).head().lstrip().startswith(_LIST):
        if region is not None:
            raise UsageError(f"{path}: a lock file holds no annotations, so no --region {region!r}")
        return _locked(path)
    return [_side(outcome, path) for outcome in read_file(path, region, progress)]


def _side(outcome: Outcome, path: Path) -> Side:
    if outcome.name == str(path):
        return Side(outcome.name, "trace", outcome)
    return Side(outcome.name.removeprefix(f"{path}:"), "captures", outcome)


def _locked(path: Path) -> list[Side]:
    entries = lockfile.read(path)
    if not entries:
        raise UnreadableError(f"{path}: nothing is recorded in this lock file")
    return [
        Side(
            entry.variant,
            "lock",
            _capture(entry, path),
            _unknown(entry),
        )
        for entry in entries
    ]


def _unknown(entry: Entry) -> tuple[Activity, ...]:
    numbers: tuple[tuple[Activity, int | None], ...] = (
        ("copy", entry.copies),
        ("fill", entry.fills),
    )
    return tuple(activity for activity, n in numbers if n is None)


def _capture(entry: Entry, path: Path) -> Capture:
    """What is recorded of a variant, as far as a lock file knows it: no times, no order."""
    setup = dict(entry.setup)
    environment = Environment(
        kind="paper" if setup["basis"] == "paper" else None,
        torch=setup["torch"],
        triton=setup.get("triton"),
        architecture=setup["gpu"],
        libraries=tuple((name, setup[name]) for name in setup if name not in _NO_LIBRARIES),
    )
    counts = [(Work(name, "kernel"), n) for name, n in entry.kernels]
    counts += [(Work("copy", "copy"), entry.copies or 0), (Work("fill", "fill"), entry.fills or 0)]
    counts = [(work, n) for work, n in counts if n]
    if sum(n for _, n in counts) > _MOST:
        raise UnreadableError(f"{path}:{entry.line}: more kernels than one call can have launched")
    order = array("i", [i for i, (_, n) in enumerate(counts) for _ in range(n)])
    nothing = array("q", [NO_TIME]) * len(order)
    return Capture(
        entry.variant,
        environment,
        Target(entry.target, entry.inputs),
        Records(
            tuple(work for work, _ in counts),
            (Lane("0", "lock"),),
            order,
            array("i", [0]) * len(order),
            nothing,
            nothing,
        ),
        basis="paper" if setup["basis"] == "paper" else "measured",
    )
