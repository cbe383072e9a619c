"""A file -> the variants that it holds, ready to be held against those of another.

A saved capture has several, a trace is one, and a lock file has those of a whole project.
"""

from __future__ import annotations

from pathlib import Path

from kernelcount.errors import UsageError
from kernelcount.model import Outcome, Side
from kernelcount.reading import read_file
from kernelcount.traces.source import Progress, Source

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
    raise UsageError(f"{path}: lock files cannot be compared yet")
