"""What only the run knows of a capture: notes, what torch.compile left undone, stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelcount.capture.passes import Pass, Steady, is_empty
from kernelcount.devices.inductor import cpp_kernels_recordable
from kernelcount.model import Break, Capture, Cost, Note, Outcome, Unmeasured
from kernelcount.state import UserState
from kernelcount.variants import VARIANTS

NOT_RESTORED = "what the call changed in place could not be put back: later calls got other values"
_NAMED = 3  # functions in a note: what they have in common is the news


def compile_notes(this: Pass, steady: Steady) -> list[Note]:
    """What is to be said of torch.compile: that it did nothing, gave up, or cannot be told of."""
    name, watch = this.variant.name, this.watch
    notes = _already_notes(this)
    if VARIANTS[this.variant.kind].compiles:
        if watch.graphs == 0 and not is_empty(steady.outcome):
            notes.append(Note("not-compiled", f"0 graphs compiled: '{name}' ran as eager code"))
        if watch.cudagraph_skips:
            why = "; ".join(watch.skip_reasons) or "for Inductor's reasons"
            detail = f"CUDA graphs skipped ({watch.cudagraph_skips}): {why}"
            notes.append(Note("cudagraphs-skipped", detail))
        if watch.blind:
            notes.append(Note("compiler-unknown", watch.blind))
        if this.subject.device.kind == "cpu" and not cpp_kernels_recordable():
            torch = this.subject.environment.torch
            detail = f"cannot tell on torch {torch} what Inductor generated"
            notes.append(Note("generated-unknown", detail))
    if watch.limit and _is_partly_compiled(steady.outcome):
        detail = f"'{name}' ran in part as eager code: the {watch.limit} was reached"
        notes.append(Note("recompile-limit-in-part", detail))
    elif watch.limit:
        detail = f"'{name}' ran as eager code: the {watch.limit} was reached"
        notes.append(Note("recompile-limit", detail))
    if steady.compiled_last:
        detail = "recompiled in the profiled call: this is no steady state"
        notes.append(Note("recompiled", detail))
    return notes


def _already_notes(this: Pass) -> list[Note]:
    """What became of functions that their owner has compiled."""
    already = this.watch.already
    if VARIANTS[this.variant.kind].compiles:
        if not already.by_own_options:
            return []
        which = _some_of(already.by_own_options)
        detail = f"compiled already, and run by its owner's options, not the variant's: {which}"
        return [Note("own-options", detail)]
    if already.uncompiled:
        detail = f"compiled already, and run uncompiled: {_some_of(already.uncompiled)}"
        return [Note("compiled-already", detail)]
    blind = this.watch.blind_to_compiled
    return [Note("compiler-unknown", blind)] if blind else []


def _some_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _is_partly_compiled(outcome: Outcome) -> bool:
    """Whether kernels of Inductor's ran; an upper bound, for a user may name one like that."""
    if not isinstance(outcome, Capture):
        return False
    return any(r.activity == "generated" or r.name[:7] == "triton_" for r in outcome.rows())


def state_notes(state: UserState) -> list[Note]:
    """What is to be said of what the calls have changed."""
    notes: list[Note] = []
    if state.mutated:
        detail = "the call changes its arguments in place; each call got them as they were at first"
        notes.append(Note("mutates-arguments", detail))
    if state.module_changed:
        detail = (
            "the call changes the module's parameters or buffers; each call got them as they were"
            " at first"
        )
        notes.append(Note("mutates-module", detail))
    if state.unrestored:
        notes.append(Note("not-restored", NOT_RESTORED))
    return notes


def _interruptions(this: Pass, steady: Steady) -> dict[str, Any]:
    """What torch.compile did not do as one graph once and for all, of a variant that it compiled.

    Another implementation may have itself compiled.
    """
    watch, compiles = this.watch, VARIANTS[this.variant.kind].compiles
    found = watch.broken.breaks, watch.broken.recompilations
    if not (compiles or watch.graphs or any(found)):
        return {}
    on_gpu = this.subject.device.kind not in ("cpu", "paper")
    told = compiles and on_gpu and watch.cudagraph_skips is not None
    breaks, cost = steady.costs or _not_known(found[0], _why_no_cost(this))
    return {
        "breaks": breaks,
        "breaks_cost": cost,
        "recompilations": found[1],
        "skipped_graphs": tuple(watch.skip_reasons) if told else None,
    }


def _not_known(
    breaks: tuple[Break, ...] | None, why: str
) -> tuple[tuple[Break, ...] | None, Cost | None]:
    """Breaks whose cost cannot be told."""
    if not breaks:
        return breaks, None
    return tuple(replace(b, cost=Cost(None, why)) for b in breaks), Cost(None, why)


def _why_no_cost(this: Pass) -> str:
    if this.subject.device.kind == "cpu":
        return "these are CPU operations: --device paper counts the kernels"
    return why_not_asked(this) or "it was not counted on paper"


def why_not_asked(this: Pass) -> str | None:
    """Why the cost of graph breaks is not asked for; None where it is."""
    if this.watch.limit:
        return f"the {this.watch.limit} was reached, and what runs is eager code"
    options = dict(this.variant.options)
    if (backend := options.get("backend", "inductor")) != "inductor":
        return f"only Inductor's kernels are counted, and not those of {backend}"
    if str(options.get("mode", "")).startswith("max-autotune"):
        return "what autotuning chooses is not known on paper"
    return None


def with_context(this: Pass, steady: Steady, notes: list[Note]) -> Outcome:
    """The outcome with what only the run knows: target, environment, stability, notes."""
    outcome, subject = steady.outcome, this.subject
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    if capture is None:
        return outcome
    if not steady.stable and isinstance(outcome, Capture):
        counts = ", ".join(map(str, steady.seen))
        detail = f"no two calls in a row launched the same ({counts}): the last one is shown"
        notes.append(Note("unstable", detail))
    capture = replace(
        capture,
        environment=subject.environment,
        target=subject.target,
        stable=steady.stable,
        price=steady.price,
        notes=(*notes, *capture.notes),
        **_interruptions(this, steady),
    )
    if isinstance(outcome, Unmeasured):
        return replace(outcome, seen=capture)
    return capture
