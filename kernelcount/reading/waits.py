"""A trace -> each time that the CPU waited for the GPU in it, and what that cost the GPU.

A wait is a host call that comes back when the GPU has done something. What it costs is the time for
which the GPU has nothing to do, from the beginning of the wait (of the copy that is waited for,
where it is one) until it begins with what was launched after the wait. Which that is, is told by
correlation; only when the wait began has to be read off the host's clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from kernelcount.model import NO_TIME, Sync, SyncKind
from kernelcount.timeline import Settled
from kernelcount.timeline.launches import NEVER, NONE

# In the names of copies as Kineto spells them for CUPTI and for ROCm.
_TO_HOST, _TO_DEVICE = ("DtoH", "DeviceToHost"), ("HtoD", "HostToDevice")
_PAGEABLE = "Pageable"

_COPYING = frozenset({None, "copy_", "_to_copy", "to", "clone"})
_TESTS = frozenset({"is_nonzero", "equal", "allclose"})
# They read values, or have a library wait, for what they must know or check: their values are not
# what the user asked for. On paper: paper/reads.py.
_INSIDE = frozenset(
    {
        "bincount", "histc", "linspace", "logspace", "multinomial", "normal", "searchsorted",
        "unique_consecutive", "unique_dim", "_unique2",
    }
)  # fmt: skip
_ALGEBRA = ("linalg_", "_linalg_")
_MASKED = frozenset(
    {
        "index", "index_put", "index_put_", "_index_put_impl_", "masked_select", "masked_scatter",
        "masked_scatter_", "_unsafe_index", "_unsafe_index_put",
    }
)  # fmt: skip


def found(settled: Settled, *, priced: bool) -> tuple[Sync, ...]:
    """The waits in a trace, in order. `priced` False: what they cost cannot be told.

    Left out is what is not known to be the user's: a wait outside all ops after the last launch,
    which is the recorder's own as a rule, unless the trace says where the call ends.
    """
    waits = _Reader(settled).waits()
    prices = _Prices(settled).of(waits) if priced and waits else [None] * len(waits)
    return tuple(_sync(settled, w, price) for w, price in zip(waits, prices, strict=True))


class _Copy(NamedTuple):
    """A copy between host and GPU; times of the host call in microseconds, and its record."""

    began: float
    ended: float
    record: int


class _Wait(NamedTuple):
    """A wait, from the copy that is waited for on; times in microseconds of the host.

    `copy`: the record of that copy, or `NONE`.
    """

    thread: int
    began: float
    ended: float
    external: int
    call: str
    copy: int = NONE


def _sync(settled: Settled, wait: _Wait, idle_ns: int | None) -> Sync:
    timeline = settled.timeline
    of_process = settled.labels.get(settled.process(wait.thread), {})
    ops = of_process.get(wait.external, (None,))
    outermost, innermost = ops[0], ops[-1]
    copied, duration = "", NO_TIME
    if wait.copy != NONE:
        copied, duration = settled.name(wait.copy), timeline.duration[wait.copy]
    return Sync(
        kind=kind(outermost, innermost, copied),
        op=outermost,
        call=wait.call,
        idle_ns=idle_ns,
        wait_ns=round((wait.ended - wait.began) * 1000),
        copy_ns=None if duration == NO_TIME else duration,
        seen_by=("trace",),
    )


def kind(outermost: str | None, innermost: str | None, copied: str = "") -> SyncKind:
    """What kind of wait an op makes. `copied`: the name of the copy that is waited for, or ""."""
    if outermost is not None and (outermost in _INSIDE or outermost.startswith(_ALGEBRA)):
        return "inside an op"
    if innermost == "_local_scalar_dense":
        return "bool" if outermost in _TESTS else "item"
    if innermost == "masked_select" or (innermost == "nonzero" and outermost in _MASKED):
        return "mask"
    if innermost == "nonzero":
        return "nonzero"
    if innermost in _COPYING and copied:
        if any(way in copied for way in _TO_HOST):
            return "copy to host"
        return "pageable copy" if _PAGEABLE in copied else "copy to device"
    return "explicit" if innermost is None else "inside an op"


class _Reader:
    """Finds the waits of a trace."""

    def __init__(self, settled: Settled) -> None:
        self._settled, self._stops = settled, settled.timeline.stops
        self._launches = settled.timeline.launches
        self._copies = self._crossing()
        self._starts: dict[int, list[float]] = {}

    def waits(self) -> list[_Wait]:
        """All that count, by the time at which they end."""
        waits = [self._with_copy(i) for i in self._stops.outermost() if self._counts(i)]
        waited = {w.copy for w in waits}
        waits += [w for w in self._standing() if w.copy not in waited]
        return sorted(waits, key=lambda w: w.ended)

    def _counts(self, stop: int) -> bool:
        settled, stops = self._settled, self._stops
        thread, start = stops.thread[stop], stops.start[stop]
        if not settled.is_kept(thread, start):
            return False
        if settled.timeline.window is not None:
            return True
        in_op = stops.external[stop] in settled.labels.get(settled.process(thread), {})
        return in_op or start <= max(self._launches.start, default=NEVER)

    def _crossing(self) -> dict[int, list[_Copy]]:
        """Copies between host and GPU by the thread that made them, by start."""
        settled, launches = self._settled, self._launches
        ways = (*_TO_HOST, *_TO_DEVICE)
        works = {
            index
            for key, index in settled.timeline.works.items()
            if key[1] == "copy" and any(way in str(key[0]) for way in ways)
        }
        copies: dict[int, list[_Copy]] = {}
        for record in settled.order if works else ():
            launch = settled.launch(record)
            if settled.timeline.work[record] in works and launch != NONE:
                start = launches.start[launch]
                copy = _Copy(start, start + max(launches.duration[launch], 0.0), record)
                copies.setdefault(launches.thread[launch], []).append(copy)
        return {thread: sorted(own) for thread, own in copies.items()}

    def _with_copy(self, stop: int) -> _Wait:
        """A wait, with the copy that the same op made just before it, if it made one."""
        stops, thread, external = self._stops, self._stops.thread[stop], self._stops.external[stop]
        start, end, call = stops.start[stop], stops.end(stop), stops.name[stop]
        copies = self._copies.get(thread, [])
        position = bisect_right(copies, start, key=lambda c: c.began) - 1
        copy = copies[position] if position >= 0 else None
        if copy is None or self._settled.timeline.external[copy.record] != external:
            return _Wait(thread, start, end, external, call)
        if self._launched_between(thread, copy.began, start):
            return _Wait(thread, start, end, external, call)
        return _Wait(thread, copy.began, end, external, call, copy.record)

    def _launched_between(self, thread: int, after: float, before: float) -> bool:
        if not self._starts:
            for of, start in zip(self._launches.thread, self._launches.start, strict=True):
                self._starts.setdefault(of, []).append(start)
            for starts in self._starts.values():
                starts.sort()
        own = self._starts.get(thread, [])
        return bisect_left(own, before) > bisect_right(own, after)

    def _standing(self) -> Iterator[_Wait]:
        """Copies of pageable memory whose call is a wait by itself.

        One to the host comes back when it is made (CUDA Runtime API, "API synchronization
        behavior"); one to the GPU may, and has where its call outlasts it.
        """
        settled = self._settled
        for thread, copies in self._copies.items():
            for copy in copies:
                name, record = settled.name(copy.record), copy.record
                to_host = any(way in name for way in _TO_HOST)
                done = settled.ended(record)
                outlasts = done is not None and copy.ended * 1000 >= done
                kept = _PAGEABLE in name and settled.is_kept(thread, copy.began)
                if kept and (to_host or outlasts):
                    external = settled.timeline.external[record]
                    yield _Wait(thread, copy.began, copy.ended, external, "", record)


class _Prices:
    """When the GPU was busy, and when it began with what was launched after a moment."""

    def __init__(self, settled: Settled) -> None:
        timeline, launches = settled.timeline, settled.timeline.launches
        timed = [i for i in settled.order if settled.ended(i) is not None]
        launched = {
            i: NEVER if settled.launch(i) == NONE else launches.start[settled.launch(i)]
            for i in timed
        }
        by_launch = sorted(timed, key=launched.__getitem__)
        self._launched = [launched[i] for i in by_launch]
        starts = [timeline.start[i] for i in by_launch]
        self._next = list(accumulate(reversed(starts), min))[::-1]
        self._last = list(accumulate((settled.ended(i) or 0 for i in by_launch), max))
        self._busy = _merged((timeline.start[i], settled.ended(i) or 0) for i in timed)
        self._known_from = min(starts) if NEVER in self._launched else 0
        self._before = [0, *accumulate(end - start for start, end in self._busy)]
        window = timeline.window
        self._end = None if window is None else round(window.end * 1000)

    def of(self, waits: Sequence[_Wait]) -> list[int | None]:
        """Nanoseconds for which the GPU had nothing to do, for each wait; None: not known.

        What follows several waits, with nothing launched between them, stands at the last that
        found the GPU at work. Where something was launched before the recording began, what ran
        before the first record was not all recorded.
        """
        prices: list[int | None] = []
        later: _Wait | None = None
        for wait in reversed(waits):
            if wait.began * 1000 < self._known_from:
                prices.append(None)
                continue
            if self._found_nothing(wait):
                prices.append(0 if self._known_before(wait) else None)
                continue
            end = self._resumes(wait)
            if later is not None and self._resumes(later) == end:
                end = round(later.began * 1000)
            prices.append(None if end is None else self._idle(round(wait.began * 1000), end))
            later = wait
        return prices[::-1]

    def _found_nothing(self, wait: _Wait) -> bool:
        """Whether all that was launched before had been done when the wait began."""
        position = bisect_left(self._launched, wait.began)
        return wait.copy == NONE and (
            position == 0 or self._last[position - 1] <= wait.began * 1000
        )

    def _known_before(self, wait: _Wait) -> bool:
        """Whether it is known what the GPU did before: nothing, where the call is marked."""
        return self._end is not None or bisect_left(self._launched, wait.began) > 0

    def _resumes(self, wait: _Wait) -> int | None:
        """When the GPU begins with what is launched after the wait, or the call ends."""
        position = bisect_right(self._launched, wait.ended)
        return self._next[position] if position < len(self._next) else self._end

    def _idle(self, start: int, end: int) -> int:
        return max(0, end - start - (self._busy_until(end) - self._busy_until(start)))

    def _busy_until(self, time: int) -> int:
        position = bisect_right(self._busy, (time, time)) - 1
        if position < 0:
            return 0
        start, end = self._busy[position]
        return self._before[position] + min(end, time) - start


def _merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """What spans in order of start cover together."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
