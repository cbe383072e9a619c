"""Events -> what a trace holds: its records, which launch put each there, and what is missing.

A record belongs to its launch by correlation, never by the time at which it ran. Rows are taken and
kept by columns: a trace of millions spends its time here, and its memory stays at some 90 bytes a
kernel.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, count, islice
from operator import eq, le
from typing import Any, NamedTuple

from kernelcount.devices.base import MARK
from kernelcount.devices.calls import Call, classify, vendor, waits
from kernelcount.labels import Label, Labels
from kernelcount.launches import (
    NEVER,
    NONE,
    Answers,
    Captures,
    Launches,
    Pairing,
    Tally,
    tally,
)
from kernelcount.model import NO_TIME, Activity, Lane, Records, Step, Work
from kernelcount.stops import Stops
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
)  # fmt: skip

STEP_PREFIX = "ProfilerStep#"
_ACTIVITY: dict[type[Event], Activity] = {Kernel: "kernel", Copy: "copy", Fill: "fill"}
_HOST: tuple[type[Event], ...] = (Runtime, Driver, XpuRuntime, XpuDriver)
_TAKEN: frozenset[type[Event]] = frozenset((*_ACTIVITY, *_HOST, Op, Annotation, Other))
# As plain integers: an enum's members are hashed by a function written in Python.
_LAUNCHING = frozenset(map(int, (Call.LAUNCH, Call.GRAPH, Call.MEMORY)))
_CAPTURING = frozenset(map(int, (Call.CAPTURE_BEGIN, Call.CAPTURE_END)))
_MOST_NAMES = 1000  # names of calls, or of annotations for the error that lists them, that are kept
_WHOLE = 100  # percent
_MOST_NS = 1 << 62  # nanoseconds beyond this do not fit a column
_Columns = tuple["array[int]", ...]


class Range(NamedTuple):
    """A named range on a host thread. Times in microseconds, as in the trace."""

    start: float
    end: float
    process: int | str | None
    name: str


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
        self._first_start, self._first_correlation = math.inf, _MOST_NS
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
        begin.dur = _difference(row.ts, begin.ts)
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

    def columns(self, rows: list[Event], kind: type[Event]) -> _Columns:
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
        external = _integers([a.external_id for a in arguments])
        node = _integers([a.graph_node for a in arguments])
        correlation = _integers([a.correlation for a in arguments])
        return (
            array("i", work), array("i", lane), *_times(rows), external, node, correlation,
        )  # fmt: skip

    def _threads(self, rows: list[Event]) -> array[int]:
        threads = self.threads
        return array("i", [threads.setdefault((r.pid, r.tid), len(threads)) for r in rows])

    def _hosts(self, rows: list[Event], *, driver: bool) -> None:
        self.host_rows += len(rows)
        calls = self._calls_of([row.name for row in rows])
        correlations = [row.args.correlation for row in rows]
        starts, durations = _moments(rows)
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
            _integers(correlations),
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
        externals = _integers([row.args.external_id for row in found])
        self.stops.add(
            [row.name for row in found], self._threads(found), (picked[0], picked[1]), externals
        )

    def _note_first(self, starts: Iterable[float], correlations: Iterable[int | None]) -> None:
        known = (start for start in starts if start != NEVER)
        self._first_start = min(self._first_start, min(known, default=math.inf))
        ids = (c for c in correlations if c is not None and c != NO_TIME)
        self._first_correlation = min(self._first_correlation, min(ids, default=_MOST_NS))

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
            _moments(rows),
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
        starts = _picked(self.start, order)
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


def written_twice(timeline: Timeline, rows: Iterable[tuple[Event, str]] | None) -> set[int]:
    """Records whose rows stood there before, alike in every field.

    `rows` are the trace's device rows once more, each with all of its fields as text: not every
    field is kept. None: the trace cannot be read again, and what is kept has to do.
    """
    groups = timeline.alike()
    if not groups or rows is None:
        return {i for group in groups for i in group[1:]}
    differing: Counter[int] = Counter({hash(timeline.key(group[0])): 0 for group in groups})
    seen: set[tuple[int, int]] = set()
    for event, text in rows:
        if event.ph not in ("X", ""):
            continue
        key = hash(tuple(column[0] for column in timeline.columns([event], type(event))))
        if key in differing and (pair := (key, hash(text))) not in seen:
            seen.add(pair)
            differing[key] += 1
    return {i for g in groups for i in g[max(1, differing[hash(timeline.key(g[0]))]) :]}


class Settled:
    """What a timeline holds once all rows are in and `dropped` records have been left out.

    `records` in order of start; `tally` of the launches, `launches` and `graph_launches` in
    numbers. Kernels without a launch row: `early` ones were launched before the recording,
    `unmarked` bear no correlation, of the `missing` it is not known why; `short` says for how many
    launches no kernel at all is left. With a region, all that was launched outside it is left
    out; `unplaced` kernels may have been launched inside.
    """

    def __init__(self, timeline: Timeline, dropped: Collection[int] = frozenset()) -> None:
        self.timeline = timeline
        self._dropped = dropped
        self._kernels = [key[1] == "kernel" for key in timeline.works]
        self._names = [key[0] for key in timeline.works]
        self._processes = [key[0] for key in timeline.threads]
        self.tally = self._tally()
        self._launch = timeline.pairing.launch
        self._sort_orphans()
        self.order = order = self._order()
        if timeline.region is not None:
            order = self._in_region(order)
        self.launches = len(self.tally.counted)
        self.graph_launches = timeline.launches.graphs(self.tally.counted)
        self.steps = self._steps(order)
        self.records = self._records(order)

    def launch(self, record: int) -> int:
        """The call that put a record on the GPU; `NONE` where that is not known."""
        return self._launch[record]

    def name(self, record: int) -> str:
        """The name of a record."""
        return str(self._names[self.timeline.work[record]])

    def ended(self, record: int) -> int | None:
        """When a record ended, in nanoseconds; None where it has no valid time."""
        start, duration = self.timeline.start[record], self.timeline.duration[record]
        return None if NO_TIME in (start, duration) else start + duration

    @cached_property
    def labels(self) -> dict[object, dict[int, Label]]:
        """By process, the label of each External id."""
        return self.timeline.labels.resolve(self._processes)

    def process(self, thread: int) -> object:
        """The process of a thread."""
        return self._processes[thread]

    def is_kept(self, thread: int, time: float) -> bool:
        """Whether what the host did then counts: in the marked call, in the region asked for."""
        timeline, process = self.timeline, self._processes[thread]
        if (window := timeline.window) is not None and not window.start <= time < window.end:
            return False
        if timeline.region is None:
            return True
        ranges = _by_process(timeline.regions).get(process, ())
        return _within(_merged(ranges), time)

    @property
    def duplicates(self) -> int:
        """How many rows were left out since they stood there before."""
        return len(self._dropped) + self.tally.twice

    def _tally(self) -> Tally:
        timeline = self.timeline
        devices = [device for device, _ in timeline.lanes]
        answers = Answers(
            timeline.correlation,
            timeline.start,
            self.is_kernel,
            lambda record: devices[timeline.lane[record]],
            self._dropped,
        )
        return tally(
            timeline.launches, timeline.pairing, timeline.captures, answers, self._processes
        )

    def is_kernel(self, record: int) -> bool:
        """Whether a record is a kernel, and no copy or fill."""
        return self._kernels[self.timeline.work[record]]

    def _sort_orphans(self) -> None:
        """Tell why kernels have no launch row, as far as that is known."""
        self.early = self.missing = self.unmarked = self.unplaced = 0
        timeline, launch = self.timeline, self._launch
        alone = list(compress(count(), map(NONE.__eq__, launch))) if NONE in launch else []
        first_start, first_correlation = timeline.beginning() if alone else (0.0, 0)
        for i in alone:
            correlation, start = timeline.correlation[i], timeline.start[i]
            if not self.is_kernel(i) or i in self._dropped:
                continue
            if NO_TIME != correlation < first_correlation or NO_TIME != start < first_start * 1000:
                self.early += 1
            elif correlation == NO_TIME:
                self.unmarked += 1
            else:
                self.missing += 1
        self.short = max(0, len(self.tally.blind) - self.unmarked - self.missing)

    def _order(self) -> Sequence[int]:
        """The records that count by start, those without one last."""
        order, start = self.timeline.order, self.timeline.start
        if self._dropped:
            order = [i for i in order if i not in self._dropped]
        if order and start[order[0]] == NO_TIME:
            untimed = sum(map(NO_TIME.__eq__, map(start.__getitem__, order)))
            order = [*order[untimed:], *order[:untimed]]
        return order

    def _in_region(self, order: Sequence[int]) -> Sequence[int]:
        """The records that were launched in the region; the tally is cut down to it too."""
        by_process = _by_process(self.timeline.regions)
        merged = {process: _merged(ranges) for process, ranges in by_process.items()}
        threads, starts = self.timeline.launches.thread, self.timeline.launches.start

        def inside(launch: int) -> bool:
            if launch == NONE:
                return False
            spans = merged.get(self._processes[threads[launch]], ())
            return _within(spans, starts[launch])

        placed = [i for i in order if inside(self._launch[i])]
        untimed = sum(
            launch != NONE and starts[launch] == NEVER and self.is_kernel(i)
            for i, launch in enumerate(self._launch)
        )
        self.unplaced = self.missing + self.unmarked + untimed
        self.tally = self.tally._replace(
            counted=[i for i in self.tally.counted if inside(i)],
            lost=[i for i in self.tally.lost if inside(i)],
            blind=[i for i in self.tally.blind if inside(i)],
        )
        self.short = len(self.tally.blind)  # no kernel can be told to be theirs
        return placed

    def _steps(self, order: Sequence[int]) -> tuple[Step, ...]:
        """Kernels by the step that was open, in the launching process, when they were launched."""
        timeline = self.timeline
        if not timeline.steps or not len(timeline.launches):
            return ()
        by_process = _by_process(timeline.steps)
        threads, starts = timeline.launches.thread, timeline.launches.start
        number: Counter[str] = Counter()
        time: Counter[str] = Counter()
        for i in order:
            launch = self._launch[i]
            if launch == NONE or not self.is_kernel(i):
                continue
            ranges = by_process.get(self._processes[threads[launch]], ())
            found = _open_at(ranges, starts[launch])
            if found is not None:
                number[found.name] += 1
                time[found.name] += max(timeline.duration[i], 0)
        names = dict.fromkeys(step.name for step in sorted(timeline.steps, key=_start))
        return tuple(Step(name, number[name], time[name]) for name in names)

    def _records(self, order: Sequence[int]) -> Records:
        timeline = self.timeline
        raw = list(timeline.works)
        works = _picked(timeline.work, order)
        index: dict[tuple[int, Label | None], int] = {}
        if len(timeline.labels):
            keys = zip(works, self._labels(order), strict=True)
            works = array("i", [index.setdefault(key, len(index)) for key in keys])
        else:
            index = {(work, None): work for work in range(len(raw))}
        return Records(
            tuple(_work(raw[work], label) for work, label in index),
            tuple(Lane(_place(device), _place(stream)) for device, stream in timeline.lanes),
            works,
            _picked(timeline.lane, order),
            _picked(timeline.start, order),
            _picked(timeline.duration, order),
            _picked(timeline.external, order) if len(timeline.labels) else array("q"),
        )

    def _labels(self, order: Sequence[int]) -> Iterator[Label | None]:
        """The label of each record, by External id and the process that launched it."""
        labels = self.labels
        external = self.timeline.external
        if len(labels) == 1:
            (only,) = labels.values()
            return map(only.get, map(external.__getitem__, order))
        threads = self.timeline.launches.thread
        launches = map(self._launch.__getitem__, order)
        processes = (
            None if launch == NONE else self._processes[threads[launch]] for launch in launches
        )
        return (
            labels.get(process, {}).get(external[i])
            for i, process in zip(order, processes, strict=True)
        )


def _work(key: tuple[Any, ...], label: Label | None) -> Work:
    name, activity, registers, shared_memory, grid, block, occupancy = key
    outermost, innermost = label or (None, None)
    return Work(
        name or "(no name)",
        activity,
        outermost if activity == "kernel" else None,
        grid,
        block,
        registers,
        shared_memory,
        innermost if activity == "kernel" else None,
        occupancy=_share(occupancy),
    )


def _share(percent: float | None) -> float | None:
    """From 0 to 1; None for what is no share of anything."""
    return None if percent is None or not 0 <= percent <= _WHOLE else percent / _WHOLE


def _place(value: object) -> str:
    return "?" if value is None else str(value)


def _picked(column: array[int], order: Sequence[int]) -> array[int]:
    if isinstance(order, range):
        return column
    return array(column.typecode, map(column.__getitem__, order))


def _moments(rows: Sequence[Event]) -> tuple[array[float], array[float]]:
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


def _difference(end: float | None, start: float | None) -> float | None:
    if end is None or start is None or not math.isfinite(end - start):
        return None
    return end - start


def _times(rows: Sequence[Event]) -> tuple[array[int], array[int]]:
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
    most = _MOST_NS / 1000
    start = NO_TIME if ts is None or not -most < ts < most else round(ts * 1000)
    duration = NO_TIME if dur is None or not 0 <= dur < most else round(dur * 1000)
    return start, duration


def _integers(values: list[int | None]) -> array[int]:
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


def _start(span: Range) -> float:
    return span.start


def _by_process(ranges: Iterable[Range]) -> dict[object, list[Range]]:
    """The ranges of each process, in order of start."""
    found: dict[object, list[Range]] = {}
    for span in sorted(ranges, key=_start):
        found.setdefault(span.process, []).append(span)
    return found


def _merged(ranges: Iterable[Range]) -> list[tuple[float, float]]:
    """What ranges in order of start cover together."""
    merged: list[tuple[float, float]] = []
    for span in ranges:
        if merged and span.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end))
        else:
            merged.append((span.start, span.end))
    return merged


def _within(spans: Sequence[tuple[float, float]], time: float) -> bool:
    position = bisect_right(spans, (time, math.inf)) - 1
    return position >= 0 and time <= spans[position][1]


def _open_at(ranges: Sequence[Range], time: float) -> Range | None:
    position = bisect_right(ranges, time, key=_start) - 1
    return ranges[position] if position >= 0 and time <= ranges[position].end else None
