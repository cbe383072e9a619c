"""Two files held against each other: their variants in pairs, what changed, what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelcount.differences import allowances as allowed
from kernelcount.differences.changes import compare
from kernelcount.differences.pairing import named, paired, place
from kernelcount.errors import UsageError
from kernelcount.model import Allowance, Diff, Side, Unmeasured


def between(
    first: Path,
    second: Path,
    before: Sequence[Side],
    after: Sequence[Side],
    allowances: Sequence[Allowance] = (),
) -> Diff:
    """What changed from one file to the other. Raises UsageError where no variant is in both."""
    found, left, new = paired(before, after)
    if not found:
        held = "; ".join(
            f"{path} has {', '.join(named(side, sides) for side in sides)}"
            for path, sides in ((first, before), (second, after))
        )
        raise UsageError(f"no variant is in both: {held} (--variant NAME picks one of several)")
    left, new = _about(left, after), _about(new, before)
    pairs = (
        *(compare(old, now, name) for name, old, now in found),
        *(compare(s, _nothing(s), named(s, before)) for s in left if _unmeasured(s)),
        *(compare(_nothing(s), s, named(s, after)) for s in new if _unmeasured(s)),
    )
    gone = tuple(named(side, before) for side in left if not _unmeasured(side))
    added = tuple(named(side, after) for side in new if not _unmeasured(side))
    decisions = (*allowed.decide(allowances, pairs), *allowed.missing(allowances, gone))
    return Diff(str(first), str(second), pairs, gone, added, decisions)


def _unmeasured(side: Side) -> bool:
    return isinstance(side.outcome, Unmeasured)


def _nothing(side: Side) -> Side:
    """What the other file has of it."""
    return Side(side.name, side.kind, Unmeasured(side.name, "not in this file"))


def _about(sides: Iterable[Side], others: Iterable[Side]) -> list[Side]:
    """Those that the other file could have: a lock file has the functions of a whole project."""
    places = {place(side) for side in others}
    locks = {side.kind for side in others} == {"lock"}
    return [s for s in sides if s.kind != "lock" or locks or place(s) in places]


def chosen(sides: Sequence[Side], variants: Sequence[str], path: Path) -> list[Side]:
    """The variants of these names, all where none is named; of a trace, which has none, itself.

    Raises UsageError where a name is not there.
    """
    if not variants or [side.kind for side in sides] == ["trace"]:
        return [*sides]
    names = dict.fromkeys(side.name for side in sides)
    for variant in variants:
        if variant not in names:
            there = ", ".join(names)
            raise UsageError(f"--variant {variant}: {path} has none of this name; it has {there}")
    return [side for side in sides if side.name in variants]
