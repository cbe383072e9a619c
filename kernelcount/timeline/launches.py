"""Host calls that put work on the GPU, and which device records answer them.

A record answers a launch by correlation. Several launches may bear the same one: the rows of
several processes in one file, a driver's row beside the runtime's, a row written twice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate, compress, count, repeat
from typing import NamedTuple, Union

from kernelcount.devices.calls import Call
from kernelcount.model import NO_TIME

# Compared with columns of integers, which is slower with an enum's members.
_LAUNCH, _GRAPH, _MEMORY = int(Call.LAUNCH), int(Call.GRAPH), int(Call.MEMORY)

NONE = -1
"""In a column of indices: there is none."""

NEVER = float("-inf")
"""In a column of times of the host: it is not known."""

_Records = Union[int, "deque[int]"]  # one, as nearly always, or several


class Launches:
    """The calls in columns, in the order of the file.

    Times are in microseconds as in the trace, a missing start being `NEVER`.
    """

    def __init__(self) -> None:
        self.thread, self.call, self.driver = array("i"), array("b"), array("b")
        self.start, self.duration = array("d"), array("d")
        self.correlation = array("q")

    def __len__(self) -> int:
        return len(self.start)

    def add(
        self,
        threads: array[int],
        calls: array[int],
        times: tuple[array[float], array[float]],
        correlations: array[int],
        drivers: array[int],
    ) -> int:
        """Take calls; return the index of the first."""
        first = len(self)
        self.thread.extend(threads)
        self.call.extend(calls)
        self.start.extend(times[0])
        self.duration.extend(times[1])
        self.correlation.extend(correlations)
        self.driver.extend(drivers)
        return first

    def bearing(self, correlations: Collection[int]) -> dict[int, list[int]]:
        """The calls that bear each of these correlations, in order of start."""
        return grouped(self.correlation, correlations, self.start)

    def written_twice(self) -> set[int]:
        """Rows of kernel launches that stood there before, alike in every field."""
        seen: set[tuple[float, ...]] = set()
        twice: set[int] = set()
        columns = (self.thread, self.start, self.duration, self.correlation, self.call, self.driver)
        for i, key in enumerate(zip(*columns, strict=True)):
            if key in seen and self.call[i] != _MEMORY:
                twice.add(i)
            seen.add(key)
        return twice

    def driver_rows_inside(self) -> dict[int, int]:
        """Driver launches made inside a runtime launch of the same thread, each with that one."""
        drivers = [
            i
            for i in compress(count(), self.driver)
            if self.call[i] != _MEMORY and self.start[i] != NEVER
        ]
        if not drivers:
            return {}
        outer: dict[int, list[int]] = {self.thread[i]: [] for i in drivers}
        for i, (thread, driver) in enumerate(zip(self.thread, self.driver, strict=True)):
            if not driver and thread in outer and self.call[i] != _MEMORY:
                outer[thread].append(i)
        for indices in outer.values():
            indices.sort(key=self.start.__getitem__)
        starts = {thread: [self.start[i] for i in indices] for thread, indices in outer.items()}
        inside: dict[int, int] = {}
        for i in drivers:
            thread = self.thread[i]
            position = bisect_right(starts[thread], self.start[i]) - 1
            if position >= 0 and self._end(outer[thread][position]) >= self.start[i]:
                inside[i] = outer[thread][position]
        return inside

    def graphs(self, indices: Iterable[int]) -> int:
        """How many of these calls launch a graph."""
        return sum(self.call[i] == _GRAPH for i in indices) if _GRAPH in self.call else 0

    def same_correlation(self, i: int, other: int) -> bool:
        """Whether two rows bear one correlation."""
        return self.correlation[i] == self.correlation[other]

    def _end(self, i: int) -> float:
        return self.start[i] + max(self.duration[i], 0.0)


class Captures:
    """When streams were captured into CUDA graphs: what is launched then runs nothing.

    That holds for all threads of a process: backward is captured from a thread of its own.
    """

    def __init__(self) -> None:
        self._marks: dict[object, list[tuple[float, int]]] = {}
        self._depths: dict[object, tuple[list[float], list[int]]] = {}

    def mark(self, process: object, time: float, call: Call) -> None:
        """Note a begin or an end, at `time` microseconds."""
        step = 1 if call is Call.CAPTURE_BEGIN else -1
        self._marks.setdefault(process, []).append((time, step))
        self._depths.clear()

    def open_at(self, process: object, time: float) -> bool:
        """Whether anything was being captured then."""
        if process not in self._marks:
            return False
        if process not in self._depths:
            marks = sorted(self._marks[process])
            depths = list(accumulate((step for _, step in marks), _deeper))
            self._depths[process] = ([time for time, _ in marks], depths)
        times, depths = self._depths[process]
        position = bisect_right(times, time) - 1
        return position >= 0 and depths[position] > 0


def _deeper(depth: int, step: int) -> int:
    return max(depth + step, 0)


class Answers(NamedTuple):
    """What pairing has to know of the records. Those `dropped` stood there twice."""

    correlation: Sequence[int]
    start: Sequence[float]
    is_kernel: Callable[[int], bool]
    device: Callable[[int], object]
    dropped: Collection[int]


class Pairing:
    """Pairs records with launches while rows come in, in any order.

    What has been paired is not kept, so that memory stays bounded. `launch` is the column that says
    for each record which launch it answers. A graph launch is answered by any number of records,
    any other by one. `finish` looks at what is left over.
    """

    def __init__(self, launches: Launches) -> None:
        self.launch = array("i")
        self._launches = launches
        # Kernels answer launches, copies and fills the calls that start them: index 1 and 0.
        self._waiting: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._early: tuple[dict[int, _Records], dict[int, _Records]] = ({}, {})
        self._graphs: dict[int, int] = {}
        self._answered_graphs: set[int] = set()
        self._leftover: list[int] = []

    def add_records(self, correlations: Sequence[int], *, kernels: bool) -> None:
        """Take records; `NO_TIME` stands for no correlation."""
        first = len(self.launch)
        waiting = self._waiting[kernels]
        launches = list(map(waiting.pop, correlations, repeat(NONE)))
        if NONE in launches:
            early, graphs = self._early[kernels], self._graphs
            for record, correlation in enumerate(correlations, first):
                if launches[record - first] != NONE or correlation == NO_TIME:
                    continue
                if graphs and (graph := graphs.get(correlation)) is not None:
                    self._answered_graphs.add(graph)
                    launches[record - first] = graph
                elif (known := early.setdefault(correlation, record)) != record:
                    early[correlation] = _with(known, record)
        self.launch.extend(array("i", launches))

    def add_launches(self, first: int) -> None:
        """Take the launches from index `first` on."""
        correlations = self._launches.correlation[first:]
        calls = self._launches.call[first:]
        # By hand what a method for one launch would do: there are as many as kernels.
        take = {_LAUNCH: self._early[1].pop, _MEMORY: self._early[0].pop}
        wait = {_LAUNCH: self._waiting[1].setdefault, _MEMORY: self._waiting[0].setdefault}
        for i, (correlation, call) in enumerate(zip(correlations, calls, strict=True), first):
            if correlation == NO_TIME:
                continue
            if call == _GRAPH:
                self._add_graph(i, correlation)
                continue
            record = take[call](correlation, None)
            if record is None:
                if wait[call](correlation, i) != i:
                    self._leftover.append(i)
            elif isinstance(record, int):
                self.launch[record] = i
            else:
                self.launch[record.popleft()] = i
                if record:
                    self._early[call == _LAUNCH][correlation] = record

    def _add_graph(self, launch: int, correlation: int) -> None:
        if self._graphs.setdefault(correlation, launch) != launch:
            self._leftover.append(launch)
            return
        for early in self._early:
            for record in _each(early.pop(correlation, deque())):
                self.launch[record] = launch
                self._answered_graphs.add(launch)

    def finish(self, records: Answers, no_launches: Collection[int]) -> tuple[set[int], int]:
        """Pair what is left over; return the launches without a record, and the surplus.

        The surplus is how many kernels share an ordinary launch with another. `no_launches` are
        rows that are no launch of their own.
        """
        unanswered = self._unanswered(records)
        alone = [r for early in self._early for known in early.values() for r in _each(known)]
        wanted = {records.correlation[r] for r in alone if r not in records.dropped}
        # A graph takes all records of its correlation, those of another launch among them.
        wanted.update(self._graphs.keys() & {self._launches.correlation[i] for i in unanswered})
        calls = self._launches.bearing(wanted)
        answers = grouped(records.correlation, calls, records.start)
        surplus = 0
        for correlation, group in calls.items():
            own = [i for i in group if i not in no_launches]
            if not own or correlation not in answers:
                continue
            pairs, more = self._dealt(own, answers[correlation], records)
            surplus += more
            for launch, record in pairs:
                self.launch[record] = launch
            unanswered.update(group)
            unanswered -= {launch for launch, _ in pairs}
        return unanswered, surplus

    def lacks_records(self) -> bool:
        """Whether a launch of a kernel or a graph has no record yet."""
        graphs = len(self._answered_graphs) < len(self._graphs)
        return graphs or bool(self._waiting[True] or self._leftover)

    def _unanswered(self, records: Answers) -> set[int]:
        """Launches without a record, calls for copies and fills among them."""
        graphs = set(self._graphs.values())
        unanswered = (graphs - self._answered_graphs) | set(self._leftover)
        for waiting in self._waiting:
            unanswered.update(waiting.values())
        freed = {self.launch[record] for record in records.dropped}
        return unanswered | (freed - graphs - {NONE})

    def _dealt(
        self, launches: Sequence[int], found: Sequence[int], records: Answers
    ) -> tuple[list[tuple[int, int]], int]:
        """Pairs of launches and records of one correlation, both in order of start; the surplus."""
        found = [r for r in found if r not in records.dropped]
        kernels = [r for r in found if records.is_kernel(r)]
        others = [r for r in found if not records.is_kernel(r)]
        call = self._launches.call
        of_kernels = [i for i in launches if call[i] != _MEMORY]
        of_others = [i for i in launches if call[i] == _MEMORY]
        graphs = [i for i in of_kernels if call[i] == _GRAPH]
        pairs, left = _shared_out(of_kernels, kernels, graphs, records)
        more, left_others = _shared_out(of_others, others, [], records)
        pairs += more
        # A graph holds copies too; ROCm makes some copies and fills with kernels.
        pairs += [(graphs[-1], r) for r in left_others if graphs]
        unused = of_others[len(others) :]
        pairs += zip(unused, left, strict=False)
        surplus = left[len(unused) :]
        pairs += [(of_kernels[-1], r) for r in surplus if of_kernels]
        return pairs, len(surplus)


class Tally(NamedTuple):
    """What became of the launches.

    `counted` are those that are launches of their own and ran something: captures, rows that stand
    there twice and driver rows inside runtime rows are left out. Of these `lost` have no record,
    and `blind` bear no correlation, so that it is not known. `captured` and `twice` say how many
    were left out for that; `surplus`, how many kernels share an ordinary launch with another.
    """

    counted: Sequence[int]
    lost: list[int]
    blind: list[int]
    captured: int
    twice: int
    surplus: int


def tally(
    launches: Launches,
    pairing: Pairing,
    captures: Captures,
    records: Answers,
    process: Sequence[object],
) -> Tally:
    """Settle the pairing. `process` names the process of each thread."""
    inside = launches.driver_rows_inside()
    same = {i for i, outer in inside.items() if launches.same_correlation(i, outer)}
    correlations = launches.correlation
    blind: set[int] = set()
    if NO_TIME in correlations:
        blind = set(compress(count(), map(NO_TIME.__eq__, correlations)))
    twice: set[int] = set()
    if blind or records.dropped or pairing.lacks_records():
        twice = launches.written_twice()
    unanswered, surplus = pairing.finish(records, twice | same)
    unknown = {i for i in blind | unanswered if launches.call[i] != _MEMORY}
    # A runtime launch and the driver row inside it are one: one record answers both.
    answered = {outer for i, outer in inside.items() if i not in unknown}
    unknown -= inside.keys() | answered | twice
    captured = {
        i for i in unknown if captures.open_at(process[launches.thread[i]], launches.start[i])
    }
    out = captured | twice | inside.keys()
    counted: Sequence[int] = range(len(launches))
    if out or _MEMORY in launches.call:
        counted = [i for i in counted if launches.call[i] != _MEMORY and i not in out]
    unknown -= captured
    lost, blind = unknown - blind, unknown & blind
    return Tally(counted, sorted(lost), sorted(blind), len(captured), len(twice), surplus)


def _shared_out(
    launches: Sequence[int], found: Sequence[int], graphs: Sequence[int], records: Answers
) -> tuple[list[tuple[int, int]], Sequence[int]]:
    """One record for each launch, or to graphs all of one device; what is left over."""
    if graphs:
        devices = list(dict.fromkeys(map(records.device, found)))
        if len(devices) == len(launches):
            return [(launches[devices.index(records.device(r))], r) for r in found], ()
    pairs = list(zip(launches, found, strict=False))
    left = found[len(launches) :]
    if graphs:
        return [*pairs, *((graphs[-1], r) for r in left)], ()
    return pairs, left


def grouped(
    column: Sequence[int], wanted: Collection[int], start: Sequence[float]
) -> dict[int, list[int]]:
    """Indices by the value that stands in `column`, for the values wanted, in order of start."""
    groups: dict[int, list[int]] = {}
    if wanted:
        for i in compress(count(), map(wanted.__contains__, column)):
            groups.setdefault(column[i], []).append(i)
    for indices in groups.values():
        indices.sort(key=start.__getitem__)
    return groups


def _with(known: _Records, record: int) -> _Records:
    if isinstance(known, int):
        return deque((known, record))
    known.append(record)
    return known


def _each(known: _Records) -> Iterable[int]:
    return (known,) if isinstance(known, int) else known
