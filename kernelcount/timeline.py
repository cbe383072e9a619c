"""Events -> Capture: which records a trace holds, which launch put each there, and what is missing.

A record belongs to its launch by correlation, never by the time at which it ran. Everything is kept
in columns, and a launch whose record has come is not kept waiting, so that memory stays at some 80
bytes a kernel however long the trace is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice
from operator import le
from typing import NamedTuple

from kernelcount.devices.calls import Call, classify, vendor
from kernelcount.labels import Labels
from kernelcount.model import NO_TIME, Activity, Lane, Records, Step, Work
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
_HOST = frozenset((Runtime, Driver, XpuRuntime, XpuDriver))
_DRIVER = frozenset((Driver, XpuDriver))
_NONE = -1
_MOST_NS = 1 << 62  # nanoseconds beyond this do not fit a column


class Range(NamedTuple):
    """A named range on a host thread. Times in nanoseconds."""

    start: int
    end: int
    process: int | str | None
    name: str


class Launches:
    """Host calls that put work on the GPU, in columns, in the order of the file."""

    def __init__(self) -> None:
        self.thread, self.call = array("i"), array("b")
        self.start, self.duration, self.correlation = array("q"), array("q"), array("q")
        self.driver = array("b")

    def __len__(self) -> int:
        return len(self.start)

    def key(self, i: int) -> tuple[int, ...]:
        """What tells launch `i` from all others."""
        return (self.thread[i], self.start[i], self.duration[i], self.correlation[i], self.call[i])

    def end(self, i: int) -> int:
        """Nanoseconds; the start where the duration is not known."""
        return self.start[i] + max(self.duration[i], 0)


class Timeline:
    """Takes the rows of a trace in any order; `Timeline.settle` then answers for them."""

    def __init__(self, region: str | None = None, mark: str | None = None) -> None:
        self.region, self.mark = region, mark
        self.mark_seen = False
        self.launches = Launches()
        self.works: dict[tuple[object, ...], int] = {}
        self.lanes: dict[tuple[object, ...], int] = {}
        self.threads: dict[tuple[object, ...], int] = {}
        self.work, self.lane = array("i"), array("i")
        self.start, self.duration = array("q"), array("q")
        self.external, self.correlation, self.node = array("q"), array("q"), array("q")
        self.launch = array("i")
        self.labels = Labels()
        self.steps: list[Range] = []
        self.regions: list[Range] = []
        self.captures: dict[int, list[tuple[int, Call]]] = {}
        self.annotations: set[str] = set()
        self.vendors: set[str] = set()
        self.host_rows = self.compiled = self.phaseless = self.unpaired = 0
        self.uncorrelated_launches = self.uncorrelated_records = 0
        self._open: dict[tuple[object, ...], list[Event]] = {}
        self._waiting: dict[int, int] = {}
        self._graphs: dict[int, int] = {}
        self._leftover: list[int] = []
        self._early: dict[int, int] = {}
        self._early_more: dict[int, list[int]] = {}

    def add(self, batch: Sequence[object]) -> None:
        """Take rows; those of no role are passed over.

        Rows are taken column by column: a trace of millions spends its time here.
        """
        rows: list[Event] = list(compress(batch, map(_TAKEN.__contains__, map(type, batch))))  # type: ignore[arg-type]
        if {row.ph for row in rows} - {"X"}:
            rows = self._whole(rows)
        self._take(rows)

    def _take(self, rows: list[Event]) -> None:
        hosts = [row for row in rows if type(row) in _HOST]
        if hosts:
            self._hosts(hosts)
        for kind, activity in _ACTIVITY.items():
            if records := [row for row in rows if type(row) is kind]:
                self._records(records, activity)
        if len(hosts) < len(rows):
            for row in rows:
                if type(row) is Op:
                    self._op(row)
                elif type(row) is Annotation:
                    self._annotation(row)

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
        return whole

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
        begin.dur = None if row.ts is None or begin.ts is None else row.ts - begin.ts
        begin.name = begin.name or row.name
        if begin.args.correlation is None:
            begin.args = row.args
        return [kind(**{name: getattr(begin, name) for name in begin.__struct_fields__})]

    def _close_open(self) -> None:
        """A begin without an end: a record all the same, without a duration."""
        rows = [begin for stack in self._open.values() for begin in stack]
        self._open.clear()
        self.unpaired += sum(type(row) is not Other for row in rows)
        self._take([row for row in rows if type(row) in _ACTIVITY])

    def _records(self, rows: list[Event], activity: Activity) -> None:
        first = len(self.work)
        works, lanes = self.works, self.lanes
        arguments = [row.args for row in rows]
        self.work.extend(
            [
                works.setdefault(
                    (row.name, activity, a.registers, a.shared_memory, a.grid, a.block), len(works)
                )
                for row, a in zip(rows, arguments, strict=True)
            ]
        )
        self.lane.extend(
            [
                lanes.setdefault(
                    (
                        row.pid if a.device is None else a.device,
                        row.tid if a.stream is None else a.stream,
                    ),
                    len(lanes),
                )
                for row, a in zip(rows, arguments, strict=True)
            ]
        )
        starts, durations = _times(rows)
        self.start.extend(starts)
        self.duration.extend(durations)
        self.external.extend(_integers([a.external_id for a in arguments]))
        self.node.extend(_integers([a.graph_node for a in arguments]))
        correlations = _integers([a.correlation for a in arguments])
        self.correlation.extend(correlations)
        self.launch.extend(map(self._launch_of, range(first, len(self.work)), correlations))
        if activity == "kernel":
            self.uncorrelated_records += correlations.count(NO_TIME)

    def _launch_of(self, record: int, correlation: int) -> int:
        """The launch that this record answers, or none yet."""
        launch = self._waiting.pop(correlation, None)
        if launch is None:
            launch = self._graphs.get(correlation)
            if launch is None:
                if correlation != NO_TIME and (
                    self._early.setdefault(correlation, record) != record
                ):
                    self._early_more.setdefault(correlation, []).append(record)
                return _NONE
        elif self.launches.call[launch] == Call.GRAPH:
            self._graphs[correlation] = launch
        return launch

    def _hosts(self, rows: list[Event]) -> None:
        self.host_rows += len(rows)
        names = {row.name for row in rows}
        if len(self.vendors) < len(_KINDS):
            self.vendors |= {kind for name in names if (kind := vendor(name))}
        calls = {name: call for name in names if (call := classify(name)) is not Call.OTHER}
        rows = [row for row in rows if row.name in calls]
        if any(call >= Call.CAPTURE_BEGIN for call in calls.values()):
            rows = self._without_captures(rows, calls)
        launches, threads = self.launches, self.threads
        first = len(launches)
        launches.thread.extend(
            [threads.setdefault((row.pid, row.tid), len(threads)) for row in rows]
        )
        kinds = [calls[row.name] for row in rows]
        launches.call.extend(kinds)
        launches.driver.extend([type(row) in _DRIVER for row in rows])
        starts, durations = _times(rows)
        launches.start.extend(starts)
        launches.duration.extend(durations)
        correlations = _integers([row.args.correlation for row in rows])
        launches.correlation.extend(correlations)
        for index, (correlation, call) in enumerate(zip(correlations, kinds, strict=True), first):
            if correlation == NO_TIME:
                self.uncorrelated_launches += call is not Call.MEMORY
            elif correlation in self._early:
                self._answer(index, correlation)
            elif correlation in self._graphs or (
                self._waiting.setdefault(correlation, index) != index
            ):
                self._leftover.append(index)

    def _without_captures(self, rows: list[Event], calls: Mapping[str, Call]) -> list[Event]:
        """Note where captures begin and end; the rows that are left are launches and copies."""
        left: list[Event] = []
        for row in rows:
            if (call := calls[row.name]) < Call.CAPTURE_BEGIN:
                left.append(row)
                continue
            thread = self.threads.setdefault((row.pid, row.tid), len(self.threads))
            self.captures.setdefault(thread, []).append((_time(row)[0], call))
        return left

    def _answer(self, launch: int, correlation: int) -> None:
        """Records that stood before their launch in the file find it."""
        for record in (self._early.pop(correlation), *self._early_more.pop(correlation, ())):
            self.launch[record] = launch
        if self.launches.call[launch] == Call.GRAPH:
            self._graphs[correlation] = launch

    def _op(self, row: Event) -> None:
        start, duration = _time(row)
        if start == NO_TIME:
            return
        thread = self.threads.setdefault((row.pid, row.tid), len(self.threads))
        self.labels.op(row.name, thread, start, max(duration, 0), row.args.external_id)

    def _annotation(self, row: Event) -> None:
        name = row.name
        if name.endswith("(dynamo_timed)"):
            self.compiled += 1
        if name == self.mark:
            self.mark_seen = True
        start, duration = _time(row)
        if start == NO_TIME:
            return
        span = Range(start, start + max(duration, 0), row.pid, name)
        if name.startswith(STEP_PREFIX):
            self.steps.append(span)
        if self.region is not None:
            if name == self.region:
                self.regions.append(span)
            elif len(self.annotations) < _MOST_NAMES:
                self.annotations.add(name)

    def settle(self) -> Settled:
        """Match what is left, drop what stands twice, apply the region; see `Settled`."""
        self._close_open()
        return Settled(self)

    def leftovers(self) -> list[int]:
        """Launches of kernels or graphs that no record has answered."""
        calls = self.launches.call
        candidates = [*self._waiting.values(), *self._leftover]
        return sorted(i for i in candidates if calls[i] != Call.MEMORY)

    def orphans(self) -> list[int]:
        """Kernel records whose launch the trace does not hold."""
        kernels = {w for key, w in self.works.items() if key[1] == "kernel"}
        early = [*self._early.values(), *(i for m in self._early_more.values() for i in m)]
        return [i for i in early if self.work[i] in kernels]


class Settled:
    """What a timeline holds once all rows are in.

    `records` in order of start; `launches` and `graph_launches`, with captures, duplicates and
    driver rows inside runtime rows left out; `lost`, the launches without a record; `orphans`, how
    many kernels no launch row is left for, of which `extra` share a launch with another kernel.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        launches = timeline.launches
        inside = _driver_rows_inside(launches)
        order, self.duplicates = _unique_order(timeline)
        lost = self._lost(inside)
        twice: set[int] = set()
        if self.duplicates or lost:
            twice = _duplicate_launches(launches)
            self.duplicates += len(twice)
        self.lost = [i for i in lost if i not in twice]
        captured = {i for i in self.lost if self._captured(i)}
        self.captured = len(captured)
        self.lost = [i for i in self.lost if i not in captured]
        out = captured | twice | inside.keys()
        counted = [i for i in range(len(launches)) if launches.call[i] != Call.MEMORY]
        if out:
            counted = [i for i in counted if i not in out]
        orphans = timeline.orphans()
        self.orphans = len(orphans)
        self.extra = self._extra_kernels(orphans)
        if timeline.region is not None:
            spans = _merged(timeline.regions)
            order = [i for i in order if _within(spans, self._launched_at(i))]
            counted = [i for i in counted if _within(spans, launches.start[i])]
            self.lost = [i for i in self.lost if _within(spans, launches.start[i])]
        self.launches = len(counted)
        self.graph_launches = sum(launches.call[i] == Call.GRAPH for i in counted)
        self.steps = self._steps(order)
        self.records = self._records(order)

    def _lost(self, inside: dict[int, int]) -> list[int]:
        """Launches without a record. A runtime launch and the driver rows inside it are one."""
        timeline = self.timeline
        lost = set(timeline.leftovers())
        answered = {parent for child, parent in inside.items() if child not in lost}
        return sorted(lost - inside.keys() - answered)

    def _captured(self, launch: int) -> bool:
        launches = self.timeline.launches
        marks = sorted(self.timeline.captures.get(launches.thread[launch], ()))
        before = [call for start, call in marks if start <= launches.start[launch]]
        return bool(before) and before[-1] is Call.CAPTURE_BEGIN

    def _extra_kernels(self, orphans: Sequence[int]) -> int:
        """Kernels beyond the first of one launch: their launch is there, and was answered."""
        if not orphans:
            return 0
        known = set(self.timeline.launches.correlation)
        return sum(self.timeline.correlation[i] in known for i in orphans)

    def _launched_at(self, record: int) -> int:
        launch = self.timeline.launch[record]
        return NO_TIME if launch == _NONE else self.timeline.launches.start[launch]

    def _steps(self, order: Sequence[int]) -> tuple[Step, ...]:
        """Kernels by the step that was open, in the launching process, when they were launched."""
        timeline = self.timeline
        if not timeline.steps or not len(timeline.launches):
            return ()
        kernels = {w for key, w in timeline.works.items() if key[1] == "kernel"}
        processes = [key[0] for key in timeline.threads]
        by_process: dict[object, list[Range]] = {}
        for step in sorted(timeline.steps):
            by_process.setdefault(step.process, []).append(step)
        count: Counter[str] = Counter()
        time: Counter[str] = Counter()
        for i in order:
            launch = timeline.launch[i]
            if launch == _NONE or timeline.work[i] not in kernels:
                continue
            ranges = by_process.get(processes[timeline.launches.thread[launch]], ())
            found = _open_at(ranges, timeline.launches.start[launch])
            if found is not None:
                count[found.name] += 1
                time[found.name] += max(timeline.duration[i], 0)
        names = dict.fromkeys(step.name for step in sorted(timeline.steps))
        return tuple(Step(name, count[name], time[name]) for name in names)

    def _records(self, order: Sequence[int]) -> Records:
        timeline = self.timeline
        raw = list(timeline.works)
        labels = timeline.labels.resolve()
        index: dict[tuple[int, str | None], int] = {}
        work = array("i")
        if not labels and isinstance(order, range):
            index = {(w, None): w for w in range(len(raw))}
            work = timeline.work
        else:
            for i in order:
                key = (timeline.work[i], labels.get(timeline.external[i]) if labels else None)
                work.append(index.setdefault(key, len(index)))
        lanes = tuple(Lane(_place(d), _place(s)) for d, s in timeline.lanes)
        return Records(
            tuple(_work(raw[w], label) for w, label in index),
            lanes,
            work,
            _picked(timeline.lane, order),
            _picked(timeline.start, order),
            _picked(timeline.duration, order),
        )


