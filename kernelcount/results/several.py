"""Counts beside each other, and how they are made of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernelcount.model import Run, Unmeasured, sealed
from kernelcount.results.counts import Count
from kernelcount.results.result import Result
from kernelcount.results.words import briefly

if TYPE_CHECKING:
    from kernelcount.app import Answer


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Several(Result):
    """Counts beside each other: by position, or by the name of the variant or file."""

    counts: tuple[Count, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(c.name for c in self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Count]:
        return iter(self.counts)

    def __getitem__(self, key: str | int) -> Count:
        """Raises KeyError with the names that there are, or IndexError."""
        if isinstance(key, int):
            return self.counts[key]
        for count in self.counts:
            if count.name == key:
                return count
        raise KeyError(f"{key!r} is not one of {', '.join(self.names)}")

    def __repr__(self) -> str:
        each = "; ".join(f"{c.name}: {briefly(c)}" for c in self.counts)
        return f"<{type(self).__name__} {each}>"


class Comparison(Several):
    """Variants of one function, side by side; the first is what the others are compared with."""

    __slots__ = ()


class Reading(Several):
    """What recorded traces and saved captures hold, file by file."""

    __slots__ = ()


def counts_of(answer: Answer, errors: Mapping[str, BaseException]) -> tuple[Count, ...]:
    """Each outcome of a report as a result of its own. `errors`: what was raised, by name."""
    from kernelcount.render.figures import figures_of

    made: list[Count] = []
    for run in answer.report.runs:
        for i, figures in enumerate(figures_of(run)):
            alone = Run(
                run.outcomes[i : i + 1],
                run.size,
                run.besides[i : i + 1],
                verdicts=run.verdicts[i : i + 1],
            )
            report = replace(answer.report, runs=(alone,), crossovers=())
            failed = isinstance(run.outcomes[i], Unmeasured)
            said = tuple(s for s in answer.said if failed and figures.name in s)
            error = errors.get(figures.name)
            made.append(Count(report, said, figures=figures, error=error))
    return tuple(made)
