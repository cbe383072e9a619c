"""On a device: called until two profiled calls in a row launch the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from kernelcount.capture.calls import Given, Subject
from kernelcount.capture.passes import MOST_CALLS, WARM_UPS, Pass, Steady, is_empty
from kernelcount.devices.base import MARK
from kernelcount.model import Capture, Note, Outcome, Price, Unmeasured
from kernelcount.nesting import tensors
from kernelcount.operations import read_operations
from kernelcount.reading import ANOTHER_PROFILER, read_trace
from kernelcount.variants import VARIANTS


def until_steady(this: Pass, given: Callable[[], Given]) -> Steady:
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
        seen.append(work_done(outcome))
        if isinstance(outcome, Capture) and launched == previous and not compiled:
            return Steady(outcome, True, seen, False, _price(this, first_call, first_graphs))
        # A call in which something was compiled, or whose record has holes, is no yardstick.
        previous = launched if isinstance(outcome, Capture) and not compiled else None
        if isinstance(outcome, Unmeasured) and outcome.reason == ANOTHER_PROFILER:
            break
    return Steady(outcome, False, seen, compiled, _price(this, first_call, first_graphs))


def _price(this: Pass, first_call_ns: int, first_graphs: int | None) -> Price:
    """What was paid before the calls were steady."""
    if not VARIANTS[this.variant.kind].compiles:
        return Price(first_call_ns)
    now = this.watch.graphs
    again = None if now is None or first_graphs is None else now - first_graphs
    return Price(first_call_ns, this.watch.compile_ns, again)


def with_fresh_arguments(
    this: Pass,
) -> tuple[Steady, Callable[[], Given], Note] | None:
    """Whether an empty call has work to do when it has not seen its arguments before."""
    subject = this.subject
    if not any(True for _ in tensors((subject.arguments.args, subject.arguments.kwargs))):
        return None

    def unseen() -> Given:
        this.state.before_call()  # gradients, too
        subject.fresh.append(subject.remake(subject.seed + len(subject.fresh) + 1))
        return subject.fresh[-1].args, subject.fresh[-1].kwargs

    try:
        arguments = unseen()
    except Exception:  # noqa: BLE001  the user's maker gives no second set
        return None
    if is_empty(_profile(this, *arguments)):
        return None
    steady = until_steady(this, unseen)
    detail = (
        "repeated calls launch nothing: the result is remembered from the first call; counted with"
        f" arguments it had not seen ({work_done(steady.outcome)})"
    )
    return steady, unseen, Note("memoised", detail)


def _profile(this: Pass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
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


def work_done(outcome: Outcome) -> int:
    """Kernels, or operations on the CPU."""
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    if capture is None:
        return 0
    return sum(row.count for row in capture.rows() if row.activity not in ("copy", "fill"))
