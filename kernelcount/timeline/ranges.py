"""Named ranges on host threads, and what was open when."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Range(NamedTuple):
    """A named range on a host thread. Times in microseconds, as in the trace."""

    start: float
    end: float
    process: int | str | None
    name: str


def start_of(span: Range) -> float:
    """What ranges are in order of."""
    return span.start


def of_processes(ranges: Iterable[Range]) -> dict[object, list[Range]]:
    """The ranges of each process, in order of start."""
    found: dict[object, list[Range]] = {}
    for span in sorted(ranges, key=start_of):
        found.setdefault(span.process, []).append(span)
    return found


def covered(ranges: Iterable[Range]) -> list[tuple[float, float]]:
    """What ranges in order of start cover together."""
    merged: list[tuple[float, float]] = []
    for span in ranges:
        if merged and span.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end))
        else:
            merged.append((span.start, span.end))
    return merged


def within(spans: Sequence[tuple[float, float]], time: float) -> bool:
    """Whether a time is in one of these spans, which are in order and apart."""
    position = bisect_right(spans, (time, math.inf)) - 1
    return position >= 0 and time <= spans[position][1]


def open_at(ranges: Sequence[Range], time: float) -> Range | None:
    """The range that was open then, of these in order of start; None where none was."""
    position = bisect_right(ranges, time, key=start_of) - 1
    return ranges[position] if position >= 0 and time <= ranges[position].end else None
