"""A trace -> the times for which the GPU waited for the CPU, and what the CPU did meanwhile.

Nothing runs, and what runs next had not been launched yet when the last thing ended: then the GPU
was at a loss. What it takes to begin with something that is launched already is no such time. The
time before the first record is none either: it hangs on where the recording began.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import nlargest
from itertools import accumulate, compress, count, islice
from operator import add, and_, gt, lt, sub
from typing import NamedTuple

from kernelcount.devices.calls import Call
from kernelcount.model import NO_TIME, Gap
from kernelcount.timeline import Settled
from kernelcount.timeline.launches import NEVER, NONE

MOST = 12
"""Gaps that are kept, the longest: as many as the screen lists of anything (render.figures)."""

WAITING, LAUNCHING, COPYING, PYTHON = "waiting for the GPU", "launching", "copying", "Python"
"""What the CPU does beside ops: calls of the GPU's API, and what is outside of all ops."""


class _Idle(NamedTuple):
    """A time in which nothing ran, in nanoseconds, and the record that ended it."""

    start: int
    end: int
    position: int


class _Span(NamedTuple):
    """What a thread did; times in nanoseconds."""

    start: int
    end: int
    what: str


def found(settled: Settled) -> tuple[tuple[Gap, ...], int] | None:
    """The longest gaps, the longest first, and the nanoseconds of all of them.

    None where it cannot be told: of a region, or where not all records have their launch and time.
    """
    timeline = settled.timeline
    if timeline.region is not None or settled.missing or settled.unmarked or settled.tally.blind:
        return None
    if NO_TIME in timeline.start or NO_TIME in timeline.duration:
        return None
    longest, idle_ns = _between(settled)
    doing = _Doing(settled, sorted(longest))
    begin = timeline.start[settled.order[0]] if longest else 0
    gaps = tuple(
        Gap(
            g.start - begin,
            g.end - g.start,
            _caption(settled, _before(settled, g)),
            _caption(settled, settled.order[g.position]),
            doing.during(g),
        )
        for g in longest
    )
    return gaps, idle_ns


def _between(settled: Settled) -> tuple[list[_Idle], int]:
    """The longest gaps and the sum of all; by whole columns, as there may be a million kernels."""
    timeline, order = settled.timeline, settled.order
    starts = array("q", map(timeline.start.__getitem__, order))
    ends = map(add, starts, map(timeline.duration.__getitem__, order))
    reached = array("q", accumulate(ends, max))
    when = array("d", map((1000.0).__mul__, timeline.launches.start))
    when.append(NEVER)  # which is where -1 leads, for none
    launched = map(when.__getitem__, map(timeline.pairing.launch.__getitem__, order))
    late = map(gt, islice(launched, 1, None), reached)
    empty = map(gt, islice(starts, 1, None), reached)
    positions = array("q", compress(count(1), map(and_, empty, late)))
    since = map(reached.__getitem__, map((-1).__add__, positions))
    idle = array("q", map(sub, map(starts.__getitem__, positions), since))
    least = min(nlargest(MOST, idle), default=0)
    found = (
        _Idle(reached[i - 1], starts[i], i) for i in compress(positions, map(least.__le__, idle))
    )
    return sorted(found, key=lambda g: g.start - g.end)[:MOST], sum(idle)


def _before(settled: Settled, gap: _Idle) -> int:
    """The record that ended when the gap began."""
    earlier = map(settled.order.__getitem__, range(gap.position - 1, -1, -1))
    return next(record for record in earlier if settled.ended(record) == gap.start)


def _caption(settled: Settled, record: int) -> str:
    """What launched a kernel, or its name; the name of a copy or a fill."""
    launch, name = settled.launch(record), settled.name(record)
    if launch == NONE or not settled.is_kernel(record):
        return name
    process = settled.process(settled.timeline.launches.thread[launch])
    external = settled.timeline.external[record]
    return settled.labels.get(process, {}).get(external, (None,))[0] or name


class _Doing:
    """What threads did during some gaps, which are given in order."""

    def __init__(self, settled: Settled, gaps: Sequence[_Idle]) -> None:
        self._settled = settled
        self._low = [g.start / 1000 for g in gaps]
        self._high = [g.end / 1000 for g in gaps]
        self._spans: dict[int, list[_Span]] = {}
        timeline = settled.timeline
        launches, stops = timeline.launches, timeline.stops
        names, (name, threads, starts, durations) = timeline.labels.columns()

        def called(i: int) -> str:
            return COPYING if launches.call[i] == Call.MEMORY else LAUNCHING

        self._take(threads, starts, durations, lambda i: names[name[i]].removeprefix("aten::"))
        self._take(launches.thread, launches.start, launches.duration, called)
        self._take(stops.thread, stops.start, stops.duration, lambda _: WAITING)

    def _take(
        self,
        threads: Sequence[int],
        starts: Sequence[float],
        durations: Sequence[float],
        what: Callable[[int], str],
    ) -> None:
        """Keep the rows that overlap with a gap."""
        first = map(partial(bisect_right, self._high), starts)
        behind = map(partial(bisect_left, self._low), map(add, starts, durations))
        for i in compress(count(), map(lt, first, behind)):
            start, end = round(starts[i] * 1000), round((starts[i] + durations[i]) * 1000)
            self._spans.setdefault(threads[i], []).append(_Span(start, end, what(i)))

    def during(self, gap: _Idle) -> tuple[tuple[str, int], ...]:
        """What the thread that ended the gap did in it, each with its own nanoseconds."""
        launch = self._settled.launch(self._settled.order[gap.position])
        thread = self._settled.timeline.launches.thread[launch]
        spent: Counter[str] = Counter()
        for what, ns in _own_times(self._spans.get(thread, []), gap):
            spent[what] += ns
        return tuple(spent.most_common())


def _own_times(spans: Sequence[_Span], gap: _Idle) -> Iterator[tuple[str, int]]:
    """What the innermost span was, from moment to moment."""
    now = gap.start
    inside: list[_Span] = [_Span(gap.start, gap.end, PYTHON)]

    def until(moment: int) -> Iterator[tuple[str, int]]:
        nonlocal now
        moment = min(moment, gap.end)
        while len(inside) > 1 and inside[-1].end <= moment:
            if (span := inside.pop()).end > now:
                yield span.what, span.end - now
                now = span.end
        if moment > now:
            yield inside[-1].what, moment - now
            now = moment

    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.start < gap.end and span.end > gap.start:
            yield from until(span.start)
            inside.append(span)
    yield from until(gap.end)
