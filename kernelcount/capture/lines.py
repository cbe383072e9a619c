"""The lines at which the CPU waits, told by one more call, without a profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kernelcount import waiting
from kernelcount.capture.calls import Given
from kernelcount.capture.passes import Pass
from kernelcount.model import Capture, Note, Outcome
from kernelcount.probes import syncs


def with_lines(this: Pass, outcome: Outcome, given: Callable[[], Given]) -> Outcome:
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
