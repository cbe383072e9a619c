"""Takes the rows of a trace and keeps them by columns.

A trace of millions spends its time here, and its memory stays at some 90 bytes a kernel.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import compress, count, islice
from operator import eq, le
from typing import Any

from kernelcount.devices.base import MARK
from kernelcount.devices.calls import Call, classify, vendor, waits
from kernelcount.model import NO_TIME, Activity
from kernelcount.timeline.columns import MOST_NS, difference, integers, moments, picked, times_of
from kernelcount.timeline.labels import Labels
from kernelcount.timeline.launches import NEVER, NONE, Captures, Launches, Pairing
from kernelcount.timeline.ranges import Range
from kernelcount.timeline.stops import Stops
from kernelcount.traces.kineto import (
    Annotation,
    Copy,
    Driver,
    Event,
    Fill,
    Kernel,
    Op,
    Other,
    Runtime,
    XpuDriver,
    XpuRuntime,
)

STEP_PREFIX = "ProfilerStep#"
_ACTIVITY: dict[type[Event], Activity] = {Kernel: "kernel", Copy: "copy", Fill: "fill"}
_HOST: tuple[type[Event], ...] = (Runtime, Driver, XpuRuntime, XpuDriver)
_TAKEN: frozenset[type[Event]] = frozenset((*_ACTIVITY, *_HOST, Op, Annotation, Other))

# As plain integers: an enum's members are hashed by a function written in Python.
_LAUNCHING = frozenset(map(int, (Call.LAUNCH, Call.GRAPH, Call.MEMORY)))
_CAPTURING = frozenset(map(int, (Call.CAPTURE_BEGIN, Call.CAPTURE_END)))
_MOST_NAMES = 1000  # names of calls, or of annotations for the error that lists them, that are kept

Columns = tuple["array[int]", ...]


class Timeline:
    """Takes the rows of a trace in any order; `Settled` then answers for them."""

    def __init__(self, region: str | None = None, mark: str | None = None) -> None:
        self.region, self.mark = region, mark
        self.mark_seen = False
        self.works: dict[tuple[object, ...], int] = {}
        self.lanes: dict[tuple[object, ...], int] = {}
        self.threads: dict[tuple[object, ...], int] = {}
        self.work, self.lane = array("i"), array("i")
        self.start, self.duration = array("q"), array("q")
        self.external, self.node, self.correlation = array("q"), array("q"), array("q")
        self.launches, self.captures, self.labels = Launches(), Captures(), Labels()
        self.pairing, self.stops = Pairing(self.launches), Stops()
        self.window: Range | None = None
        self.steps: list[Range] = []
        self.regions: list[Range] = []
        self.annotations: set[str] = set()
        self.vendors: set[str] = set()
        self._first_start, self._first_correlation = math.inf, MOST_NS
        self.rows = self.host_rows = self.compiled = 0
        self.phaseless = self.unpaired = self.unended = self.endless = 0
        self._calls: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._open: dict[tuple[object, ...], list[Event]] = {}

    def add(self, batch: Iterable[object]) -> None:
        """Take rows; those of no role are passed over."""
        rows: list[Any] = [row for row in batch if type(row) in _TAKEN]
        if {row.ph for row in rows} - {"X"}:
            rows = self._whole(rows)
        self._take(rows)

    def _take(self, rows: list[Event]) -> None:
        self.rows += len(rows)
        by_type: dict[type[Event], list[Event]] = {kind: [] for kind in _TAKEN}
        for row in rows:
            by_type[type(row)].append(row)
        for kind in _HOST:
            if own := by_type[kind]:
                self._hosts(own, driver=issubclass(kind, Driver))
        if own := by_type[Op]:
            self._ops(own)
        if own := by_type[Annotation]:
            self._annotations(own)
        for kind in _ACTIVITY:
            if own := by_type[kind]:
                self._records(own, kind)

    def _whole(self, rows: list[Event]) -> list[Event]:
        """Complete rows: a begin and the end that comes next on its thread are one."""
        whole: list[Event] = []
        for row in rows:
            if row.ph == "X":
                whole.append(row)
            elif row.ph in ("B", "E"):
                whole += self._pair(row)
            elif row.ph == "" and type(row) is Kernel:
                self.phaseless += 1
                whole.append(row)
        return [row for row in whole if type(row) is not Other]

    def _pair(self, row: Event) -> list[Event]:
        stack = self._open.setdefault((row.pid, row.tid), [])
        if row.ph == "B":
            stack.append(row)
            return []
        if not stack:
            self.unpaired += 1
            return []
        begin = stack.pop()
        kind = type(row) if type(begin) is Other else type(begin)
        begin.dur = difference(row.ts, begin.ts)
        begin.name = begin.name or row.name
        begin.args = begin.args.completed(row.args)
        return [kind(**{name: getattr(begin, name) for name in begin.__struct_fields__})]

    def close(self) -> None:
        """All rows are in: a begin without an end has no duration."""
        rows = [begin for stack in self._open.values() for begin in stack]
        self._open.clear()
        self.unpaired += sum(type(row) is not Other for row in rows)
        self.unended = sum(type(row) is Kernel for row in rows)
        self._take([row for row in rows if isinstance(row, Kernel | Copy | Fill | Annotation)])

    def _records(self, rows: list[Event], kind: type[Event]) -> None:
        columns = self.columns(rows, kind)
        for column, values in zip(self._record_columns(), columns, strict=True):
            column.extend(values)  # an array: of a list it takes three times as long
        self.pairing.add_records(columns[-1], kernels=kind is Kernel)

    def _record_columns(self) -> tuple[array[int], ...]:
        return (
            self.work, self.lane, self.start, self.duration, self.external, self.node,
            self.correlation,
        )  # fmt: skip

    def key(self, record: int) -> tuple[int, ...]:
        """All that is kept of a record."""
        return tuple(column[record] for column in self._record_columns())

    def columns(self, rows: list[Event], kind: type[Event]) -> Columns:
        """What is kept of records of one kind, column by column; the last is the correlation."""
        works, lanes, activity = self.works, self.lanes, _ACTIVITY[kind]
        arguments = [row.args for row in rows]
        both = list(zip(rows, arguments, strict=True))
        work = [
            works.setdefault(
                (row.name, activity, a.registers, a.shared_memory, a.grid, a.block, a.occupancy),
                len(works),
            )
            for row, a in both
        ]
        lane = [
            lanes.setdefault(
                (
                    row.pid if a.device is None else a.device,
                    row.tid if a.stream is None else a.stream,
                ),
                len(lanes),
            )
            for row, a in both
        ]
        external = integers([a.external_id for a in arguments])
        node = integers([a.graph_node for a in arguments])
        correlation = integers([a.correlation for a in arguments])
        return (
            array("i", work), array("i", lane), *times_of(rows), external, node, correlation,
        )  # fmt: skip

    def _threads(self, rows: list[Event]) -> array[int]:
        threads = self.threads
        return array("i", [threads.setdefault((r.pid, r.tid), len(threads)) for r in rows])

    def _hosts(self, rows: list[Event], *, driver: bool) -> None:
        self.host_rows += len(rows)
        calls = self._calls_of([row.name for row in rows])
        correlations = [row.args.correlation for row in rows]
        starts, durations = moments(rows)
        if self._waiting:
            self._note_stops(rows, (starts, durations))
        kinds = set(calls)
        if not kinds.isdisjoint(_CAPTURING):
            self._note_captures(rows, calls, starts)
        if not kinds <= _LAUNCHING:
            self._note_first(starts, correlations)
            chosen = [call in _LAUNCHING for call in calls]
            rows = list(compress(rows, chosen))
            calls = list(compress(calls, chosen))
            correlations = list(compress(correlations, chosen))
            starts = array("d", compress(starts, chosen))
            durations = array("d", compress(durations, chosen))
        first = self.launches.add(
            self._threads(rows),
            array("b", calls),
            (starts, durations),
            integers(correlations),
            array("b", [driver]) * len(rows),
        )
        self.pairing.add_launches(first)

    def _calls_of(self, names: list[str]) -> list[int]:
        try:
            return [self._calls[name] for name in names]
        except KeyError:
            pass
        if len(self._calls) > _MOST_NAMES:  # nobody has an API of so many calls
            self._calls.clear()
        self._calls.update((name, int(classify(name))) for name in set(names))
        self.vendors |= {kind for name in set(names) if (kind := vendor(name))}
        self._waiting |= set(filter(waits, names))
        return [self._calls[name] for name in names]

    def _note_stops(self, rows: list[Event], times: tuple[array[float], array[float]]) -> None:
        chosen = [row.name in self._waiting and row.ts is not None for row in rows]
        if not any(chosen):
            return
        found = list(compress(rows, chosen))
        picked = tuple(array("d", compress(column, chosen)) for column in times)
        externals = integers([row.args.external_id for row in found])
        self.stops.add(
            [row.name for row in found], self._threads(found), (picked[0], picked[1]), externals
        )

    def _note_first(self, starts: Iterable[float], correlations: Iterable[int | None]) -> None:
        known = (start for start in starts if start != NEVER)
        self._first_start = min(self._first_start, min(known, default=math.inf))
        ids = (c for c in correlations if c is not None and c != NO_TIME)
        self._first_correlation = min(self._first_correlation, min(ids, default=MOST_NS))

    def beginning(self) -> tuple[float, int]:
        """When the first call on the host began, in microseconds, and the first correlation.

        What was launched before was launched before the recording.
        """
        self._note_first(self.launches.start, self.launches.correlation)
        return self._first_start, self._first_correlation

    def _note_captures(
        self, rows: list[Event], calls: Sequence[int], starts: Sequence[float]
    ) -> None:
        for row, call, start in zip(rows, calls, starts, strict=True):
            if call in _CAPTURING and start != NEVER:
                self.captures.mark(row.pid, start, Call(call))

    def _ops(self, rows: list[Event]) -> None:
        self.labels.add(
            [row.name for row in rows],
            self._threads(rows),
            moments(rows),
            [row.args.external_id for row in rows],
        )

    def _annotations(self, rows: list[Event]) -> None:
        for row in rows:
            name = row.name
            if name.endswith("(dynamo_timed)"):
                self.compiled += 1
            if name == self.mark:
                self.mark_seen = True
            if name == MARK and row.ts is not None and row.dur is not None:
                self.window = Range(row.ts, row.ts + row.dur, row.pid, name)
            if self.region is not None and len(self.annotations) < _MOST_NAMES:
                self.annotations.add(name)
            if name == self.region:
                self._range(row, self.regions)
            if name.startswith(STEP_PREFIX):
                self._range(row, self.steps)

    def _range(self, row: Event, ranges: list[Range]) -> None:
        """Keep a range; one without an end is taken to be open to the end of the trace."""
        valid = row.dur is not None and row.dur >= 0
        self.endless += row.ts is None or not valid
        if row.ts is not None:
            end = row.ts + row.dur if valid and row.dur is not None else math.inf
            ranges.append(Range(row.ts, end, row.pid, row.name))

    @cached_property
    def order(self) -> Sequence[int]:
        """The records by start, once all rows are in; those without one come first."""
        start = self.start
        if all(map(le, start, islice(start, 1, None))):
            return range(len(start))
        return sorted(range(len(start)), key=start.__getitem__)

    def alike(self) -> list[list[int]]:
        """Groups of records that are alike in all that is kept of them, in order of the file."""
        order = self.order
        starts = picked(self.start, order)
        groups: list[list[int]] = []
        same: dict[tuple[int, ...], list[int]] = {}
        last = NONE
        for position in compress(count(1), map(eq, starts, islice(starts, 1, None))):
            if position != last + 1:
                groups += (group for group in same.values() if len(group) > 1)
                same = {self.key(order[position - 1]): [order[position - 1]]}
            same.setdefault(self.key(order[position]), []).append(order[position])
            last = position
        return [*groups, *(group for group in same.values() if len(group) > 1)]
