"""What a timeline holds once all rows are in: records with their launches, and what is missing."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import compress, count
from typing import Any

from kernelcount.model import NO_TIME, Lane, Records, Step, Work
from kernelcount.timeline.columns import picked
from kernelcount.timeline.labels import Label
from kernelcount.timeline.launches import NEVER, NONE, Answers, Tally, tally
from kernelcount.timeline.ranges import covered, of_processes, open_at, start_of, within
from kernelcount.timeline.taking import Timeline

_WHOLE = 100  # percent


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
        ranges = of_processes(timeline.regions).get(process, ())
        return within(covered(ranges), time)

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
        by_process = of_processes(self.timeline.regions)
        merged = {process: covered(ranges) for process, ranges in by_process.items()}
        threads, starts = self.timeline.launches.thread, self.timeline.launches.start

        def inside(launch: int) -> bool:
            if launch == NONE:
                return False
            spans = merged.get(self._processes[threads[launch]], ())
            return within(spans, starts[launch])

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
        by_process = of_processes(timeline.steps)
        threads, starts = timeline.launches.thread, timeline.launches.start
        number: Counter[str] = Counter()
        time: Counter[str] = Counter()
        for i in order:
            launch = self._launch[i]
            if launch == NONE or not self.is_kernel(i):
                continue
            ranges = by_process.get(self._processes[threads[launch]], ())
            found = open_at(ranges, starts[launch])
            if found is not None:
                number[found.name] += 1
                time[found.name] += max(timeline.duration[i], 0)
        names = dict.fromkeys(step.name for step in sorted(timeline.steps, key=start_of))
        return tuple(Step(name, number[name], time[name]) for name in names)

    def _records(self, order: Sequence[int]) -> Records:
        timeline = self.timeline
        raw = list(timeline.works)
        works = picked(timeline.work, order)
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
            picked(timeline.lane, order),
            picked(timeline.start, order),
            picked(timeline.duration, order),
            picked(timeline.external, order) if len(timeline.labels) else array("q"),
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
    ops = (label or ()) if activity == "kernel" else ()
    return Work(
        name or "(no name)",
        activity,
        ops[0] if ops else None,
        grid,
        block,
        registers,
        shared_memory,
        ops[-1] if ops else None,
        between=ops[1:-1],
        occupancy=_share(occupancy),
    )


def _share(percent: float | None) -> float | None:
    """From 0 to 1; None for what is no share of anything."""
    return None if percent is None or not 0 <= percent <= _WHOLE else percent / _WHOLE


def _place(value: object) -> str:
    return "?" if value is None else str(value)
