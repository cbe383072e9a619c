"""A target, a variant and a device -> a Capture, or why there is none.

The count pass: call until two profiled calls in a row launch the same and nothing was compiled
between them. Only then is the call steady, and its record believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import GeneratorType
from typing import Any

from kernelcount.devices import Device
from kernelcount.devices.base import MARK
from kernelcount.devices.inductor import cpp_kernels_recordable
from kernelcount.errors import NotMeasuredError
from kernelcount.inputs import Arguments
from kernelcount.model import Capture, Environment, Note, Outcome, Target, Unmeasured
from kernelcount.operations import read_operations
from kernelcount.paper.gpu import PretendedGpu
from kernelcount.probes.compiler import CompilerWatch
from kernelcount.reading import ANOTHER_PROFILER, read_trace
from kernelcount.state import UserState, tensors
from kernelcount.variants import VARIANTS, Variant

WARM_UPS = 3
"""Calls before the first profile: in reduce-overhead mode a function runs eagerly once, is recorded
into a CUDA graph in the second call and replayed from the third
(torch/_inductor/cudagraph_trees.py)."""

MOST_CALLS = 12
"""torch gives up recompiling at 8 (torch._dynamo.config.recompile_limit), so calls 9 and 10 must
agree; two more are for records that the profiler lost.
"""

PAPER_WARM_UPS = 2
"""Calls on paper before the one that counts: in the second a size that changed becomes dynamic
(torch._dynamo.config.automatic_dynamic_shapes)."""

_FRESH_CALLS = 2

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """What is counted: the target with its arguments, on a device.

    `remake` makes the arguments anew from another seed: other values at other addresses.
    """

    target: Target
    arguments: Arguments
    remake: Callable[[int], Arguments]
    device: Device
    environment: Environment
    seed: int = 0
    backward: bool = False
    no_grad: bool = False
    notes: tuple[Note, ...] = ()


class Invocation:
    """One call of the target as the user asked for it, backward included."""

    def __init__(
        self, function: Callable[..., Any], arguments: Arguments, subject: Subject
    ) -> None:
        self.function, self.arguments, self.subject = function, arguments, subject
        self._seeds: dict[tuple[object, ...], Any] = {}

    def __call__(self) -> Any:
        """Call it, consume what it yields, and go backward where that was asked for.

        Gives what the call gave. Raises whatever the user's code raises.
        """
        import torch

        with torch.no_grad() if self.subject.no_grad else nullcontext():
            result = self.function(*self.arguments.args, **self.arguments.kwargs)
            if isinstance(result, GeneratorType):
                result = list(result)
        if self.subject.backward:
            self._backward(result)
        return result

    def _backward(self, result: Any) -> None:
        import torch

        outputs = [t for t in tensors(result) if t.requires_grad]
        if not outputs:
            raise NotMeasuredError("--backward: nothing that the function returns requires grad")
        torch.autograd.backward(outputs, [self._ones(t) for t in outputs])

    def _ones(self, output: Any) -> Any:
        """Ones like the output, made in the warm-up, so that no profile holds their making."""
        import torch

        key = (output.shape, output.dtype, output.device, output.stride())
        if key not in self._seeds:
            self._seeds[key] = torch.ones_like(output)
        return self._seeds[key]


@dataclass
class _Steady:
    """How the calls went: the last outcome, whether two agreed, and what was seen on the way."""

    outcome: Outcome
    stable: bool
    seen: list[int]
    compiled_last: bool


def measure(
    subject: Subject,
    variant: Variant,
    function: Callable[..., Any],
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Count one variant. `scratch` is a folder; the steady trace is left there as ``trace.json``.

    Raises whatever the user's code raises, with the profiler stopped and their state put back.
    """
    if isinstance(subject.device, PretendedGpu):
        return _measure_on_paper(subject, subject.device, variant, function, progress)
    kind = VARIANTS[variant.kind]
    state = UserState(function, (subject.arguments.args, subject.arguments.kwargs))
    with ExitStack() as stack:
        stack.callback(state.restore)
        stack.enter_context(subject.device.prepare())
        watch = stack.enter_context(CompilerWatch())
        stack.enter_context(kind.during())
        called = kind.apply(function, variant)
        invocation = Invocation(called, subject.arguments, subject)
        steady = _until_steady(subject, variant, invocation, state, watch, scratch, progress)
        notes = [*subject.notes, *_compile_notes(subject, variant, watch, steady)]
        if _is_empty(steady.outcome):
            fresh = _with_fresh_arguments(subject, variant, called, scratch)
            if fresh is not None:
                steady, note = fresh
                notes.append(note)
    if state.mutated:
        detail = "the call changes its arguments in place; each call got them as they were at first"
        notes.append(Note("mutates-arguments", detail))
    return _with_context(steady, subject, notes)