def _work(key: tuple[object, ...], label: str | None) -> Work:
    name, activity, registers, shared_memory, grid, block = key
    return Work(
        name or "(no name)",  # type: ignore[arg-type]
        activity,  # type: ignore[arg-type]
        label if activity == "kernel" else None,
        grid,  # type: ignore[arg-type]
        block,  # type: ignore[arg-type]
        registers,  # type: ignore[arg-type]
        shared_memory,  # type: ignore[arg-type]
    )


def _place(value: object) -> str:
    return "?" if value is None else str(value)


def _picked(column: array[int], order: Sequence[int]) -> array[int]:
    if isinstance(order, range):
        return column
    return array(column.typecode, map(column.__getitem__, order))


def _times(rows: Sequence[Event]) -> tuple[list[int], list[int]]:
    """Starts and durations in nanoseconds; see `_time`."""
    try:
        starts = [round(row.ts * 1000) for row in rows]  # type: ignore[operator]
        durations = [round(row.dur * 1000) for row in rows]  # type: ignore[operator]
    except (TypeError, OverflowError):  # a missing time, or one beyond all measure
        pass
    else:
        plain = not rows or (
            min(starts) > -_MOST_NS and max(starts) < _MOST_NS
            and min(durations) > 0 and max(durations) < _MOST_NS
        )  # fmt: skip
        if plain:
            return starts, durations
    times = [_time(row) for row in rows]
    return [start for start, _ in times], [duration for _, duration in times]


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


