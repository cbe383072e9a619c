"""Columns of what rows hold: times and numbers, with a value for what is missing."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from kernelcount.model import NO_TIME
from kernelcount.timeline.launches import NEVER
from kernelcount.traces.kineto import Event  # fmt: skip

MOST_NS = 1 << 62  # nanoseconds beyond this do not fit a column


def picked(column: array[int], order: Sequence[int]) -> array[int]:
    """The values of a column in this order."""
    if isinstance(order, range):
        return column
    return array(column.typecode, map(column.__getitem__, order))


def moments(rows: Sequence[Event]) -> tuple[array[float], array[float]]:
    """Starts and durations in microseconds; `NEVER` and 0 for what is missing."""
    starts, durations = [row.ts for row in rows], [row.dur for row in rows]
    try:
        return array("d", _known(starts)), array("d", _known(durations))
    except TypeError:
        starts = [NEVER if start is None else start for start in starts]
        durations = [duration or 0.0 for duration in durations]
        return array("d", _known(starts)), array("d", _known(durations))


def _known(times: list[float | None]) -> list[float]:
    """The same list: that none is missing shows when an array is made of it."""
    return times  # type: ignore[return-value]


def difference(end: float | None, start: float | None) -> float | None:
    """The time between two moments; None where it is not known."""
    if end is None or start is None or not math.isfinite(end - start):
        return None
    return end - start


def times_of(rows: Sequence[Event]) -> tuple[array[int], array[int]]:
    """Starts and durations in nanoseconds; see `_time`."""
    try:
        durations = [round(row.dur * 1000) for row in rows]  # type: ignore[operator]
        if min(durations) > 0:
            starts = [round(row.ts * 1000) for row in rows]  # type: ignore[operator]
            return array("q", starts), array("q", durations)
    except (TypeError, OverflowError):  # a missing time, or one beyond all measure
        pass
    times = [_time(row) for row in rows]
    return array("q", [start for start, _ in times]), array("q", [dur for _, dur in times])


def _time(row: Event) -> tuple[int, int]:
    """Start and duration in nanoseconds, `NO_TIME` for what is missing or no time.

    A row with neither a start nor a duration was never filled in by the profiler.
    """
    ts, dur = row.ts, row.dur
    if not ts and not dur:
        return NO_TIME, NO_TIME
    most = MOST_NS / 1000
    start = NO_TIME if ts is None or not -most < ts < most else round(ts * 1000)
    duration = NO_TIME if dur is None or not 0 <= dur < most else round(dur * 1000)
    return start, duration


def integers(values: list[int | None]) -> array[int]:
    """A column of integers; `NO_TIME` for none. Those that do not fit are hashed."""
    if (missing := values.count(None)) == len(values):
        return array("q", [NO_TIME]) * missing
    known: list[int] = values  # type: ignore[assignment]
    if missing:
        known = [NO_TIME if value is None else value for value in values]
    try:
        return array("q", known)
    except OverflowError:
        return array("q", [v if -(1 << 63) <= v < 1 << 63 else hash(v) for v in known])
