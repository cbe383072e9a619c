"""A target, a variant and a device -> a Capture, or why there is none.

The count pass: call until two profiled calls in a row launch the same and nothing was compiled
between them. Only then is the call steady, and its record believed.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter, perf_counter_ns
from types import GeneratorType
from typing import Any

from kernelcount import waiting
from kernelcount.devices import Device
from kernelcount.devices.base import MARK, Ranged
from kernelcount.devices.inductor import cpp_kernels_recordable
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.inputs import Arguments
from kernelcount.model import (
    Break,
    Capture,
    Cost,
    Environment,
    Note,
    Outcome,
    Price,
    Target,
    Unmeasured,
)
from kernelcount.nesting import tensors
from kernelcount.operations import read_operations
from kernelcount.paper.gpu import PretendedGpu
from kernelcount.paper.whole import MOST_OPS, Question, Trial
from kernelcount.probes import configs, syncs
from kernelcount.probes.compiler import CompilerWatch
from kernelcount.reading import ANOTHER_PROFILER, read_trace
from kernelcount.state import UserState, module_of
from kernelcount.variants import VARIANTS, Variant

WARM_UPS = 3
"""Calls before the first profile: in reduce-overhead mode a function runs eagerly once, is recorded
into a CUDA graph in the second call and replayed from the third (torch/_inductor/cudagraph_trees).
"""

AGREED = 2
"""Calls after the warm-up that launch the same, at the least, before the call is steady."""

MOST_CALLS = 12
"""torch gives up recompiling at 8 (torch._dynamo.config.recompile_limit), so calls 9 and 10 must
agree; two more are for records that the profiler lost.
"""

PAPER_WARM_UPS = 2
"""Calls on paper before those that count: in the second a size that changed becomes dynamic
(torch._dynamo.config.automatic_dynamic_shapes).
"""

_NOT_RESTORED = "what the call changed in place could not be put back: later calls got other values"
_NAMED = 3  # functions in a note: what they have in common is the news
_LAZY = (GeneratorType, map, filter, zip)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """What is counted: the target with its arguments, on a device.

    `remake` makes the arguments anew from another seed: other values at other addresses. `seconds`:
    how long times may be taken, 0 for none; `reference`: whether results are held against the same
    in float64; `cold`: whether calls are timed with arguments in turn that no cache holds;
    `explain`: whether more may be done than a plain run does, to tell why.
    """

    target: Target
    arguments: Arguments
    remake: Callable[[int], Arguments]
    device: Device
    environment: Environment
    seed: int = 0
    backward: bool = False
    no_grad: bool = False
    seconds: float = 0.0
    reference: bool = False
    cold: bool = False
    explain: bool = False
    notes: tuple[Note, ...] = ()
    fresh: list[Arguments] = field(default_factory=list)
    """Further sets of arguments that were made, kept so that no address of theirs comes back."""


@dataclass(frozen=True)
class Way:
    """A variant with what it runs: the function as the user wrote it, and what is called."""

    variant: Variant
    function: Callable[..., Any]
    call: Callable[..., Any]


def way(variant: Variant, function: Callable[..., Any]) -> Way:
    """The way to run `function` that the variant is: compiled, for one."""
    return Way(variant, function, VARIANTS[variant.kind].apply(function, variant))


_Given = tuple[tuple[Any, ...], dict[str, Any]]


class Invocation:
    """Calls of the target as the user asked for them, backward included."""

    def __init__(self, function: Callable[..., Any], subject: Subject) -> None:
        self.function, self.subject = function, subject
        self._process = os.getpid()
        self._seeds: dict[tuple[object, ...], Any] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it once, consume what it yields, and go backward where that was asked for.

        Gives what the call gave. Raises whatever the user's code raises.
        """
        import torch

        with torch.no_grad() if self.subject.no_grad else nullcontext():
            result = self.function(*args, **kwargs)
            if os.getpid() != self._process:
                os._exit(0)  # a child that the function forked has come back into our code
            if isinstance(result, _LAZY):
                # Without a backward pass each part may be freed before the next is made. On paper
                # there is nothing to free, and what is made belongs to what must be written.
                kept = self.subject.backward or self.subject.device.kind == "paper"
                result = list(result) if kept else deque(result, maxlen=0)
            elif inspect.isawaitable(result) or inspect.isasyncgen(result):
                raise _runs_nothing(result)
        if self.subject.backward:
            self.go_back(result)
        return result

    def of(self, function: Callable[..., Any]) -> Invocation:
        """The same calls of another function."""
        other = Invocation(function, self.subject)
        other._seeds = self._seeds
        return other

    def go_back(self, result: Any) -> None:
        """Go backward from what the call gave.

        Raises NotMeasuredError where nothing of it requires grad.
        """
        import torch

        outputs = [t for t in tensors(result) if t.requires_grad]
        if not outputs:
            raise NotMeasuredError("--backward: nothing that the function returns requires grad")
        torch.autograd.backward(outputs, [self._ones(t) for t in outputs])

    @property
    def seeds(self) -> list[Any]:
        """The gradients with which calls so far went backward."""
        return list(self._seeds.values())

    def _ones(self, output: Any) -> Any:
        """Ones like the output, made in the warm-up, so that no profile holds their making."""
        import torch

        key = (output.shape, output.dtype, output.device, output.stride())
        if key not in self._seeds:
            self._seeds[key] = torch.ones_like(output)
        return self._seeds[key]


