"""A target counted, and what is concluded of each of its variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from kernelcount import __version__
from kernelcount.app.answers import Answer
from kernelcount.app.asked import check_job, check_options
from kernelcount.errors import UserCodeError
from kernelcount.model import (
    EAGER_CODE,
    Beside,
    Capture,
    Fusion,
    Job,
    Outcome,
    Provenance,
    Rates,
    Report,
    Run,
    Target,
    Unmeasured,
    Verdict,
    note_codes,
)

if TYPE_CHECKING:
    from kernelcount.beside import OnPaper
    from kernelcount.runners import Results, Runner

_NO_LINES = "lines are told by the count on paper, and there is none of this"


def kept_rates(device: str, torch: str) -> Rates | None:
    """What this GPU was measured to reach under this torch, where somebody has measured it."""
    from kernelcount.conclusions import rates

    return rates.kept(device, torch)


def run(
    job: Job,
    runner: Runner,
    progress: Callable[[str], None],
    beside: OnPaper | None = None,
    rates: Callable[[str, str], Rates | None] = kept_rates,
    *,
    in_hand: bool = False,
) -> Answer:
    """Count a target as the job says, by one of `runners`' functions.

    `beside` counts on paper what is measured on a GPU; None: paper is not asked. `rates`: what the
    GPU of this name reaches under this torch, None where that was not measured. `in_hand`: the
    runner has the target, and the job's spec is no more than its name.

    Raises KernelcountError where nothing could be asked of the target at all.
    """
    from kernelcount.conclusions import crossover

    rates = cache(rates)  # all variants ask for those of one GPU
    (check_options if in_hand else check_job)(job)
    if job.gpu is not None:
        job = replace(job, device="paper")
    results = runner(job, progress, beside)
    papers = {} if beside is None else beside.found(results.outcomes, progress)
    if job.ncu:
        from kernelcount import ncu

        results.outcomes = ncu.counted(job, results.outcomes, progress)
    target = next(iter(results.targets.values()), Target(job.spec, ()))
    sized = tuple(_runs(job, results, papers, rates))
    environment = replace(results.environment, kernelcount=__version__)
    report = Report("run", environment, sized, target, crossover.find(sized))
    return Answer(report, _said(results), tuple(results.unwritten))


def _runs(
    job: Job,
    results: Results,
    papers: Mapping[int, Beside],
    rates: Callable[[str, str], Rates | None],
) -> Iterator[Run]:
    """What came of a job, size by size."""
    from kernelcount import worker

    runs: dict[int | None, list[worker.Step]] = {}
    for step in worker.steps(job):
        runs.setdefault(step.size, []).append(step)
    for size, of_size in runs.items():
        outcomes = [results.outcomes[s.index] for s in of_size]
        yield _run(outcomes, size, [papers.get(s.index) for s in of_size], rates)


def _run(
    outcomes: Sequence[Outcome],
    size: int | None,
    besides: Sequence[Beside | None],
    rates: Callable[[str, str], Rates | None],
) -> Run:
    from kernelcount.conclusions import comparison
    from kernelcount.origins import callers

    outcomes = [callers.seen_from_here(o) for o in outcomes]
    besides = [b and callers.beside_seen_from_here(b) for b in besides]
    outcomes = [_sourced(o, b) for o, b in zip(outcomes, besides, strict=True)]
    base = outcomes[0]
    speeds = [
        comparison.speed(base, other)
        if other is not base and isinstance(base, Capture) and isinstance(other, Capture)
        else None
        for other in outcomes
    ]
    for told in (comparison.with_costs, comparison.with_notes):
        outcomes = [told(o, b) for o, b in zip(outcomes, besides, strict=True)]
    verdicts = [_verdict(o, b, rates) for o, b in zip(outcomes, besides, strict=True)]
    fusions = [_fusion(base, other) for other in outcomes]
    return Run(
        tuple(outcomes), size, tuple(besides), tuple(speeds), tuple(verdicts), tuple(fusions)
    )


def _sourced(outcome: Outcome, beside: Beside | None) -> Outcome:
    """The outcome with the lines that its records come from, or with the reason why not."""
    if not isinstance(outcome, Capture) or outcome.on_cpu:
        return outcome
    known = outcome.provenance
    if known is None and beside is not None:
        known = beside.provenance
        if isinstance(beside.outcome, Unmeasured):
            known = Provenance(unknown=f"not counted on paper: {beside.outcome.reason}")
    return replace(outcome, provenance=known or Provenance(unknown=_NO_LINES))


def _fusion(base: Outcome, other: Outcome) -> Fusion | None:
    """Which eager kernels those of a compiled variant replace; None where there are not both."""
    from kernelcount import variants
    from kernelcount.origins import fusion

    if not isinstance(base, Capture) or not isinstance(other, Capture) or base.on_cpu:
        return None
    if variants.parse(base.name).kind != "eager" or variants.parse(other.name).kind != "compile":
        return None
    return fusion.align(base, other)


def _verdict(
    outcome: Outcome, beside: Beside | None, rates: Callable[[str, str], Rates | None]
) -> Verdict | None:
    """What holds a variant back that was measured on a GPU; None for any other."""
    from kernelcount import paper, variants
    from kernelcount.conclusions.roofline import Gpu
    from kernelcount.conclusions.verdict import verdict

    if not isinstance(outcome, Capture) or outcome.basis != "measured" or outcome.on_cpu:
        return None
    device, torch = outcome.environment.device or "", outcome.environment.torch or ""
    card = paper.of_device(device)
    cited, l2 = (paper.cited(card), card.l2) if card else (None, None)
    compiled = variants.parse(outcome.name).kind == "compile"
    in_eager = bool(note_codes(outcome.notes) & EAGER_CODE)
    gpu = Gpu(rates(device, torch), cited, l2)
    return verdict(outcome, beside, gpu, compiled=compiled and not in_eager)


def _said(results: Results) -> tuple[str, ...]:
    """Why variants are unmeasured: each reason once, with the names of all that it holds for."""
    from kernelcount.runners import name_of
    from kernelcount.variants import parse
    from kernelcount.worker import steps

    names: dict[str, list[str]] = {}
    raised: set[int | None] = set()  # sizes at which the function itself fails
    for step in steps(results.job):
        outcome = results.outcomes[step.index]
        if not isinstance(outcome, Unmeasured):
            continue
        text = results.said.get(step.index, outcome.reason)
        kind = parse(step.variant).kind
        if kind == "eager" and outcome.code == UserCodeError.code:
            raised.add(step.size)
        elif kind == "compile" and step.size in raised and text not in names:
            # torch.compile wraps what eager has shown already, in frames that are all torch's.
            text = outcome.reason
        # A reason alone adds nothing to the same reason with its frames.
        text = next((t for t in names if t.partition("\n")[0] == text), text)
        names.setdefault(text, []).append(name_of(step, results.job))
    return tuple(f"{', '.join(who)}: {text}" for text, who in names.items())