def _integers(values: list[int | None]) -> list[int]:
    """Integers that fit a column; `NO_TIME` for none. Those that do not fit are hashed."""
    if None in values:
        values = [NO_TIME if v is None else v for v in values]
    numbers: list[int] = values  # type: ignore[assignment]
    if numbers and not -(1 << 63) <= min(numbers) <= max(numbers) < 1 << 63:
        numbers = [v if -(1 << 63) <= v < 1 << 63 else hash(v) for v in numbers]
    return numbers


def _unique_order(timeline: Timeline) -> tuple[Sequence[int], int]:
    """The records by start, those without one last, and how many stood there twice."""
    start, n = timeline.start, len(timeline.start)
    order: Sequence[int] = range(n)
    if not all(map(le, start, islice(start, 1, None))):
        order = sorted(order, key=start.__getitem__)
    untimed = 0
    while untimed < n and start[order[untimed]] == NO_TIME:
        untimed += 1
    columns = (
        timeline.duration, timeline.work, timeline.lane, timeline.correlation, timeline.node,
        timeline.external,
    )  # fmt: skip
    doubled: set[int] = set()
    group: set[tuple[int, ...]] = set()
    previous, first = None, 0
    for position, i in enumerate(order):
        if start[i] != previous:
            previous, first = start[i], i
            group.clear()
            continue
        if not group:
            group.add(tuple(column[first] for column in columns))
        key = tuple(column[i] for column in columns)
        if key in group:
            doubled.add(position)
        group.add(key)
    if not untimed and not doubled:
        return order, 0
    kept = [i for position, i in enumerate(order) if position not in doubled]
    split = sum(1 for position in range(untimed) if position not in doubled)
    return [*kept[split:], *kept[:split]], len(doubled)


