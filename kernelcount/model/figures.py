"""What is found out of a variant beside its records: bytes, times, results, remedies, counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelcount.model.records import Note, Row, Work


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
    `moves_more`: calls move more than that, or may, and how much is not known.
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
    moves_more: bool = False

    @property
    def at_most(self) -> bool:
        """Whether `read` and `written` are an upper bound, as far as they go."""
        return bool(self.own)

    @property
    def bytes_known(self) -> bool:
        """Whether `read` and `written` are no bound, but what is moved."""
        return not (self.at_most or self.moves_more)

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
class Rates:
    """What a GPU was measured to reach; None: it could not be measured.

    `copy` and `copy_l2`: bytes a second, read plus written, of a copy from and to DRAM, and of one
    that its L2 cache serves. `matmul`: operations a second (two for each multiplication with its
    addition) by precision: ``f32``, ``tf32``, ``bf16``, ``f16``, ``f64``. `launch_ns`: what the GPU
    needs for one of many smallest kernels in a row; `eager_ns`, `module_ns` and `compiled_ns`: what
    the CPU needs for the plainest eager op, for a call of a module, and for one of a compiled
    function, each of one kernel.

    `missing`: why a figure is None, by its name as in `rates.FIGURES`. `notes`: what
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
