"""What a pipeline shows of a verdict: one finding each, whatever command it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcount.model import Place, Status


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit, and what came of it.

    `group` is what it is about, `name` the limit, unique in its group; `message` one sentence,
    empty where it is kept; `details` are further lines. `places`: where to show it, the limit's own
    first and then lines of code. `allowed`: where it is undecided, that is no failure.
    """

    group: str
    name: str
    status: Status
    message: str = ""
    details: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    allowed: bool = False

    @property
    def text(self) -> str:
        """Message and details, a line each."""
        return "\n".join((self.message, *self.details))


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings of one command, and what sums them up."""

    command: str
    every: tuple[Finding, ...]
    summary: str

    def groups(self) -> dict[str, list[Finding]]:
        """The findings by what they are about, in order."""
        found: dict[str, list[Finding]] = {}
        for finding in self.every:
            found.setdefault(finding.group, []).append(finding)
        return found


def tally(findings: Sequence[Finding]) -> str:
    """``12 kept, 1 broken, 1 undecided``."""
    counts = {s: sum(f.status == s for f in findings) for s in ("kept", "broken", "undecided")}
    return ", ".join(f"{n} {status}" for status, n in counts.items() if n) or "nothing to hold"
