"""Lines of the user's code: which a kernel is of, where a graph breaks, where the CPU waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    graphs that were compiled, whether or not a kernel computes anything of them; `hidden`: those of
    what is run in some cases only, the kernels of which are not among the records. `unknown`: why
    nothing is known, or not all.
    """

    sources: tuple[Source | None, ...] = ()
    traced: tuple[Place, ...] = ()
    unknown: str = ""
    hidden: tuple[Place, ...] = ()


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
