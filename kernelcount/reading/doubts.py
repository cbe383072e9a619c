"""What a trace cannot say, and what is to be known beside its figures."""

from __future__ import annotations

from collections.abc import Iterator

from kernelcount.model import Capture, Note
from kernelcount.timeline import Settled, Timeline
from kernelcount.traces.elements import Fault
from kernelcount.traces.kineto import Kernel, KinetoTrace, Op, Runtime

ANOTHER_PROFILER = (
    "another profiler (one that the function opens itself, or nsys or ncu around this) took the"
    " records: the count is unknown; run without it"
)
MOST_LISTED = 5  # correlations or names spelt out in a sentence; the rest are counted


def complete(faults: list[Fault], settled: Settled) -> bool | None:
    """Whether every launch has its record; None where rows are missing that would tell."""
    if settled.tally.lost or settled.short or any(f.fatal for f in faults):
        return False
    untold = settled.tally.blind or settled.unmarked or settled.missing
    return None if untold or not settled.timeline.host_rows else True


def why_unknown(trace: KinetoTrace, settled: Settled) -> str | None:
    """Why the count cannot be believed, or None where it can."""
    timeline = settled.timeline
    if timeline.mark is not None and not (timeline.mark_seen and timeline.host_rows):
        return ANOTHER_PROFILER
    if fatal := next((f for f in trace.faults if f.fatal), None):
        return f"{fatal.detail}: what stands before is no whole count"
    if settled.tally.lost:
        return _lost(settled)
    if settled.short:
        return _short(settled)
    if odd := _odd_kernel_rows(trace, timeline):
        return odd
    if timeline.region is not None and not timeline.host_rows:
        return "no launch is recorded, so no kernel can be told to belong to the region"
    if timeline.region is not None and timeline.endless:
        return f"the annotation {timeline.region!r} or a step has no valid start or end"
    return None if len(timeline.work) or timeline.host_rows else _no_gpu_rows(trace, timeline)


def _odd_kernel_rows(trace: KinetoTrace, timeline: Timeline) -> str | None:
    """Rows of which it is not sure that they are kernels that ran."""
    if timeline.phaseless:
        return f"{_many(timeline.phaseless, 'kernel row has', 'kernel rows have')} no phase (ph)"
    if timeline.unended:
        return f"{_many(timeline.unended, 'kernel row begins', 'kernel rows begin')} without an end"
    old = trace.old
    if old[Kernel] and (timeline.rows > old.total() or not (old[Runtime] or old[Op])):
        return (
            f"{_many(old[Kernel], 'row is', 'rows are')} of the category 'Kernel', as PyTorch spelt"
            " it before 1.12, among rows that it would have spelt otherwise"
        )
    return None


def _no_gpu_rows(trace: KinetoTrace, timeline: Timeline) -> str:
    """Why nothing is known of the GPU: no kernel, and no host call that could have launched one."""
    if trace.legacy:
        return (
            "no kernel rows: this is the old autograd-profiler format, which does not tell kernels"
            " from ops; record with torch.profiler"
        )
    if len(timeline.labels):
        top = timeline.labels.top_level()
        return (
            f"no GPU rows in this trace, CPU operations alone ({top} at the top level): record with"
            " ProfilerActivity.CUDA, on a machine with a GPU"
        )
    return "no GPU rows in this trace: no kernel, and no call that could have launched one"


def _lost(settled: Settled) -> str:
    launches, lost = settled.timeline.launches, settled.tally.lost
    ids = [str(launches.correlation[i]) for i in lost[:MOST_LISTED]]
    more = ", ..." if len(lost) > MOST_LISTED else ""
    n = len(lost)
    return (
        f"{n} of {_many(settled.launches, 'launch', 'launches')} {'has' if n == 1 else 'have'} no"
        f" device record (correlation {', '.join(ids)}{more}): the profiler lost"
        f" {'it' if n == 1 else 'them'}, the count is incomplete"
    )