def _duplicate_launches(launches: Launches) -> set[int]:
    seen: set[tuple[int, ...]] = set()
    twice: set[int] = set()
    for i in range(len(launches)):
        if launches.start[i] == NO_TIME:
            continue
        key = launches.key(i)
        if key in seen:
            twice.add(i)
        seen.add(key)
    return twice


def _driver_rows_inside(launches: Launches) -> dict[int, int]:
    """Driver launches made inside a runtime launch of the same thread, each with that launch."""
    drivers = [i for i, d in enumerate(launches.driver) if d and launches.call[i] != Call.MEMORY]
    if not drivers:
        return {}
    threads = {launches.thread[i] for i in drivers}
    outer: dict[int, list[int]] = {t: [] for t in threads}
    for i, driver in enumerate(launches.driver):
        if not driver and launches.thread[i] in threads and launches.call[i] != Call.MEMORY:
            outer[launches.thread[i]].append(i)
    starts: dict[int, list[int]] = {}
    for thread, indices in outer.items():
        indices.sort(key=launches.start.__getitem__)
        starts[thread] = [launches.start[i] for i in indices]
    inside: dict[int, int] = {}
    for i in drivers:
        thread = launches.thread[i]
        position = bisect_right(starts[thread], launches.start[i]) - 1
        if position >= 0 and launches.end(outer[thread][position]) >= launches.start[i]:
            inside[i] = outer[thread][position]
    return inside


def _merged(ranges: Iterable[Range]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for span in sorted(ranges):
        if merged and span.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end))
        else:
            merged.append((span.start, span.end))
    return merged


def _within(spans: list[tuple[int, int]], time: int) -> bool:
    position = bisect_right(spans, (time, _MOST_NS)) - 1
    return position >= 0 and time <= spans[position][1]


def _open_at(ranges: Sequence[Range], time: int) -> Range | None:
    position = bisect_right(ranges, time, key=lambda r: r.start) - 1
    return ranges[position] if position >= 0 and time <= ranges[position].end else None


_TAKEN = frozenset((*_ACTIVITY, *_HOST, Op, Annotation, Other))
_KINDS = ("cuda", "hip", "xpu")
_MOST_NAMES = 1000  # annotation names kept for the error that lists them