def _measure_on_paper(
    subject: Subject,
    gpu: PretendedGpu,
    variant: Variant,
    function: Callable[..., Any],
    progress: Progress,
) -> Outcome:
    """Count one variant for a GPU that is not there, by a call in which nothing is compiled."""
    kind = VARIANTS[variant.kind]
    given = (subject.arguments.args, subject.arguments.kwargs)
    with ExitStack() as stack:
        watch = stack.enter_context(CompilerWatch())
        stack.enter_context(gpu.prepare(compiles=kind.compiles))
        state = UserState(function, given)
        stack.callback(state.restore)
        stack.enter_context(kind.during())
        invocation = Invocation(kind.apply(function, variant), subject.arguments, subject)
        for call in range(1, PAPER_WARM_UPS + 1):
            progress(f"{variant.name}: on paper, call {call}")
            state.before_call()
            invocation()
        for call in range(PAPER_WARM_UPS + 1, MOST_CALLS + 1):
            progress(f"{variant.name}: on paper, call {call}")
            state.before_call()
            before = watch.compilations
            gpu.run(invocation, given, _not_modelled(variant))
            compiled_last = watch.compilations > before
            if not compiled_last:
                break
    records, paper, noted = gpu.counted()
    capture = Capture(variant.name, records=records, basis="paper", paper=paper)
    steady = _Steady(capture, not compiled_last, [], compiled_last)
    notes = [*subject.notes, *_compile_notes(subject, variant, watch, steady), *noted]
    return _with_context(steady, subject, notes)


def _not_modelled(variant: Variant) -> str | None:
    """What a mode of torch.compile may add to the kernels that are counted on paper."""
    mode = dict(variant.options).get("mode", "default")
    if mode == "default":
        return None
    return "CUDA graphs" if mode == "reduce-overhead" else "what autotuning chooses"


def _until_steady(
    subject: Subject,
    variant: Variant,
    invocation: Invocation,
    state: UserState,
    watch: CompilerWatch,
    scratch: Path,
    progress: Progress,
) -> _Steady:
    for call in range(1, WARM_UPS + 1):
        progress(f"{variant.name}: warm-up, call {call}")
        state.before_call()
        invocation()
    subject.device.synchronize()
    state.forget_unchanged()
    seen: list[int] = []
    previous: Counter[object] | None = None
    for call in range(WARM_UPS + 1, MOST_CALLS + 1):
        progress(f"{variant.name}: profiling, call {call}")
        state.before_call()
        before = watch.compilations
        outcome = _profile(subject, variant, invocation, scratch)
        compiled = watch.compilations > before
        launched = _launched(outcome)
        seen.append(_work_done(outcome))
        if isinstance(outcome, Capture) and launched == previous and not compiled:
            return _Steady(outcome, True, seen, False)
        # A call in which something was compiled, or whose record has holes, is no yardstick.
        previous = launched if isinstance(outcome, Capture) and not compiled else None
        if isinstance(outcome, Unmeasured) and outcome.reason == ANOTHER_PROFILER:
            break
    return _Steady(outcome, False, seen, compiled)


def _profile(
    subject: Subject, variant: Variant, call: Callable[[], object], scratch: Path
) -> Outcome:
    trace = scratch / "trace.json"
    subject.device.profile(call, trace)
    if subject.device.kind != "cpu":
        return read_trace(trace, variant.name, mark=MARK)
    records = read_operations(trace)
    if records is None:
        return Unmeasured(variant.name, ANOTHER_PROFILER)
    return Capture(variant.name, subject.environment, records=records)


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


def _with_fresh_arguments(
    subject: Subject, variant: Variant, called: Callable[..., Any], scratch: Path
) -> tuple[_Steady, Note] | None:
    """Whether an empty call has work to do when it has not seen its arguments before."""
    if not any(True for _ in tensors((subject.arguments.args, subject.arguments.kwargs))):
        return None
    outcomes: list[Outcome] = []
    kept: list[Arguments] = []  # so that no address comes back
    for i in range(1, _FRESH_CALLS + 1):
        kept.append(subject.remake(subject.seed + i))
        outcomes.append(_profile(subject, variant, Invocation(called, kept[-1], subject), scratch))
    launched = [_launched(o) for o in outcomes]
    if _is_empty(outcomes[-1]) or isinstance(outcomes[-1], Unmeasured):
        return None
    count = _work_done(outcomes[-1])
    detail = (
        "repeated calls launch nothing: the result is remembered from the first call; counted with"
        f" arguments it had not seen ({count})"
    )
    steady = _Steady(outcomes[-1], launched[0] == launched[1], [0, count], False)
    return steady, Note("memoised", detail)


def _compile_notes(
    subject: Subject, variant: Variant, watch: CompilerWatch, steady: _Steady
) -> list[Note]:
    notes: list[Note] = []
    if VARIANTS[variant.kind].compiles:
        if watch.graphs == 0:
            detail = f"0 graphs compiled: '{variant.name}' ran as eager code"
            notes.append(Note("not-compiled", detail))
        if watch.cudagraph_skips:
            detail = f"CUDA graphs skipped {watch.cudagraph_skips} times, for Inductor's reasons"
            notes.append(Note("cudagraphs-skipped", detail))
        if watch.blind:
            notes.append(Note("compiler-unknown", watch.blind))
        if subject.device.kind == "cpu" and not cpp_kernels_recordable():
            detail = f"cannot tell on torch {subject.environment.torch} what Inductor generated"
            notes.append(Note("generated-unknown", detail))
    if watch.limit:
        detail = f"'{variant.name}' ran as eager code: the {watch.limit} was reached"
        notes.append(Note("recompile-limit", detail))
    if steady.compiled_last:
        detail = "recompiled in the profiled call: this is no steady state"
        notes.append(Note("recompiled", detail))
    return notes


def _with_context(steady: _Steady, subject: Subject, notes: list[Note]) -> Outcome:
    """The outcome with what only the run knows: target, environment, stability, notes."""
    outcome = steady.outcome
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
        notes=(*notes, *capture.notes),
    )
    if isinstance(outcome, Unmeasured):
        return replace(outcome, seen=capture)
    return capture
