"""The nouns: frozen, slotted dataclasses from the standard library alone.

A `Capture` keeps the raw record of one variant's run; every figure is derived from it. What could
not be measured is an `Unmeasured` with a reason, never a zero.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field, is_dataclass
from itertools import compress, islice
from operator import add, le
from typing import Literal, NoReturn, TypeVar

_Class = TypeVar("_Class")

Activity = Literal["kernel", "copy", "fill", "aten", "generated"]
"""Device records are kernels, copies (memcpy) and fills (memset). Where no GPU was involved, the
records are CPU operations: ATen ops that do work, and kernels that Inductor generated."""

EAGER_CODE = frozenset({"not-compiled", "recompile-limit"})
"""Notes which say that a compiled variant ran as eager code: its figures are no achievement."""

_NOT_MEASURED = 3  # the exit code of NotMeasuredError

NOT_TIMED = "not-timed"
"""The note of a variant that was counted, and failed when it was to be timed."""

NO_TIME = -(1 << 63)
"""In a column of nanoseconds: the time is missing or invalid."""


def sealed(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass that says so of every attribute, by FrozenInstanceError.

    With slots, the standard library's raises TypeError for one that is no field (Python 3.10 to
    3.13): what it asks is whether the class is the one of before the slots.
    """

    def fixed(_: object, name: str, __: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def kept(_: object, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    cls.__setattr__ = fixed  # type: ignore[method-assign]
    cls.__delattr__ = kept  # type: ignore[method-assign]
    return cls


@dataclass(frozen=True, slots=True)
class Note:
    """A warning as data. `code` is stable and documented; `detail` is one sentence."""

    code: str
    detail: str


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
class Work:
    """What ran: identity and launch configuration of a record.

    `label` is the op that launched it, the outermost one where ops call each other, and `op` the
    innermost; None where that is not known. `grid` and `block` are in blocks and threads,
    `shared_memory` in bytes, as are `read` and `written`: what one execution moves through GPU
    memory, modelled; None where that was not worked out. `flops`: the floating-point operations of
    a matrix product, a convolution or attention, made at `precision` (see `Paper`); else None.
    `at_most`: the bytes are all of what somebody's own kernel is given, of which it may leave out.
    `occupancy`, 0 to 1: the share of the warps that a multiprocessor can hold, as the profiler
    estimates it from the launch.
    """

    name: str
    activity: Activity
    label: str | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    registers: int | None = None
    shared_memory: int | None = None
    op: str | None = None
    read: int | None = None
    written: int | None = None
    flops: int | None = None
    precision: str | None = None
    at_most: bool = False
    occupancy: float | None = None

    @property
    def caption(self) -> str | None:
        """The op, or the own name of a kernel that needs no other: Triton's, a generated one's.

        None for a C++ kernel without an op, as in a graph replay: its name is no label.
        """
        if self.label is None and self.activity in ("kernel", "generated"):
            return self.name if self.name.isidentifier() else None
        return self.label


@dataclass(frozen=True, slots=True)
class Lane:
    """Where it ran. Stream 7 of device 0 is not stream 7 of device 1."""

    device: str
    stream: str


@dataclass(frozen=True, slots=True)
class Record:
    """One execution. Times are in nanoseconds; None: missing or invalid in the trace."""

    work: Work
    lane: Lane
    start_ns: int | None
    duration_ns: int | None


@dataclass(frozen=True, slots=True)
class Records:
    """Records in the order in which they started, kept in columns.

    A trace of a million kernels stays at some 30 bytes a record: `work` and `lane` index the
    tables `works` and `lanes`; `start_ns` and `duration_ns` hold `NO_TIME` where there is none.
    `call`: what is the same for records that one call of an op launched; empty: it is not known.
    """

    works: tuple[Work, ...] = ()
    lanes: tuple[Lane, ...] = ()
    work: array[int] = field(default_factory=lambda: array("i"))
    lane: array[int] = field(default_factory=lambda: array("i"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    duration_ns: array[int] = field(default_factory=lambda: array("q"))
    call: array[int] = field(default_factory=lambda: array("q"), compare=False)

    def __len__(self) -> int:
        return len(self.work)

    def __iter__(self) -> Iterator[Record]:
        for w, lane, start, duration in zip(
            self.work, self.lane, self.start_ns, self.duration_ns, strict=True
        ):
            yield Record(
                self.works[w],
                self.lanes[lane],
                None if start == NO_TIME else start,
                None if duration == NO_TIME else duration,
            )


@dataclass(frozen=True, slots=True)
class Row:
    """All records of one name and label (see `Work.caption`).

    `time_ns` is None where no record has a valid time; `read` and `written`, in bytes, where what
    one of them moves was not worked out, and `flops` where one has no formula. `at_most`: as in
    `Work`, of any of them.
    """

    name: str
    label: str | None
    activity: Activity
    count: int
    time_ns: int | None
    read: int | None = None
    written: int | None = None
    flops: int | None = None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class DeviceTally:
    """Kernels on one device and the sum of their durations, in nanoseconds."""

    kernels: int
    kernel_time_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """Kernels launched during one ``ProfilerStep#`` range, wherever they ran."""

    name: str
    kernels: int
    kernel_time_ns: int


@dataclass(frozen=True, slots=True)
class Paper:
    """What was worked out for a GPU on which nothing ran; the rest stands in the records.

    `generated`: kernels that Inductor generates; `library`: calls of what it does not; `at_least`:
    one of these may launch more kernels than counted. `read`, `written`, `unit`, `floor` in bytes:
    `unit` is the largest array that goes in or comes out, `floor` has each read or written once.
    `bandwidth` in bytes a second; `bound_ns`: what the bytes take at least, None where memory is
    not what bounds the call.

    `flops`: operations by precision (``f32``, ``tf32``, ``bf16``, ``f16``, ``f64``, ``fp8``), two
    for each multiplication with its addition, of the ops that torch.utils.flop_counter has a
    formula for. `tensor_cores`: those of these precisions that run on the card's tensor cores.
    `own`: calls of ops that are not torch's, in order: how many kernels each launches is not known
    and not counted; its bytes, all of what it is given, are in `read` and `written`.
    """

    generated: int
    library: int
    at_least: bool
    read: int
    written: int
    unit: int
    floor: int
    bandwidth: int
    bound_ns: int | None = None
    flops: tuple[tuple[str, int], ...] = ()
    tensor_cores: tuple[str, ...] = ()
    own: tuple[Work, ...] = ()

    @property
    def at_most(self) -> bool:
        """Whether `read` and `written` are an upper bound."""
        return bool(self.own)

    @property
    def transfers(self) -> float | None:
        """Bytes moved, in units of the largest array; None where there is no array."""
        return (self.read + self.written) / self.unit if self.unit else None


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """Nanoseconds that the CPU needs for a call of one kernel; None: it was not measured.

    `eager_ns`: of the plainest eager op; `module_ns`: of a module; `compiled_ns`: of a compiled
    function.
    """

    eager_ns: float | None = None
    module_ns: float | None = None
    compiled_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a call takes without a profiler: nanoseconds a call, one sample for each turn.

    Variants of one run took turns, so that their samples of one index belong together. A sample is
    the mean of `calls` calls back to back, or of one with its arguments made ready before.
    `together`: the names of the variants that took turns. `launching`: what launching costs on this
    machine, where it was measured beside them.
    """

    samples_ns: tuple[float, ...]
    calls: int = 1
    together: tuple[str, ...] = ()
    launching: LaunchCosts | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """How the time of a call compares with that of another variant, the two timed in turn.

    `ratio` is the other's time over this one's: above 1, this one is faster; `low` and `high`
    enclose it. The verdict is ``faster``, ``slower`` or ``no difference``.
    """

    ratio: float
    low: float
    high: float
    verdict: Literal["faster", "slower", "no difference"]


@dataclass(frozen=True, slots=True)
class Price:
    """What the first calls cost: nanoseconds of the first, and of all compiling in all calls.

    `recompiles`: graphs that were compiled after the first call. None: it cannot be told, or
    nothing is compiled.
    """

    first_call_ns: int
    compile_ns: int | None = None
    recompiles: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """How many kernels more a call launches for its graph breaks; None: it cannot be told.

    `why` says from which two counts on paper that is, or why it cannot be told.
    """

    kernels: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """A place at which Dynamo ended a graph, or gave a function up: `line` of `file`.

    However often a break was met there, for other inputs or in a function that was called from
    several, it is one. `reason` is short, as in ``print``; `explanation` is Dynamo's own. `cost`:
    what it costs while the other breaks stay.
    """

    file: str
    line: int | None
    function: str
    reason: str
    explanation: str = ""
    cost: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Recompilation:
    """A function that was compiled once more, as a `guard` on what it was compiled for failed.

    `line` is where it begins in `file`, or where it goes on after a graph break.
    """

    file: str
    line: int
    function: str
    guard: str


@dataclass(frozen=True, slots=True)
class Rates:
    """What a GPU was measured to reach; None: it could not be measured.

    `copy` and `copy_l2`: bytes a second, read plus written, of a copy from and to DRAM, and of one
    that its L2 cache serves. `matmul`: operations a second (two for each multiplication with its
    addition) by precision: ``f32``, ``tf32``, ``bf16``, ``f16``, ``f64``. `launch_ns`: what the GPU
    needs for one of many smallest kernels in a row; `eager_ns`, `module_ns` and `compiled_ns`: what
    the CPU needs for the plainest eager op, for a call of a module, and for one of a compiled
    function, each of one kernel.

    `missing`: why a figure is None, by its name as in `kernelcount.rates.FIGURES`. `notes`: what
    slowed the GPU down meanwhile. `measured_at`: ISO 8601, in UTC.
    """

    device: str
    torch: str
    multiprocessors: int
    copy: float | None = None
    copy_l2: float | None = None
    matmul: tuple[tuple[str, float], ...] = ()
    launch_ns: float | None = None
    eager_ns: float | None = None
    module_ns: float | None = None
    compiled_ns: float | None = None
    missing: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    measured_at: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that a verdict rests on: `value` beside `of`, what it is held against.

    `what`: ``busy``, ``copies`` and ``launching``: nanoseconds of those of the call; ``memory`` and
    ``L2 cache``: bytes a second of those a copy reaches; ``arithmetic``: operations a second of
    those matrix products reach; ``blocks``: those of the kernel at half of the kernel time, of the
    multiprocessors there are. `share`: how much of the time that explains, 0 to 1 (but ``busy``,
    which may be more). `basis`: ``measured``; ``modelled`` where bytes or operations are; ``cited``
    where what they are held against is; ``unavailable``, for a `reason`.
    """

    what: str
    value: float | None = None
    of: float | None = None
    share: float | None = None
    basis: Literal["measured", "modelled", "cited", "unavailable"] = "unavailable"
    reason: str = ""


Holding = Literal[
    "launch-bound",
    "memory-bound",
    "compute-bound",
    "waiting for the CPU",
    "too small to fill the GPU",
    "none of these",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds a variant back; `verdict` None: it cannot be told, for a `reason`.

    `of_call`: of a whole call; else of its kernels alone, the call not being timed. `precision`:
    that of the operations which take the most time, None where there are none.
    """

    variant: str
    verdict: Holding | None
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    of_call: bool = False
    precision: str | None = None

    def share(self, what: str) -> float | None:
        """The share of the evidence of this name; None where there is none."""
        return next((e.share for e in self.evidence if e.what == what), None)


@dataclass(frozen=True, slots=True)
class Numerics:
    """How the results of a variant, and the arguments that it changed, differ from the first's.

    ``equal``: in every bit that counts; ``close``: within the tolerance of the dtype; ``random``:
    the function draws random numbers, so that they cannot be compared; ``nothing``: it gives
    nothing to compare. `tensors` were compared; `ulps`: the largest distance in units in the last
    place; `notes` say more, such as ``8 NaN in the same places``. `error` and `base_error`: how far
    this one and the first are from the same in float64, relative to its size; None: not asked, or
    all is zero there. `max_rel`: relative to the first's number; None also where that is zero.
    `differs`: by what, where the verdict is ``different``: a tensor's values, where its NaN and inf
    stand, its shape, dtype or device, how many tensors there are, or what is no tensor.
    """

    verdict: Literal["equal", "close", "different", "random", "nothing", "unknown"]
    tensors: int
    max_abs: float | None = None
    max_rel: float | None = None
    ulps: int | None = None
    notes: tuple[str, ...] = ()
    error: float | None = None
    base_error: float | None = None
    differs: (
        Literal["values", "placement", "shape", "dtype", "device", "count", "numbers"] | None
    ) = None


Phase = Literal["forward", "backward", "optimizer"]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code. `file` is absolute, or relative to the current folder where inside it."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """One op of the user's code, which a kernel computes by itself or together with others.

    `op` as it is dispatched below autograd, without overload: ``add``; `place`: the user's line,
    for a backward op that of the forward; None: not known. `module`: the path of the innermost
    `nn.Module` in the outermost. `number`: how many ops that are alike in all that came before it.
    """

    op: str
    place: Place | None = None
    module: str | None = None
    phase: Phase = "forward"
    number: int = 0


@dataclass(frozen=True, slots=True)
class Apart:
    """Why a kernel was not fused with a neighbour, `kernel`.

    `code` is one of `fusion.REASONS`; `said`: Inductor's own words, where it gave any.
    """

    code: str
    kernel: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where one record comes from: the ops that it computes, and when.

    `graph`: the number of the compiled graph that it is of, None for eager code. `library`: a
    compiled graph calls a library for it. `apart`: why it is not one kernel with what it shares
    data with. `attention`: the backend that ran, ``flash``, ``efficient``, ``cudnn`` or ``math``.
    """

    origins: tuple[Origin, ...] = ()
    phase: Phase | None = None
    graph: int | None = None
    library: bool = False
    apart: tuple[Apart, ...] = ()
    attention: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the records of a capture come from, by a call of its own that nothing was timed in.

    `sources`: one for each record, in order; None where it is not known. `traced`: the lines of the
    graphs that were compiled, whether or not a kernel computes anything of them. `unknown`: why
    nothing is known, or not all.
    """

    sources: tuple[Source | None, ...] = ()
    traced: tuple[Place, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A known remedy, tried on the user's function beside the variant whose capture holds it.

    `status`: ``tried``; ``not tried``, for it does not apply; or ``failed``. `reason` says why it
    is one of the last two, or what spoils what was tried. `speed` is how the time of a call with it
    compares with that of the variant; `numerics`, how its results do; `kernels` those of one call.
    None: not known. `rows`: what the variant ran that the remedy is about, where that can be named.
    """

    name: str
    status: Literal["tried", "not tried", "failed"]
    reason: str = ""
    speed: Speed | None = None
    numerics: Numerics | None = None
    kernels: int | None = None
    rows: tuple[Row, ...] = ()

    @property
    def helped(self) -> bool:
        """Whether a call is faster with it, beyond noise."""
        return self.status == "tried" and self.speed is not None and self.speed.verdict == "faster"


@dataclass(frozen=True, slots=True)
class Counters:
    """What the GPU's own counters say of one kernel, by Nsight Compute; None: it does not say.

    `dram_read`, `dram_written`: bytes between DRAM and the L2 cache, `time_ns` in nanoseconds.
    Shares are from 0 to 1: `occupancy` is achieved warps over those that a multiprocessor can hold,
    `dram_share` and `sm_share` are what is reached of the throughput of DRAM and of the
    multiprocessors. `stall`: what most of the sampled warps waited for, as in `long_scoreboard`.
    """

    dram_read: int | None = None
    dram_written: int | None = None
    time_ns: int | None = None
    occupancy: float | None = None
    dram_share: float | None = None
    sm_share: float | None = None
    stall: str | None = None


SyncKind = Literal[
    "item",
    "bool",
    "nonzero",
    "mask",
    "copy to host",
    "copy to device",
    "pageable copy",
    "explicit",
    "inside an op",
]


@dataclass(frozen=True, slots=True)
class Sync:
    """One time that the CPU waited for the GPU in a call.

    `file`, `line` and `function` are of the user's innermost frame, `op` is what torch was asked
    for, `call` the API's function that waited; None: not known. `idle_ns`: nanoseconds for which
    the GPU had nothing to do, from the beginning of the wait to the next work; `wait_ns`, for which
    the CPU stood still; `copy_ns`, those of the copy that was waited for. `seen_by`: ``trace``,
    ``debug mode`` or ``paper``. `compiled`: it is in code that torch.compile wrote; the line is
    that which runs this code. `constant`: what is copied is known to be numbers of the code's.
    """

    kind: SyncKind
    file: str | None = None
    line: int | None = None
    function: str | None = None
    op: str | None = None
    call: str | None = None
    idle_ns: int | None = None
    wait_ns: int | None = None
    copy_ns: int | None = None
    seen_by: tuple[str, ...] = ()
    compiled: bool = False
    constant: bool = False

    @property
    def free(self) -> bool | None:
        """Whether the GPU lost no time by it; None where that cannot be told."""
        return None if self.idle_ns is None else self.idle_ns == 0

    @property
    def hideable(self) -> bool:
        """Whether ``pin_memory`` and ``non_blocking=True`` would hide it."""
        return self.kind in ("pageable copy", "copy to device") and not self.constant


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which the GPU ran nothing, since what came next had not been launched.

    `start_ns` counts from the start of the first record. `before` and `after`: the names of what
    ended and of what began then. `doing`: what the CPU did meanwhile and for how many nanoseconds,
    the longest first.
    """

    start_ns: int
    duration_ns: int
    before: str
    after: str
    doing: tuple[tuple[str, int], ...] = ()


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
            )
        return tuple(merged.values())


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A variant or file whose count is unknown, why, and what was seen of it in part."""

    name: str
    reason: str
    seen: Capture | None = None
    code: int = _NOT_MEASURED


Outcome = Capture | Unmeasured


@dataclass(frozen=True, slots=True)
class Fused:
    """One record of a compiled variant, and the eager records that it replaces, by their places.

    `by_line`: those of them that only the line and the module connect with it, and not the op.
    `alone`: why it replaces no more than one, by a code of `fusion.REASONS`.
    """

    record: int
    replaces: tuple[int, ...] = ()
    by_line: tuple[int, ...] = ()
    alone: Apart | None = None


@dataclass(frozen=True, slots=True)
class Fusion:
    """Which eager records each record of `variant` replaces, aligned by what they compute.

    `left`: eager records that none replaces, with a code of `fusion.REASONS`, ``unknown`` where
    nothing says why. `matched` of the `total` eager kernels are replaced, or left for a known
    reason. `unknown`: why not all is known.
    """

    variant: str
    base: str
    kernels: tuple[Fused, ...] = ()
    left: tuple[tuple[int, str], ...] = ()
    matched: int = 0
    total: int = 0
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Kernels of one call, `name`, that were measured and that paper has; `detail` in words."""

    name: str
    measured: int
    paper: int
    detail: str


@dataclass(frozen=True, slots=True)
class Beside:
    """The count on paper of a variant that was measured, and where the two differ.

    `same_calls`: the same was called, only that calls of a library, or of somebody's own ops,
    launch more kernels than paper can know; then the bytes that paper models are those of what ran.
    `ledger`: the records that were measured, those that one call on paper stands for beyond doubt
    with its bytes and operations; None where there are none. `provenance`: where the records come
    from, as far as paper says.
    """

    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    same_calls: bool = False
    ledger: Records | None = None
    provenance: Provenance | None = None

    @property
    def kernels(self) -> int | None:
        """Kernels on paper; None where paper could not tell."""
        return self.outcome.count("kernel") if isinstance(self.outcome, Capture) else None

    @property
    def paper(self) -> Paper | None:
        """What paper worked out, where it is about what ran."""
        known = isinstance(self.outcome, Capture) and self.same_calls
        return self.outcome.paper if known and isinstance(self.outcome, Capture) else None


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is asked to do, as the flags of `kernelcount run` say it.

    `sizes`: one run each; empty: the default of the inputs. `traces`: a file for each variant's raw
    trace, or empty. `timeout` is in seconds, for each variant; `seconds`, those that
    timing may take at each size, 0 for none. `reference`: whether results are held against float64;
    `cold`: whether no cache may hold the arguments of timed calls; `remedy`: whether remedies are
    tried. `gpu`: the card that paper is for. `ncu`: whether Nsight Compute is asked, too.
    `explain`: whether more may be done than a plain run does, to tell why.
    """

    spec: str
    sizes: tuple[int, ...] = ()
    inputs: tuple[str, ...] = ()
    maker: str | None = None
    dtype: str | None = None
    device: str | None = None
    gpu: str | None = None
    variants: tuple[str, ...] = ("eager", "compile")
    seed: int = 0
    backward: bool = False
    no_grad: bool = False
    evaluate: bool = False
    timeout: float | None = None
    seconds: float = 0.0
    reference: bool = False
    cold: bool = False
    remedy: bool = False
    traces: tuple[str, ...] = ()
    ncu: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """The outcomes of one target at one size (`size` None: the trace or file has no such thing).

    `besides`: what paper says of each outcome, in their order, and `speeds`: how the time of each
    compares with that of the first; `verdicts`: what holds each back; empty where that was not
    asked. `fusions`: which eager kernels each compiled variant's replace.
    """

    outcomes: tuple[Outcome, ...]
    size: int | None = None
    besides: tuple[Beside | None, ...] = ()
    speeds: tuple[Speed | None, ...] = ()
    verdicts: tuple[Verdict | None, ...] = ()
    fusions: tuple[Fusion | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where, between two sizes that were timed, a variant begins or ceases to be the faster one.

    `about`: the size at which both would take equally long, interpolated; None where that means
    nothing, since at one end no difference was found.
    """

    low: int
    high: int
    about: float | None = None


@dataclass(frozen=True, slots=True)
class Crossover:
    """At which sizes `variant` is faster than `over`, as far as they were timed.

    `sizes`, in ascending order, and the verdict at each; `unknown`: sizes that were asked for and
    at which there is none. `crossings` are where it begins or ceases to be faster, in turn.
    """

    variant: str
    over: str
    sizes: tuple[int, ...]
    verdicts: tuple[Literal["faster", "slower", "no difference"], ...]
    crossings: tuple[Crossing, ...] = ()
    unknown: tuple[int, ...] = ()

    @property
    def last(self) -> Crossing | None:
        """The one from which on it is always faster; None where it is not faster in the end."""
        return self.crossings[-1] if self.crossings and self.verdicts[-1] == "faster" else None

    @property
    def low(self) -> int | None:
        """The largest size at which it is not faster, all larger ones being faster."""
        return self.last.low if self.last else None

    @property
    def high(self) -> int | None:
        """The smallest size from which on it is always faster; None: it is not, in the end."""
        if self.verdicts[-1] != "faster":
            return None
        return self.last.high if self.last else self.sizes[0]

    @property
    def holds(self) -> Literal["all", "none", "from", "until", "some"]:
        """At which of the sizes it is faster: from one on, up to one, or here and there."""
        if not self.crossings:
            return "all" if self.verdicts[0] == "faster" else "none"
        if len(self.crossings) > 1:
            return "some"
        return "from" if self.last else "until"


@dataclass(frozen=True, slots=True)
class Report:
    """All that a renderer sees: one run, or several where a list of sizes was asked for.

    `crossovers`: from which size on each variant is faster than the first, for several sizes.
    """

    command: Literal["run", "read"]
    environment: Environment
    runs: tuple[Run, ...]
    target: Target | None = None
    crossovers: tuple[Crossover, ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every outcome, size by size."""
        return tuple(o for run in self.runs for o in run.outcomes)

    @property
    def exit_code(self) -> int:
        """0, or the code of what could not be measured, be it the time alone.

        For files the highest; in a run 2 outranks 3: where the user's own function raised, that is
        what there is to mend.
        """
        codes = {o.code for o in self.outcomes if isinstance(o, Unmeasured)}
        if self.command == "read":
            return max(codes, default=0)
        captures = [o for o in self.outcomes if isinstance(o, Capture)]
        untimed = any(NOT_TIMED in note_codes(c.notes) for c in captures)
        return min(codes | ({_NOT_MEASURED} if untimed else set()), default=0)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that measuring may need: whether it is there, what was found, and the way out."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What can be measured on this machine, what its GPU reaches, and what came of an atlas.

    `code` is the exit code, and `said` why it is not 0. `recorded` says what was written. `rates`
    None: `unrated` says why; `kept` says where they are kept, or why they are not.
    """

    checks: tuple[Check, ...] = ()
    recorded: str = ""
    code: int = 0
    said: str = ""
    rates: Rates | None = None
    unrated: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A function and its budget that come with the tool, by their files.

    `claim` is one sentence, which the budget holds; `teaches` is why it is so. `problem`: why the
    file cannot be read, which is then the claim too; "" where it can. `replaces`: the function's
    file of the one of that name that comes with the tool, where this is the user's own; else "".
    """

    name: str
    theme: str
    claim: str
    teaches: str
    function: str
    budget: str
    problem: str = ""
    replaces: str = ""


Status = Literal["kept", "broken", "undecided"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a limit allows: from `low` to `high`, both included; None: no bound on that side.

    Equal ones allow that value alone. `over`: the variant that a speedup is over, else "".
    """

    low: float | None = None
    high: float | None = None
    over: str = ""

    @property
    def exact(self) -> float | None:
        """The one value that is allowed; None where there are more."""
        return self.low if self.low == self.high else None


@dataclass(frozen=True, slots=True)
class Held:
    """One limit of a budget, held against what was counted; or a variant, against a lock file.

    `file`, `line` and `column` (from 1) are where the limit stands; `target` is as written there.
    `limit` is its name in the budget; ``lock`` for what was recorded; ``budget`` where there is no
    limit at all, which is broken. `variant` "": that of no limit.

    `actual` is in bytes, nanoseconds, or a number, by the limit; None: unknown, or no number.
    `at_least`: it is a lower bound; `low` and `high` enclose it where it was measured with noise.
    `bounds` None: the limit is no number. `unit`: ``bytes``, ``ns``, ``x`` or "".

    `why` is one sentence: why it is undecided, or what is wrong beyond the figures. `details` are
    lines that help to find the cause, such as ``new: triton_poi_fused_gelu_1``, and `places` the
    lines of code that they are about. `basis`: where the
    count is from, None where there is none. `code`: the exit code of what is undecided, 2 where the
    user's own code or budget is at fault.
    """

    file: str
    line: int
    target: str
    variant: str
    limit: str
    status: Status
    actual: float | None = None
    bounds: Bounds | None = None
    why: str = ""
    details: tuple[str, ...] = ()
    column: int = 1
    size: int | None = None
    unit: str = ""
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    basis: Literal["measured", "paper"] | None = None
    code: int = 3
    places: tuple[Place, ...] = ()

    @property
    def is_fault(self) -> bool:
        """Whether the user's own code or budget keeps it undecided."""
        return self.status == "undecided" and self.code != _NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Checked:
    """All that a renderer of `check` sees: every limit, in the order of the files.

    `budgets`: how many budgets these are of; `environment` None where they differ, or nothing was
    counted. `notes` say what was not compared; `written` are the lock files that were, and
    `unwritten` says which could not be.
    """

    held: tuple[Held, ...]
    budgets: int = 0
    environment: Environment | None = None
    notes: tuple[Note, ...] = ()
    written: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    allow_undecided: bool = False

    def count(self, status: Status) -> int:
        """How many limits are kept, broken or undecided."""
        return sum(h.status == status for h in self.held)

    @property
    def exit_code(self) -> int:
        """1 where one is broken; else 2 where the user's own code failed; else 3 or 0."""
        if self.count("broken"):
            return 1
        codes = {h.code for h in self.held if h.status == "undecided"}
        if self.allow_undecided:
            codes.discard(3)
        return 2 if self.unwritten else min(codes, default=0)


@dataclass(frozen=True, slots=True)
class Side:
    """One variant of a file that is held against another file, named as the file spells it.

    What a lock file says of a variant is a capture, too, of kernels in no order and without times.
    `unknown`: of which activities it does not say how many there were.
    """

    name: str
    kind: Literal["trace", "captures", "lock"]
    outcome: Outcome
    unknown: tuple[Activity, ...] = ()

    @property
    def capture(self) -> Capture | None:
        """What was recorded, be it in part."""
        return self.outcome.seen if isinstance(self.outcome, Unmeasured) else self.outcome


@dataclass(frozen=True, slots=True)
class Change:
    """One row on both sides; None where it is not there. Their names may differ: see `alignment`.

    `change`: ``appeared``, ``vanished``; ``count``: it ran more often or less; ``time``: as often,
    and its time differs by more than times that are taken apart do; ``same``. `places`: the lines
    of the user's code that it is of, as they are now, or as they were.
    """

    change: Literal["appeared", "vanished", "count", "time", "same"]
    before: Row | None
    after: Row | None
    places: tuple[Place, ...] = ()

    @property
    def row(self) -> Row:
        """The row as it is now, or as it was."""
        row = self.after or self.before
        assert row is not None
        return row

    @property
    def renamed(self) -> bool:
        """Whether another kernel does what the one before did."""
        return bool(self.before and self.after and self.before.name != self.after.name)


@dataclass(frozen=True, slots=True)
class Total:
    """One figure of a whole variant on both sides, times in nanoseconds; None: not known.

    `bounds` enclose both, where they are no more than bounds or are in doubt, and `why` says for
    what reason that is, or for what reason one is not known. It does not `apply` where no such
    variant has one.
    """

    name: str
    before: float | None
    after: float | None
    bounds: tuple[tuple[float, float], tuple[float, float]] | None = None
    why: str = ""
    applies: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """One variant in two files: what changed from one to the other.

    `unknown` says why nothing is concluded, and then nothing else is there. `call_speed` and
    `kernel_speed` compare the time of a call and the sum of kernel times; None where they may not
    be compared. `breaks`: where graphs break that did not before. `notes` are what has to be known
    to read it.
    """

    name: str
    before: Side
    after: Side
    unknown: str = ""
    changes: tuple[Change, ...] = ()
    totals: tuple[Total, ...] = ()
    call_speed: Speed | None = None
    kernel_speed: Speed | None = None
    breaks: tuple[Break, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def known(self) -> tuple[Total, ...]:
        """The figures that at least one side has."""
        return tuple(t for t in self.totals if not t.before is t.after is None)

    def total(self, name: str) -> Total | None:
        """The figure of this name; None where it may not be compared."""
        return next((t for t in self.totals if t.name == name), None)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much one figure may grow: `amount` of its unit, or that share of what it was.

    `name` is the flag's without ``max-``, `text` the value as it was written.
    """

    name: str
    amount: float
    relative: bool
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one allowance for one variant; `why` says what decides it, in words.

    `figure` names the total that it is about, `before` and `after` are its values.
    """

    allowance: Allowance
    variant: str
    figure: str
    status: Literal["kept", "broken", "undecided"]
    before: float | None
    after: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed between two files, variant by variant, and whether that is allowed.

    `only_before` and `only_after`: variants that have no counterpart.
    """

    before: str
    after: str
    pairs: tuple[Pair, ...]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    allow_undecided: bool = False

    @property
    def exit_code(self) -> int:
        """1 for a regression; 3 where something is unknown or, unless allowed, undecided."""
        statuses = {d.status for d in self.decisions}
        if "broken" in statuses:
            return 1
        undecided = "undecided" in statuses and not self.allow_undecided
        return 3 if undecided or any(p.unknown for p in self.pairs) else 0


def note_codes(notes: Iterable[Note]) -> set[str]:
    """The codes of these notes."""
    return {n.code for n in notes}


def _add(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def _moved(before: int | None, each: int | None, times: int) -> int | None:
    """Bytes before and those of so many more executions; None where either is not known."""
    return None if before is None or each is None else before + each * times


for _noun in list(globals().values()):
    if isinstance(_noun, type) and is_dataclass(_noun):
        sealed(_noun)
