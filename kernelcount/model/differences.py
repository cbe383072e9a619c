"""What changed from one file to another, and whether it may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelcount.model.captures import Capture, Outcome, Unmeasured
from kernelcount.model.figures import Speed
from kernelcount.model.places import Break, Place
from kernelcount.model.records import Activity, Note, Row


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
