"""What is concluded of captures: the verdict, which kernels replace which, paper beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelcount.model.captures import Capture, Outcome
from kernelcount.model.figures import Paper
from kernelcount.model.places import Apart, Provenance
from kernelcount.model.records import Records


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