def _runs_nothing(result: Any) -> UsageError:
    if inspect.iscoroutine(result):
        result.close()  # or Python would warn that it was never awaited
    kind = type(result).__name__.replace("_", " ")
    return UsageError(
        f"the function returns a {kind}, which runs nothing by itself: name a function that runs it"
    )


@dataclass
class _Steady:
    """How the calls went: the last outcome, whether two agreed, and what was seen on the way."""

    outcome: Outcome
    stable: bool
    seen: list[int]
    compiled_last: bool
    price: Price | None = None
    costs: tuple[tuple[Break, ...], Cost] | None = None


@dataclass(frozen=True)
class _Pass:
    """What the calls of one variant share. `scratch` is a folder for the trace."""

    subject: Subject
    variant: Variant
    invocation: Invocation
    state: UserState
    watch: CompilerWatch
    scratch: Path
    progress: Progress


def measure(
    subject: Subject,
    way: Way,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Count one variant. `scratch` is a folder; the steady trace is left there as ``trace.json``.

    Raises whatever the user's code raises, with the profiler stopped and their state put back.
    """
    if isinstance(subject.device, PretendedGpu):
        return _measure_on_paper(subject, subject.device, way, scratch, progress)
    with _begun(subject, way, scratch, progress) as this:
        given = this.state.before_call
        steady = _until_steady(this, given)
        notes = list(subject.notes)
        if _is_empty(steady.outcome) and (fresh := _with_fresh_arguments(this)) is not None:
            steady, given, note = fresh
            notes.append(note)
        notes += _compile_notes(this, steady)
        steady.outcome = _with_lines(this, steady.outcome, given)
        notes += _state_notes(this.state)
        return _with_context(this, steady, notes)


def repeat(subject: Subject, way: Way, scratch: Path, progress: Progress) -> None:
    """Call one variant until nothing is compiled any more, then once in the range of a profiler.

    No profiler of torch's is at work: the one that waits for the range and it exclude each other.
    Raises whatever the user's code raises, with their state put back.
    """
    device = subject.device
    if not isinstance(device, Ranged):
        raise NotMeasuredError(f"no profiler waits for a range on {device.kind}")
    with _begun(subject, way, scratch, progress) as this:
        for call in range(1, MOST_CALLS + 1):
            progress(f"warm-up, call {call}")
            before = (this.watch.compilations, this.watch.graphs)
            this.invocation(*this.state.before_call())
            if call == 1:
                this.state.look_closely()
            compiled = (this.watch.compilations, this.watch.graphs) != before
            if call >= WARM_UPS + AGREED and not compiled:
                break
        device.synchronize()
        this.state.forget_unchanged()
        device.in_range(partial(this.invocation, *this.state.before_call()))


@contextmanager
def calling(
    subject: Subject, way: Way, prepared: AbstractContextManager[Any] | None = None
) -> Iterator[tuple[Invocation, UserState]]:
    """What holds while a variant is called; the user's state is put back at its end.

    `prepared`: in place of what the device asks for.
    """
    given = (subject.arguments.args, subject.arguments.kwargs)
    with ExitStack() as stack:
        stack.enter_context(configs.kept())
        stack.enter_context(prepared or subject.device.prepare())
        state = UserState(way.function, given, backward=subject.backward)
        stack.callback(state.restore)
        stack.enter_context(VARIANTS[way.variant.kind].during())
        yield Invocation(way.call, subject), state


@contextmanager
def _begun(subject: Subject, way: Way, scratch: Path, progress: Progress) -> Iterator[_Pass]:
    """The same with the compiler watched, on a device that is there."""
    with calling(subject, way) as (invocation, state), CompilerWatch() as watch:
        yield _Pass(subject, way.variant, invocation, state, watch, scratch, progress)


def _measure_on_paper(
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
        this = _Pass(subject, way.variant, invocation, state, watch, scratch, progress)
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
    notes = [*subject.notes, *_compile_notes(this, steady)]
    notes += [note for note in noted if note not in notes]
    if _is_empty(capture) and not paper.own and gpu.launches(calls.at_first):
        notes.append(Note("memoised", "repeated calls launch nothing: the result is remembered"))
    if gpu.values.asked and (state.mutated or state.module_changed):
        notes.append(Note("not-restored", _NOT_RESTORED))
    return _with_context(this, steady, notes)


def _not_lowered(this: _Pass, why: str) -> Outcome:
    """A call whose kernels are not known, with what Dynamo has said of it all the same."""
    outcome = Unmeasured(this.variant.name, why, Capture(this.variant.name, basis="paper"))
    steady = _Steady(outcome, stable=True, seen=[], compiled_last=False)
    return _with_context(this, steady, [*this.subject.notes, *_compile_notes(this, steady)])


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


def _until_steady_on_paper(
    this: _Pass, gpu: PretendedGpu, function: Callable[..., Any]
) -> _OnPaper:
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


def _compared_on_paper(capture: Capture, gpu: PretendedGpu, calls: _OnPaper) -> _Steady:
    """Whether calls agree; those of other graphs do where Inductor makes the same kernels of them.

    Raises NotMeasuredError where Inductor is not followed.
    """
    if calls.stable:
        return _Steady(capture, stable=True, seen=[], compiled_last=False)
    lowered = [gpu.lowered(noted) for noted in calls.noted]
    same = lowered[-1][0] == lowered[-2][0] and not any(calls.compiled[-2:])
    return _Steady(capture, same, [kernels for _, kernels in lowered], calls.compiled[-1])


def _without_breaks(
    this: _Pass, gpu: PretendedGpu, function: Callable[..., Any], began: float
) -> Trial | None:
    """The call that was counted without its graph breaks; None where that is not asked."""
    if not this.watch.broken.breaks or _why_not_asked(this) is not None:
        return None
    this.progress("on paper, without its graph breaks")
    return gpu.without_breaks(_question(this, function, began))


def _question(this: _Pass, function: Callable[..., Any], began: float) -> Question:
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


def _why_not_asked(this: _Pass) -> str | None:
    """Why the cost of graph breaks is not asked for; None where it is."""
    if this.watch.limit:
        return f"the {this.watch.limit} was reached, and what runs is eager code"
    options = dict(this.variant.options)
    if (backend := options.get("backend", "inductor")) != "inductor":
        return f"only Inductor's kernels are counted, and not those of {backend}"
    if str(options.get("mode", "")).startswith("max-autotune"):
        return "what autotuning chooses is not known on paper"
    return None


def _not_modelled(this: _Pass) -> str | None:
    """What modes of torch.compile may add to the kernels that are counted on paper.

    They are the variant's, or those by which its owner has compiled what is called.
    """
    mode, found = dict(this.variant.options).get("mode", "default"), this.watch.already.modes
    if mode.startswith("max-autotune") or "autotuning" in found:
        return "what autotuning chooses"
    return "CUDA graphs" if mode == "reduce-overhead" or "cudagraphs" in found else None


def _until_steady(this: _Pass, given: Callable[[], _Given]) -> _Steady:
    """Call until two calls agree; `given` makes the arguments ready before each, unrecorded."""
    for call in range(1, WARM_UPS + 1):
        this.progress(f"warm-up, call {call}")
        arguments = given()
        this.subject.device.synchronize()
        start = perf_counter_ns()
        this.invocation(*arguments)
        if call == 1:
            this.subject.device.synchronize()
            first_call = perf_counter_ns() - start
            first_graphs = this.watch.graphs
            this.state.look_closely()
    this.subject.device.synchronize()
    this.state.forget_unchanged()
    seen: list[int] = []
    previous: Counter[object] | None = None
    for call in range(WARM_UPS + 1, MOST_CALLS + 1):
        this.progress(f"profiling, call {call}")
        before = (this.watch.compilations, this.watch.graphs)
        outcome = _profile(this, *given())
        compiled = (this.watch.compilations, this.watch.graphs) != before
        launched = _launched(outcome)
        seen.append(_work_done(outcome))
        if isinstance(outcome, Capture) and launched == previous and not compiled:
            return _Steady(outcome, True, seen, False, _price(this, first_call, first_graphs))
        # A call in which something was compiled, or whose record has holes, is no yardstick.
        previous = launched if isinstance(outcome, Capture) and not compiled else None
        if isinstance(outcome, Unmeasured) and outcome.reason == ANOTHER_PROFILER:
            break
    return _Steady(outcome, False, seen, compiled, _price(this, first_call, first_graphs))


def _price(this: _Pass, first_call_ns: int, first_graphs: int | None) -> Price:
    """What was paid before the calls were steady."""
    if not VARIANTS[this.variant.kind].compiles:
        return Price(first_call_ns)
    now = this.watch.graphs
    again = None if now is None or first_graphs is None else now - first_graphs
    return Price(first_call_ns, this.watch.compile_ns, again)


def _profile(this: _Pass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    call = partial(this.invocation, args, kwargs)
    return profiled(this.subject, this.variant.name, this.scratch, call)


def profiled(subject: Subject, name: str, scratch: Path, call: Callable[[], object]) -> Outcome:
    """What one call launches, by the profiler; its trace is ``trace.json`` in `scratch`."""
    trace = scratch / "trace.json"
    subject.device.profile(call, trace)
    if subject.device.kind != "cpu":
        return read_trace(trace, name, mark=MARK)
    records = read_operations(trace)
    if records is None:
        return Unmeasured(name, ANOTHER_PROFILER)
    return Capture(name, subject.environment, records=records)


def _launched(outcome: Outcome) -> Counter[object]:
    """What a call launched, to compare with another call: names and counts, not times."""
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    if capture is None:
        return Counter()
    launched: Counter[object] = Counter()
    for row in capture.rows():
        launched[row.activity, row.name] += row.count
    launched["launches"] = capture.launches or 0
    launched["graph launches"] = capture.graph_launches or 0
    return launched


def _work_done(outcome: Outcome) -> int:
    """Kernels, or operations on the CPU."""
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    if capture is None:
        return 0
    return sum(row.count for row in capture.rows() if row.activity not in ("copy", "fill"))


def _is_empty(outcome: Outcome) -> bool:
    return isinstance(outcome, Capture) and len(outcome.records) == 0


def _with_lines(this: _Pass, outcome: Outcome, given: Callable[[], _Given]) -> Outcome:
    """The outcome with the lines at which the CPU waits, told by one more call, without a profiler.

    A call that fails, or in which something is compiled, tells nothing; that costs the lines.
    """
    if not isinstance(outcome, Capture) or outcome.syncs is None:
        return outcome
    this.progress("looking where the CPU waits")
    before = (this.watch.compilations, this.watch.graphs)
    call = partial(this.invocation, *given())
    try:
        told = syncs.told(call, this.subject.device, asked=waiting.asks(outcome.syncs))
        this.subject.device.synchronize()
    except (Exception, SystemExit) as error:  # noqa: BLE001  it has been counted: that stays
        return _without_lines(outcome, f"the call raised {type(error).__name__}")
    if told is None:
        return outcome
    if (this.watch.compilations, this.watch.graphs) != before:
        return _without_lines(outcome, "something was compiled in the call")
    found, notes = waiting.merged(outcome.syncs, told)
    return replace(outcome, syncs=found, notes=(*outcome.notes, *notes))


def _without_lines(outcome: Capture, why: str) -> Capture:
    if not outcome.syncs:
        return outcome
    detail = f"at which lines the CPU waits is not known: {why} that was to tell"
    return replace(outcome, notes=(*outcome.notes, Note("syncs-unplaced", detail)))


def _with_fresh_arguments(
    this: _Pass,
) -> tuple[_Steady, Callable[[], _Given], Note] | None:
    """Whether an empty call has work to do when it has not seen its arguments before."""
    subject = this.subject
    if not any(True for _ in tensors((subject.arguments.args, subject.arguments.kwargs))):
        return None

    def unseen() -> _Given:
        this.state.before_call()  # gradients, too
        subject.fresh.append(subject.remake(subject.seed + len(subject.fresh) + 1))
        return subject.fresh[-1].args, subject.fresh[-1].kwargs

    try:
        arguments = unseen()
    except Exception:  # noqa: BLE001  the user's maker gives no second set
        return None
    if _is_empty(_profile(this, *arguments)):
        return None
    steady = _until_steady(this, unseen)
    detail = (
        "repeated calls launch nothing: the result is remembered from the first call; counted with"
        f" arguments it had not seen ({_work_done(steady.outcome)})"
    )
    return steady, unseen, Note("memoised", detail)


def _compile_notes(this: _Pass, steady: _Steady) -> list[Note]:
    name, watch = this.variant.name, this.watch
    notes = _already_notes(this)
    if VARIANTS[this.variant.kind].compiles:
        if watch.graphs == 0 and not _is_empty(steady.outcome):
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


def _already_notes(this: _Pass) -> list[Note]:
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


def _state_notes(state: UserState) -> list[Note]:
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
        notes.append(Note("not-restored", _NOT_RESTORED))
    return notes


def _interruptions(this: _Pass, steady: _Steady) -> dict[str, Any]:
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


def _why_no_cost(this: _Pass) -> str:
    if this.subject.device.kind == "cpu":
        return "these are CPU operations: --device paper counts the kernels"
    return _why_not_asked(this) or "it was not counted on paper"


def _with_context(this: _Pass, steady: _Steady, notes: list[Note]) -> Outcome:
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
