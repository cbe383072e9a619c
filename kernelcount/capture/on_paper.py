"""On paper: called until two calls launch the same ops, and what graph breaks cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from kernelcount.capture.calls import Progress, Subject, Way, calling
from kernelcount.capture.context import NOT_RESTORED, compile_notes, why_not_asked, with_context
from kernelcount.capture.passes import MOST_CALLS, PAPER_WARM_UPS, Pass, Steady, is_empty
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Capture, Note, Outcome, Unmeasured
from kernelcount.paper.gpu import PretendedGpu
from kernelcount.paper.whole import MOST_OPS, Question, Trial
from kernelcount.probes.compiler import CompilerWatch
from kernelcount.state import module_of
from kernelcount.variants import VARIANTS


def measure_on_paper(
    subject: Subject,
    gpu: PretendedGpu,
    way: Way,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Count one variant for a GPU that is not there, by a call that launches what another does."""
    began = perf_counter()
    prepared = gpu.prepare(compiles=VARIANTS[way.variant.kind].compiles)
    with CompilerWatch() as watch, calling(subject, way, prepared) as (invocation, state):
        this = Pass(subject, way.variant, invocation, state, watch, scratch, progress)
        calls = _until_steady_on_paper(this, gpu, way.function)
        watch.close()
        trial = _without_breaks(this, gpu, way.function, began) if calls.stable else None
    try:
        records, paper, noted, provenance = gpu.counted()
    except NotMeasuredError as error:
        return _not_lowered(this, str(error))
    capture = Capture(
        way.variant.name,
        records=records,
        basis="paper",
        paper=paper,
        provenance=provenance,
        syncs=gpu.syncs,
    )
    steady = _compared_on_paper(capture, gpu, calls)
    if trial is not None:
        steady.costs = gpu.costs(trial, watch.broken.breaks or ())
    notes = [*subject.notes, *compile_notes(this, steady)]
    notes += [note for note in noted if note not in notes]
    if is_empty(capture) and not paper.own and gpu.launches(calls.at_first):
        notes.append(Note("memoised", "repeated calls launch nothing: the result is remembered"))
    if gpu.values.asked and (state.mutated or state.module_changed):
        notes.append(Note("not-restored", NOT_RESTORED))
    return with_context(this, steady, notes)


def _not_lowered(this: Pass, why: str) -> Outcome:
    """A call whose kernels are not known, with what Dynamo has said of it all the same."""
    outcome = Unmeasured(this.variant.name, why, Capture(this.variant.name, basis="paper"))
    steady = Steady(outcome, stable=True, seen=[], compiled_last=False)
    return with_context(this, steady, [*this.subject.notes, *compile_notes(this, steady)])


@dataclass
class _OnPaper:
    """How the calls on paper went: what the first noted, and each of those that may be counted.

    `compiled`: whether something was compiled in each of these. `stable`: the last two launch the
    same ops and graphs, and nothing was compiled in them.
    """

    at_first: Any
    noted: list[Any] = field(default_factory=list)
    compiled: list[bool] = field(default_factory=list)
    stable: bool = False


def _until_steady_on_paper(this: Pass, gpu: PretendedGpu, function: Callable[..., Any]) -> _OnPaper:
    """Call until two calls agree and nothing was compiled in them, as where there is a GPU.

    The calls but the first, and those that may be counted, are not noted.
    """
    given = (this.subject.arguments.args, this.subject.arguments.kwargs)
    ends, invocation, state = (module_of(function), given), this.invocation, this.state
    this.progress("on paper, warm-up, call 1")
    gpu.run(partial(invocation, *state.before_call()), ends)
    calls = _OnPaper(gpu.noted)
    for call in range(2, PAPER_WARM_UPS + 1):
        this.progress(f"on paper, warm-up, call {call}")
        invocation(*state.before_call())
    previous: Counter[object] | None = None
    for call in range(PAPER_WARM_UPS + 1, MOST_CALLS + 1):
        this.progress(f"on paper, call {call}")
        before = (this.watch.compilations, this.watch.graphs)
        reached = [*state.reached, *invocation.seeds]
        gpu.run(partial(invocation, *state.before_call()), ends, _not_modelled(this), reached)
        calls.noted.append(gpu.noted)
        calls.compiled.append((this.watch.compilations, this.watch.graphs) != before)
        launched = None if calls.compiled[-1] else gpu.launched()
        calls.stable = launched is not None and launched == previous
        if calls.stable:
            break
        previous = launched
    return calls


def _compared_on_paper(capture: Capture, gpu: PretendedGpu, calls: _OnPaper) -> Steady:
    """Whether calls agree; those of other graphs do where Inductor makes the same kernels of them.

    Raises NotMeasuredError where Inductor is not followed.
    """
    if calls.stable:
        return Steady(capture, stable=True, seen=[], compiled_last=False)
    lowered = [gpu.lowered(noted) for noted in calls.noted]
    same = lowered[-1][0] == lowered[-2][0] and not any(calls.compiled[-2:])
    return Steady(capture, same, [kernels for _, kernels in lowered], calls.compiled[-1])


def _without_breaks(
    this: Pass, gpu: PretendedGpu, function: Callable[..., Any], began: float
) -> Trial | None:
    """The call that was counted without its graph breaks; None where that is not asked."""
    if not this.watch.broken.breaks or why_not_asked(this) is not None:
        return None
    this.progress("on paper, without its graph breaks")
    return gpu.without_breaks(_question(this, function, began))


def _question(this: Pass, function: Callable[..., Any], began: float) -> Question:
    """How the call on paper is made again, with its graph breaks and without."""
    import torch

    compiles = VARIANTS[this.variant.kind].compiles
    dynamic = dict(this.variant.options).get("dynamic")
    as_one, in_parts = (
        torch.compile(function, fullgraph=full, dynamic=dynamic) if compiles else None
        for full in (True, False)
    )

    def called(compiled: Callable[..., Any] | None) -> Any:
        if compiled is None:
            raise NotMeasuredError("the function compiles itself, in parts")
        return this.invocation.of(compiled)(*this.state.before_call())

    return Question(
        lambda: this.invocation(*this.state.before_call()),
        this.invocation.go_back if this.subject.backward else lambda _: None,
        partial(called, as_one),
        partial(called, in_parts),
        dynamic,
        began,
        None if this.subject.explain else MOST_OPS,
    )


def _not_modelled(this: Pass) -> str | None:
    """What modes of torch.compile may add to the kernels that are counted on paper.

    They are the variant's, or those by which its owner has compiled what is called.
    """
    mode, found = dict(this.variant.options).get("mode", "default"), this.watch.already.modes
    if mode.startswith("max-autotune") or "autotuning" in found:
        return "what autotuning chooses"
    return "CUDA graphs" if mode == "reduce-overhead" or "cudagraphs" in found else None
