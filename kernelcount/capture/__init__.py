"""A target, a variant and a device -> a Capture, or why there is none.

The count pass: call until two profiled calls in a row launch the same and nothing was compiled
between them. Only then is the call steady, and its record believed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kernelcount.capture.calls import Invocation, Progress, Subject, Way, calling, way
from kernelcount.capture.context import compile_notes, state_notes, with_context
from kernelcount.capture.lines import with_lines
from kernelcount.capture.on_paper import measure_on_paper
from kernelcount.capture.passes import AGREED, MOST_CALLS, PAPER_WARM_UPS, WARM_UPS, begun, is_empty
from kernelcount.capture.steady import profiled, until_steady, with_fresh_arguments
from kernelcount.devices.base import Ranged
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Outcome
from kernelcount.paper.gpu import PretendedGpu

__all__ = [
    "MOST_CALLS", "PAPER_WARM_UPS", "WARM_UPS", "Invocation", "Progress", "Subject", "Way",
    "calling", "measure", "profiled", "repeat", "way",
]  # fmt: skip


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
        return measure_on_paper(subject, subject.device, way, scratch, progress)
    with begun(subject, way, scratch, progress) as this:
        given = this.state.before_call
        steady = until_steady(this, given)
        notes = list(subject.notes)
        if is_empty(steady.outcome) and (fresh := with_fresh_arguments(this)) is not None:
            steady, given, note = fresh
            notes.append(note)
        notes += compile_notes(this, steady)
        steady.outcome = with_lines(this, steady.outcome, given)
        notes += state_notes(this.state)
        return with_context(this, steady, notes)


def repeat(subject: Subject, way: Way, scratch: Path, progress: Progress) -> None:
    """Call one variant until nothing is compiled any more, then once in the range of a profiler.

    No profiler of torch's is at work: the one that waits for the range and it exclude each other.
    Raises whatever the user's code raises, with their state put back.
    """
    device = subject.device
    if not isinstance(device, Ranged):
        raise NotMeasuredError(f"no profiler waits for a range on {device.kind}")
    with begun(subject, way, scratch, progress) as this:
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