def _short(settled: Settled) -> str:
    blind = _many(len(settled.tally.blind), "launch bears", "launches bear")
    if settled.timeline.region is not None:
        return f"{blind} no correlation id: which kernels are of the region cannot be told"
    return (
        f"{blind} no correlation id, and for {settled.short} of them no kernel is left:"
        " the count is incomplete"
    )


def notes_on(trace: KinetoTrace, settled: Settled) -> Iterator[Note]:
    """What is to be known beside the figures of a trace."""
    timeline = settled.timeline
    for fault in trace.faults:
        yield Note(fault.code, fault.detail)
    if any(f.fatal for f in trace.faults):
        pass  # what is missing was cut off, and that is said already
    elif settled.tally.lost:
        yield Note("incomplete", _lost(settled))
    elif settled.short:
        yield Note("incomplete", _short(settled))
    if timeline.host_rows:
        yield from _launch_notes(settled)
    if settled.duplicates:
        yield Note(
            "duplicates",
            f"{_many(settled.duplicates, 'record stood', 'records stood')} there twice, alike in"
            " every field; counted once",
        )
    if untimed := Capture("", records=settled.records).untimed_kernels:
        yield Note(
            "untimed-kernels",
            f"{_many(untimed, 'kernel has', 'kernels have')} no valid time: counted, left out of"
            " the times",
        )
    if timeline.compiled:
        yield Note(
            "compiled-in-profile",
            "torch.compile worked while this was recorded: the count may hold its benchmarking",
        )
    yield from _oddities(trace, settled)


def _launch_notes(settled: Settled) -> Iterator[Note]:
    """What is odd about the launches, and about kernels without one."""
    region = settled.timeline.region
    if settled.early:
        fate = "counted, but in no step" if region is None else "left out"
        yield Note(
            "launched-before-recording",
            f"{_many(settled.early, 'kernel was', 'kernels were')} launched before the recording"
            f" began (no launch row); {fate}",
        )
    if region is None and settled.missing:
        yield Note(
            "launch-row-missing",
            f"{_many(settled.missing, 'kernel has', 'kernels have')} no launch row; counted, but in"
            " no step",
        )
    if region is not None and settled.unplaced:
        yield Note(
            "launch-row-missing",
            f"{_many(settled.unplaced, 'kernel has', 'kernels have')} no launch row that says when:"
            " perhaps launched in the region, and left out",
        )
    rows = (
        (len(settled.tally.blind), "launch", "launches"),
        (settled.unmarked, "kernel", "kernels"),
    )
    if without := [_many(n, one, several) for n, one, several in rows if n]:
        yield Note(
            "uncorrelated",
            f"without a correlation id: {' and '.join(without)}; which belong together cannot be"
            " told",
        )
    if settled.tally.surplus:
        yield Note(
            "more-kernels-than-launches",
            f"{_many(settled.tally.surplus, 'kernel shares', 'kernels share')} a launch with"
            " another",
        )


def _oddities(trace: KinetoTrace, settled: Settled) -> Iterator[Note]:
    timeline = settled.timeline
    if captured := settled.tally.captured:
        yield Note(
            "captured",
            f"{_many(captured, 'launch was', 'launches were')} captured into a CUDA graph"
            " and ran nothing; left out",
        )
    if len(settled.steps) > 1:
        yield Note(
            "several-steps",
            f"{len(settled.steps)} profiler steps: the totals are over all, not for one call",
        )
    if timeline.steps and not settled.steps:
        yield Note("steps-unknown", "no launch is recorded, so kernels belong to no step")
    if timeline.endless:
        yield Note(
            "no-end",
            f"{_many(timeline.endless, 'range has', 'ranges have')} no valid start or end",
        )
    if timeline.unpaired:
        yield Note(
            "unpaired",
            f"{_many(timeline.unpaired, 'begin or end row lacks', 'begin or end rows lack')} its"
            " other half",
        )
    if trace.strange:
        yield Note(
            "not-an-event",
            f"{_many(trace.strange, 'element', 'elements')} of the list of events, no event, passed"
            " over",
        )
    if len(timeline.vendors) > 1:
        yield Note("several-vendors", f"calls of {' and '.join(sorted(timeline.vendors))}")


def _many(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
