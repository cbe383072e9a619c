"""From which size on a variant is faster than the first, as far as the sizes were timed.

It rests on the verdicts at the sizes, not on a curve through the times: between two neighbouring
sizes of which only one has the verdict "faster" there is a crossing. Where the other is "slower",
the crossing is placed by a straight line through the logarithm of the ratio over the logarithm of
the size, which is what two times that each grow as a power of the size give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp, log

from kernelcount.model import EAGER_CODE, Capture, Crossing, Crossover, Run, Speed, note_codes

_Timed = tuple[int, Speed]

# With these, what was timed is not the variant, but eager code or a result kept from before.
_NO_ACHIEVEMENT = EAGER_CODE | {"memoised"}

_LEAST = 2  # sizes: with one alone nothing can cross


def find(runs: Sequence[Run]) -> tuple[Crossover, ...]:
    """One for each variant but the first that was timed at two sizes or more."""
    sized = sorted(
        (run for run in runs if run.size is not None and run.outcomes),
        key=lambda run: run.size or 0,
    )
    several = min((len(run.outcomes) for run in sized), default=0)
    return tuple(c for i in range(1, several) if (c := _of_variant(sized, i)) is not None)


def _of_variant(runs: Sequence[Run], index: int) -> Crossover | None:
    """What the sizes say of one variant; None where too few were timed."""
    timed: list[_Timed] = []
    unknown: list[int] = []
    for run in runs:
        size, speed = run.size or 0, _speed(run, index)
        if speed is None:
            unknown.append(size)
        else:
            timed.append((size, speed))
    if len(timed) < _LEAST:
        return None
    base, other = runs[0].outcomes[0], runs[0].outcomes[index]
    return Crossover(
        other.name,
        base.name,
        tuple(size for size, _ in timed),
        tuple(speed.verdict for _, speed in timed),
        tuple(_crossings(timed)),
        tuple(unknown),
    )


def _speed(run: Run, index: int) -> Speed | None:
    """How fast it is beside the first at one size; None where that is not known or says nothing."""
    both = (run.outcomes[0], run.outcomes[index])
    if not run.speeds or not all(isinstance(o, Capture) for o in both):
        return None
    codes = note_codes(n for o in both if isinstance(o, Capture) for n in o.notes)
    return None if codes & _NO_ACHIEVEMENT else run.speeds[index]


def _crossings(timed: Sequence[_Timed]) -> Iterator[Crossing]:
    for (low, before), (high, after) in pairwise(timed):
        if (before.verdict == "faster") != (after.verdict == "faster"):
            yield Crossing(low, high, _about(low, before, high, after))


def _about(low: int, before: Speed, high: int, after: Speed) -> float | None:
    """Where the line between the two meets a ratio of 1; None where one end is no difference."""
    if "no difference" in (before.verdict, after.verdict) or low < 1:
        return None
    first, second = log(before.ratio), log(after.ratio)
    share = first / (first - second)
    return exp(log(low) + share * (log(high) - log(low)))
