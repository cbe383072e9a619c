"""The raw record of one variant's run, from which every figure is derived; or why there is none."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import add, le
from typing import Literal

from kernelcount.model.figures import Counters, Numerics, Paper, Price, Remedy, Timing
from kernelcount.model.places import Break, Cost, Gap, Provenance, Recompilation, Sync
from kernelcount.model.records import NO_TIME, Activity, DeviceTally, Note, Records, Row, Step

EAGER_CODE = frozenset({"not-compiled", "recompile-limit"})
"""Notes which say that a compiled variant ran as eager code: its figures are no achievement."""

NOT_MEASURED = 3  # the exit code of NotMeasuredError

NOT_TIMED = "not-timed"
"""The note of a variant that was counted, and failed when it was to be timed."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What the numbers depend on. None: not known, as in a trace that does not say.

    `architecture` is the GPU's, such as ``sm_90``; `libraries` are those that launch kernels, with
    their versions, where they can be told.
    """

    device: str | None = None
    kind: str | None = None
    torch: str | None = None
    triton: str | None = None
    kernelcount: str | None = None
    architecture: str | None = None
    libraries: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked: `spec` as the user wrote it, `inputs` such as ``f32[1000000]``."""

    spec: str
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """The raw record of one variant's run, or of one trace.

    `launches` counts host calls that put kernels on the GPU (captures left out; a graph launch is
    one), None where the trace has no runtime rows. `complete`: every launch has its device record;
    None where that cannot be told. `stable`: repeated steady calls launched the same kernels; None
    for a trace, which holds what somebody recorded. `paper` comes with the basis of that name.
    `price`: what came before the steady calls; `peak_memory`: bytes that a call holds at its peak
    above its inputs; `numerics`: its results beside the first variant's; `remedies`: what was tried
    to make it faster, empty where that was not asked. `counters`: what Nsight Compute says of each
    record, None where it was not matched; empty where it was not asked. `provenance`: which lines
    the records come from; None: nobody has looked. `breaks` and
    `recompilations` of torch.compile, and `skipped_graphs`: why Inductor did without CUDA graphs;
    None where nothing was compiled, or it cannot be told. `breaks_cost`: what all breaks cost
    together. `syncs`: the times that the
    CPU waited, in order; `gaps`: the longest times for which the GPU had to wait for the CPU, and
    `idle_ns`, the sum of all such; None: not looked for, or it cannot be told.
    """

    name: str
    environment: Environment = Environment()
    target: Target | None = None
    records: Records = field(default_factory=Records)
    launches: int | None = None
    graph_launches: int | None = None
    complete: bool | None = None
    stable: bool | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    basis: Literal["measured", "paper"] = "measured"
    paper: Paper | None = None
    timing: Timing | None = None
    price: Price | None = None
    peak_memory: int | None = None
    numerics: Numerics | None = None
    remedies: tuple[Remedy, ...] = ()
    counters: tuple[Counters | None, ...] = ()
    provenance: Provenance | None = None
    breaks: tuple[Break, ...] | None = None
    breaks_cost: Cost | None = None
    recompilations: tuple[Recompilation, ...] | None = None
    skipped_graphs: tuple[str, ...] | None = None
    syncs: tuple[Sync, ...] | None = None
    gaps: tuple[Gap, ...] | None = None
    idle_ns: int | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether CPU operations were counted, no GPU being involved."""
        return self.environment.kind == "cpu"

    def count(self, activity: Activity) -> int:
        """How many records are of this activity."""
        per_work = Counter(self.records.work)
        works = self.records.works
        return sum(n for w, n in per_work.items() if works[w].activity == activity)

    @property
    def kernel_time_ns(self) -> int:
        """Sum of the valid kernel durations, in nanoseconds."""
        return sum(t.kernel_time_ns for t in self.devices().values())

    @property
    def untimed_kernels(self) -> int:
        """Kernels whose duration is missing or invalid: counted, left out of the times."""
        r = self.records
        if NO_TIME not in r.duration_ns:
            return 0
        kernel = [w.activity == "kernel" for w in r.works]
        pairs = zip(r.work, r.duration_ns, strict=True)
        return sum(1 for w, d in pairs if d == NO_TIME and kernel[w])

    @property
    def busy_ns(self) -> int:
        """Nanoseconds during which at least one kernel ran, on any device; overlap counts once.

        Kernels without a valid start or duration are left out.
        """
        return self._covered([w.activity == "kernel" for w in self.records.works])

    @property
    def occupied_ns(self) -> int:
        """Nanoseconds during which anything ran, copies and fills too; overlap counts once."""
        return self._covered([True] * len(self.records.works))

    @property
    def span_ns(self) -> int:
        """Nanoseconds from the start of the first record to the end of the last, of those timed."""
        r = self.records
        timed = [
            (start, start + duration)
            for start, duration in zip(r.start_ns, r.duration_ns, strict=True)
            if NO_TIME not in (start, duration)
        ]
        return max(end for _, end in timed) - min(start for start, _ in timed) if timed else 0

    def _covered(self, wanted: list[bool]) -> int:
        """Time covered by the records of these works; those without a valid time are left out."""
        r = self.records
        starts, durations = r.start_ns, r.duration_ns
        if not all(wanted) or NO_TIME in durations or NO_TIME in starts:
            columns = zip(r.work, starts, durations, strict=True)
            timed = [wanted[w] and NO_TIME not in (s, d) for w, s, d in columns]
            starts = array("q", compress(starts, timed))
            durations = array("q", compress(durations, timed))
        if all(map(le, map(add, starts, durations), islice(starts, 1, None))):
            return sum(durations)  # nothing overlaps, as nearly always
        busy, until = 0, NO_TIME
        # The records are in order of start, so one pass with the end reached so far is enough.
        for start, end in zip(starts, map(add, starts, durations), strict=True):
            if end > until:
                busy += end - max(start, until)
                until = end
        return busy

    def _sums(self) -> dict[tuple[int, int], tuple[int, int | None]]:
        """Number and time of the records by work and lane, in the order of their first."""
        r = self.records
        number = Counter(zip(r.work, r.lane, strict=True))
        time: dict[tuple[int, int], int | None] = dict.fromkeys(number)
        for key, duration in zip(zip(r.work, r.lane, strict=True), r.duration_ns, strict=True):
            if duration != NO_TIME:
                time[key] = duration + (time[key] or 0)
        return {key: (n, time[key]) for key, n in number.items()}

    def devices(self) -> dict[str, DeviceTally]:
        """Kernels and kernel time by device number."""
        r = self.records
        tally: dict[str, DeviceTally] = {}
        for (work, lane), (n, time) in self._sums().items():
            if r.works[work].activity == "kernel":
                device = r.lanes[lane].device
                old = tally.get(device, DeviceTally(0, 0))
                tally[device] = DeviceTally(old.kernels + n, old.kernel_time_ns + (time or 0))
        return dict(sorted(tally.items()))

    def rows(self) -> tuple[Row, ...]:
        """Records by name and label, in the order in which each first ran."""
        merged: dict[tuple[str, str | None, Activity], Row] = {}
        for (index, _), (n, time) in self._sums().items():
            work = self.records.works[index]
            key = (work.name, work.caption, work.activity)
            old = merged.get(key)
            merged[key] = Row(
                work.name,
                work.caption,
                work.activity,
                n + (old.count if old else 0),
                _add(old.time_ns if old else None, time),
                _moved(old.read if old else 0, work.read, n),
                _moved(old.written if old else 0, work.written, n),
                _moved(old.flops if old else 0, work.flops, n),
                work.at_most or bool(old and old.at_most),
                work.at_least or bool(old and old.at_least),
            )
        return tuple(merged.values())


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A variant or file whose count is unknown, why, and what was seen of it in part.

    `raised`: `code` is 3, as eager is not at fault, and yet the variant raised; or the process died
    in its call, eager's too.
    """

    name: str
    reason: str
    seen: Capture | None = None
    code: int = NOT_MEASURED
    raised: bool = False


Outcome = Capture | Unmeasured


def note_codes(notes: Iterable[Note]) -> set[str]:
    """The codes of these notes."""
    return {n.code for n in notes}


def _add(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def _moved(before: int | None, each: int | None, times: int) -> int | None:
    """Bytes before and those of so many more executions; None where either is not known."""
    return None if before is None or each is None else before + each * times
