"""Limits held against what was counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelcount.model.captures import NOT_MEASURED, Environment
from kernelcount.model.places import Place
from kernelcount.model.records import Note

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
    user's own code or budget is at fault. `raised`: the variant raised, which is 3 where eager
    worked, or its process died in the call; that is nothing that may be left undecided.
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
    raised: bool = False

    @property
    def is_fault(self) -> bool:
        """Whether the user's own code or budget keeps it undecided."""
        return self.status == "undecided" and (self.raised or self.code != NOT_MEASURED)


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
    def failed(self) -> int:
        """How many of the undecided are so by the fault of the user's own code or budget."""
        return sum(h.is_fault for h in self.held)

    @property
    def exit_code(self) -> int:
        """1 where one is broken; else 2 where the user's own code failed; else 3 or 0.

        What failed is 3 also where what is undecided may be.
        """
        if self.count("broken"):
            return 1
        undecided = [h for h in self.held if h.status == "undecided"]
        codes = {h.code for h in undecided if h.is_fault or not self.allow_undecided}
        return 2 if self.unwritten else min(codes, default=0)
