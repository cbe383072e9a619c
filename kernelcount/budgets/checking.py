"""Budgets held against what is counted, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from kernelcount import rules
from kernelcount.budgets import launched
from kernelcount.budgets.budget import Budget
from kernelcount.budgets.limits import Limit
from kernelcount.budgets.locks import Locks
from kernelcount.errors import Interrupted, KernelcountError
from kernelcount.model import (
    EAGER_CODE,
    Beside,
    Break,
    Capture,
    Checked,
    Environment,
    Held,
    Job,
    Outcome,
    Place,
    Recompilation,
    Report,
    Status,
    Unmeasured,
)
from kernelcount.rules import Counted, Reading

_NO_LIMIT = "it has no limit, and so keeps nothing"
_NONE_HERE = "no limit of it is for this setup"

Count = Callable[[Job, bool], tuple[Report, tuple[str, ...]]]
"""Counts what a job asks for, and on paper too where that is asked: the report, and what is to be
told beside it.
"""

Shown = Callable[[Checked, tuple[str, ...]], None]
"""Takes what came of one budget as soon as it is known, and what is to be told beside it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How budgets are checked: what they say themselves of `device` and `gpu` gives way to this.

    `listed`: what is launched stands beside a limit that it breaks.
    """

    device: str | None = None
    gpu: str | None = None
    timeout: float | None = None
    seconds: float = 1.0
    update: bool = False
    allow_undecided: bool = False
    listed: bool = True


def check(budgets: Sequence[Budget], count: Count, options: Options, shown: Shown) -> Checked:
    """Count what each budget is about, and hold its limits and what a lock file has recorded.

    A target that cannot be counted leaves its budget undecided. Raises UsageError for a lock file
    that is none, Interrupted.
    """
    lock = Locks(budgets)
    environments: set[Environment] = set()
    held: list[Held] = []
    for budget in budgets:
        of_budget, environment, said = _of(budget, count, options, lock)
        environments |= {environment} if environment else set()
        held += of_budget
        shown(Checked(tuple(of_budget), 1, environment), said)
    written, unwritten = lock.write() if options.update else ((), ())
    return Checked(
        tuple(held),
        len(budgets),
        environments.pop() if len(environments) == 1 else None,
        tuple(lock.notes(update=options.update)),
        written,
        unwritten,
        options.allow_undecided,
    )


def jobs(budgets: Sequence[Budget], options: Options) -> list[Job]:
    """What will be asked to be counted, in order."""
    return [job_of(budget, options) for budget in budgets if budget.all_limits]


def job_of(budget: Budget, options: Options) -> Job:
    """What is to be run for a budget. No calls are timed that no limit is about."""
    timed = any(limit.rule.timed for limit in budget.all_limits)
    job = replace(budget.job, timeout=options.timeout, seconds=options.seconds if timed else 0.0)
    if options.device is not None:
        job = replace(job, device=options.device, gpu=None)
    if options.gpu is not None:
        job = replace(job, gpu=options.gpu, device=options.device or "paper")
    return replace(job, device="paper") if job.gpu is not None and job.device is None else job


def _needs_paper(budget: Budget) -> bool:
    """Whether a limit is about what is only worked out on paper, also where there is a GPU."""
    return any(limit.rule.modelled for limit in budget.all_limits)


def _of(
    budget: Budget, count: Count, options: Options, lock: Locks
) -> tuple[list[Held], Environment | None, tuple[str, ...]]:
    """What came of one budget, where, and what is to be told."""
    empty = [
        budget.held(place, variant, "budget", "broken", why=_NO_LIMIT)
        for variant, place in budget.empty
    ]
    if not budget.all_limits:
        return empty, None, ()
    try:
        report, said = count(job_of(budget, options), _needs_paper(budget))
    except Interrupted:
        raise
    except KernelcountError as error:
        if error.code == Interrupted.code:
            raise
        return [*empty, *_undecided(budget, error)], None, (f"{budget.target}: {error}",)
    held = list(_limits(budget, report))
    held = list(lock.compared(budget, report, held, update=options.update))
    if options.listed:
        outcomes = zip(budget.variants, report.runs[0].outcomes, strict=True)
        held = list(launched.beside(held, dict(outcomes)))
    said = tuple(f"{budget.target}: {text}" for text in said)
    return [*empty, *held], report.environment, said


def _undecided(budget: Budget, error: KernelcountError) -> Iterator[Held]:
    """Every limit of a budget whose target could not be counted."""
    first, *rest = str(error).splitlines() or [""]
    # What the user's module raised is told with its frames, and in the last line.
    why = f"raised {rest[-1]}" if rest and first.startswith(("Traceback", " ")) else first
    for limit in budget.limits or budget.all_limits:
        yield budget.held(
            limit.place, limit.variant, limit.name, "undecided",
            why=why, code=error.code, bounds=limit.bounds, unit=limit.rule.unit,
        )  # fmt: skip


# ── limits ───────────────────────────────────────────────────────────────────────────────────────


def _limits(budget: Budget, report: Report) -> Iterator[Held]:
    """Every limit of a budget that holds where it was counted."""
    (run,) = report.runs
    outcomes = dict(zip(budget.variants, run.outcomes, strict=True))
    besides = dict(zip(budget.variants, run.besides or (None,) * len(outcomes), strict=True))
    basis = "paper" if report.environment.kind == "paper" else "measured"
    limits = budget.limits_on(report.environment, basis)
    if not limits:
        yield budget.held(budget.place, "", "budget", "undecided", why=_NONE_HERE)
    for limit in limits:
        yield _limit(budget, limit, outcomes, besides[limit.variant])


def _limit(
    budget: Budget, limit: Limit, outcomes: dict[str, Outcome], beside: Beside | None
) -> Held:
    """One limit, held against what its variant launched."""
    outcome = outcomes[limit.variant]
    more: dict[str, object] = {"bounds": limit.bounds, "unit": limit.rule.unit}
    seen = outcome if isinstance(outcome, Capture) else outcome.seen
    if seen is None or not (seen is outcome or limit.rule.of_compiler):
        assert isinstance(outcome, Unmeasured)
        more |= {"why": outcome.reason, "code": outcome.code, "raised": outcome.raised}
        return budget.held(limit.place, limit.variant, limit.name, "undecided", **more)
    over = outcomes.get(limit.bounds.over)
    counted = Counted(seen, beside, limit.variant == budget.variants[0], over)
    reading = _rounded(rules.read(limit.name, counted), limit.digits)
    status = rules.status(reading, limit.bounds)
    noisy = reading.known and not reading.at_least and reading.low < reading.high
    more |= {
        "actual": reading.value,
        "at_least": reading.at_least,
        "low": reading.low if noisy and abs(reading.low) < inf else None,
        "high": reading.high if noisy and reading.high < inf else None,
        "why": _why(limit.name, status, reading, seen),
        "basis": seen.basis,
        "details": _causes(seen) if status == "broken" else (),
        "places": tuple(_places(seen)) if status == "broken" else (),
    }
    return budget.held(limit.place, limit.variant, limit.name, status, **more)


def _causes(capture: Capture) -> tuple[str, ...]:
    """What torch.compile did that may be why a limit is broken, a line each."""
    found = [
        f"graph break at {Path(b.file).name}:{b.line} ({b.reason})" for b in capture.breaks or ()
    ]
    found += [
        f"recompiled since {r.guard} failed at {Path(r.file).name}:{r.line}"
        for r in capture.recompilations or ()
    ]
    return tuple(found)


def _places(capture: Capture) -> Iterator[Place]:
    """The lines of these causes."""
    causes: list[Break | Recompilation] = [*(capture.breaks or ())]
    causes += capture.recompilations or ()
    for cause in causes:
        if cause.line is not None:
            yield Place(cause.file, cause.line)


def _rounded(reading: Reading, digits: int | None) -> Reading:
    """The reading as it is shown, and as it was written in the budget."""
    if digits is None or reading.value is None:
        return reading
    value, low, high = (
        x if abs(x) == inf else round(x, digits) for x in (reading.value, reading.low, reading.high)
    )
    return replace(reading, value=value, low=low, high=high)


def _why(limit: str, status: Status, reading: Reading, capture: Capture) -> str:
    """A sentence on what is not kept, beyond its figures."""
    if status == "undecided" and not reading.reason:
        if not reading.at_least:
            return "the limit lies within the noise"
        if limit in ("transfers", "bytes"):
            return rules.MOVES_MORE
        said = next((n.detail for n in capture.notes if n.code == "at-least"), "there may be more")
        return said.replace("launch more kernels", "copy more") if limit == "copies" else said
    if status == "broken":
        return next((n.detail for n in capture.notes if n.code in EAGER_CODE), reading.reason)
    return "" if status == "kept" else reading.reason
