"""What was measured, held against another variant, or against what was counted on paper.

Times are held against times that were taken in turn with them. Beside paper, calls are matched by
the op that launched a kernel: the outermost one of a trace that paper sees, as ``sort`` is above
``copy_``, and ``addmm`` below ``linear``. What Inductor generated
is matched as a whole: another version of it may name its kernels otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from kernelcount.conclusions import noise
from kernelcount.model import (
    Beside,
    Break,
    Capture,
    Cost,
    Difference,
    Outcome,
    Speed,
    Unmeasured,
    Work,
)
from kernelcount.origins.ledger import GENERATED, Calls, call_of, ledger
from kernelcount.origins.sources import joined

# Inductor names its kernels so on every GPU: torch/_inductor/codegen/triton.py.
_GENERATED = "triton_"

# Kernels that add up the parts of a matrix product, in traces of an H200: splitKreduce_kernel of
# cuBLASLt, and ..._execute_split_k_kernel__5x_cublas.
_SPLIT_K = re.compile("splitKreduce|split_k_kernel")


def speed(base: Capture, other: Capture) -> Speed | None:
    """How the time of a call of `other` compares with that of `base`.

    There is a difference where both the test finds one and the interval has 1 outside. None where
    they were not timed in turn, or too seldom to tell.
    """
    first, second = base.timing, other.timing
    if first is None or second is None or other.name not in first.together:
        return None
    samples = (first.samples_ns, second.samples_ns)
    if first.together != second.together or len(samples[0]) != len(samples[1]):
        return None
    ratios = [before / after for before, after in zip(*samples, strict=True) if after]
    differs, bounds = noise.differ(*samples), noise.interval(ratios)
    if differs is None or bounds is None:
        return None
    ratio = median(ratios)
    same = not differs or bounds[0] <= 1 <= bounds[1]
    verdict = "no difference" if same else "faster" if ratio > 1 else "slower"
    return Speed(ratio, *bounds, verdict)  # type: ignore[arg-type]


def beside(measured: Capture, paper: Outcome) -> Beside:
    """The count on paper of what was measured, with every difference named."""
    if isinstance(paper, Unmeasured):
        return Beside(paper)
    expected = Counter(_on_paper(work) for work in _kernels(paper))
    own = frozenset(w.label or w.name for w in (paper.paper.own if paper.paper else ()))
    seen: Counter[str] = Counter()
    split: Counter[str] = Counter()
    calls: Calls = {}
    for work in _kernels(measured):
        name = calls[work] = _matching(work, expected, own)
        seen[name] += 1
        split[name] += _SPLIT_K.search(work.name) is not None
    namesakes = dict(_namesakes(seen - expected, expected - seen, own))
    for theirs, ours in namesakes.items():
        seen[ours] += seen.pop(theirs)
        split[ours] += split.pop(theirs)
    calls = {work: namesakes.get(name, name) for work, name in calls.items()}
    names = [name for name in {**expected, **seen} if seen[name] != expected[name]]
    return Beside(
        paper,
        tuple(
            Difference(n, seen[n], expected[n], _detail(n, seen[n], expected[n], split[n]))
            for n in names
        ),
        same_calls=all(n in own or (n != GENERATED and 0 < expected[n] < seen[n]) for n in names),
        ledger=ledger(measured, paper, calls),
        provenance=joined(measured, paper, calls),
    )


def with_costs(measured: Outcome, on_paper: Beside | None) -> Outcome:
    """What was measured on a GPU, its graph breaks with what they cost on paper."""
    if not isinstance(measured, Capture) or not measured.breaks or on_paper is None:
        return measured
    paper = on_paper.outcome
    if isinstance(paper, Unmeasured):
        unknown = Cost(None, f"not counted on paper: {paper.reason}")
        each = tuple(replace(b, cost=unknown) for b in measured.breaks)
        return replace(measured, breaks=each, breaks_cost=unknown)
    twins = [_twin(b, paper.breaks or ()) for b in measured.breaks]
    other = Cost(None, "on paper it does not break there")
    each = tuple(
        replace(b, cost=twin.cost if twin else other)
        for b, twin in zip(measured.breaks, twins, strict=True)
    )
    same = None not in twins and len(twins) == len(paper.breaks or ())
    together = paper.breaks_cost if same else Cost(None, "on paper it breaks elsewhere")
    return replace(measured, breaks=each, breaks_cost=together)


def with_notes(measured: Outcome, on_paper: Beside | None) -> Outcome:
    """What was measured on a GPU, with what is to be said of the bytes that paper gives it."""
    if not isinstance(measured, Capture) or on_paper is None or on_paper.ledger is None:
        return measured
    paper = on_paper.outcome
    notes = () if isinstance(paper, Unmeasured) else paper.notes
    said = tuple(note for note in notes if note.code == "read-again")
    return replace(measured, notes=(*measured.notes, *said)) if said else measured


def _twin(at: Break, others: Sequence[Break]) -> Break | None:
    """The same break of another capture; its reason may be worded in another way there."""
    there = [b for b in others if (b.file, b.line) == (at.file, at.line)]
    same = [b for b in there if (b.function, b.reason) == (at.function, at.reason)] or there
    return same[0] if len(same) == 1 else None


def _kernels(capture: Capture) -> Iterator[Work]:
    works = capture.records.works
    return (works[i] for i in capture.records.work if works[i].activity == "kernel")


def _on_paper(work: Work) -> str:
    return GENERATED if work.label is None else work.label


def _matching(work: Work, expected: Counter[str], own: frozenset[str]) -> str:
    """The call on paper that a kernel belongs to, or what the trace calls it.

    `own`: somebody's own ops, whose kernels are theirs also where they call torch's.
    """
    if work.label in own:
        return work.label or ""
    if GENERATED in expected and work.name.startswith(_GENERATED):
        return GENERATED
    return call_of(work.ops, expected) or work.label or work.name


def _namesakes(
    seen: Counter[str], expected: Counter[str], own: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Names that only one side has, in pairs that share a word: ``pad`` is ``constant_pad_nd``."""
    left = [name for name in expected if name != GENERATED]
    for name in seen:
        if name in expected or name in own or not left:
            continue
        best = max(left, key=lambda other: len(_words(name) & _words(other)))
        if _words(name) & _words(best):
            left.remove(best)
            yield name, best


def _words(name: str) -> set[str]:
    return {word for word in name.split("_") if word}


def _detail(name: str, seen: int, expected: int, split: int) -> str:
    """A few words on one difference."""
    if split and split == seen - expected:
        return f"split-K adds {split} to {name}"
    if name == GENERATED:
        return f"{seen} {name} instead of {expected}"
    if expected == 1 and seen > 1:
        return f"{name} is {seen} kernels"
    if not expected:
        return f"{name} launches {seen} that paper does not see"
    if not seen:
        return f"paper counts {expected} for {name}, and none was launched"
    by_parts = f" ({split} by split-K)" if split else ""
    return f"{name} launches {seen} kernels{by_parts} instead of {expected}"
