"""A file -> its outcomes: what a trace or a saved capture says, and what it cannot say.

`run` reads its own traces here, so that it and `read` cannot disagree.
"""

from __future__ import annotations

import difflib
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelcount import gaps, waits
from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Capture, Environment, Note, Outcome, Unmeasured
from kernelcount.timeline import Settled, Timeline, written_twice
from kernelcount.traces import saved
from kernelcount.traces.elements import Fault
from kernelcount.traces.kineto import Kernel, KinetoTrace, Op, Runtime, device_rows
from kernelcount.traces.source import Progress, Source

ANOTHER_PROFILER = (
    "another profiler (one that the function opens itself, or nsys or ncu around this) took the"
    " records: the count is unknown; run without it"
)
_MOST_LISTED = 5  # correlations or names spelt out in a sentence; the rest are counted


def read_file(
    path: Path, region: str | None = None, progress: Progress | None = None
) -> tuple[Outcome, ...]:
    """The outcomes in one file: one for a trace, one a variant for saved captures.

    `region` keeps the kernels launched while an annotation of that name was open. Raises
    UnreadableError where the file holds neither, UsageError where no such annotation is there.
    """
    source = Source(path, progress)
    if not saved.recognises(source.head()):
        return (_read(source, str(path), region),)
    if region is not None:
        raise UsageError(f"{path}: saved captures hold no annotations, so no --region {region!r}")
    outcomes = saved.read(source)
    if not outcomes:
        raise UnreadableError(f"{path}: no capture in it")
    return tuple(replace(o, name=f"{path}:{o.name}") for o in outcomes)


def read_trace(path: Path, name: str, mark: str | None = None) -> Outcome:
    """What one trace holds, under `name`. Raises as `read_file` does.

    `mark` is an annotation that must be there: without it another profiler took the records.
    """
    return _read(Source(path), name, mark=mark)


def _read(source: Source, name: str, region: str | None = None, mark: str | None = None) -> Outcome:
    trace = KinetoTrace(source.path, source)
    timeline = Timeline(region, mark)
    with _collector_resting():
        for batch in trace.batches():
            timeline.add(batch)
        timeline.close()
        again = source.again()
        rows = device_rows(again) if again else None
        settled = Settled(timeline, written_twice(timeline, rows))
    if region is not None and not timeline.regions:
        raise UsageError(_no_such_region(source.path, region, timeline))
    capture = Capture(
        name=name,
        environment=_environment(trace.header, timeline),
        records=settled.records,
        launches=settled.launches if timeline.host_rows else None,
        graph_launches=settled.graph_launches if timeline.host_rows else None,
        complete=_complete(trace.faults, settled),
        steps=settled.steps,
        notes=tuple(_notes(trace, settled)),
    )
    if (reason := _unknown(trace, settled)) is not None:
        return Unmeasured(name, reason, capture)
    return _with_waits(capture, settled) if timeline.host_rows else capture


def _with_waits(capture: Capture, settled: Settled) -> Capture:
    """The capture with the times that CPU and GPU waited for each other."""
    longest, idle_ns = gaps.found(settled) or (None, None)
    syncs = waits.found(settled, priced=capture.complete is True)
    return replace(capture, syncs=syncs, gaps=longest, idle_ns=idle_ns)


@contextmanager
def _collector_resting() -> Iterator[None]:
    """Keep Python's cycle collector still: rows hold no cycles, and it would walk all of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _complete(faults: list[Fault], settled: Settled) -> bool | None:
    """Whether every launch has its record; None where rows are missing that would tell."""
    if settled.tally.lost or settled.short or any(f.fatal for f in faults):
        return False
    untold = settled.tally.blind or settled.unmarked or settled.missing
    return None if untold or not settled.timeline.host_rows else True


def _unknown(trace: KinetoTrace, settled: Settled) -> str | None:
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
    ids = [str(launches.correlation[i]) for i in lost[:_MOST_LISTED]]
    more = ", ..." if len(lost) > _MOST_LISTED else ""
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


def _notes(trace: KinetoTrace, settled: Settled) -> Iterator[Note]:
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


def _environment(header: dict[str, Any], timeline: Timeline) -> Environment:
    devices = header.get("deviceProperties")
    names = dict.fromkeys(
        d["name"]
        for d in (devices if isinstance(devices, list) else ())
        if isinstance(d, dict) and isinstance(d.get("name"), str)
    )
    kind = next(iter(sorted(timeline.vendors)), None)
    return Environment(device=", ".join(names) or None, kind=kind)


def _no_such_region(path: Path, region: str, timeline: Timeline) -> str:
    if region in timeline.annotations:
        return f"{path}: the annotation {region!r} has no valid start"
    near = difflib.get_close_matches(region, timeline.annotations, n=_MOST_LISTED)
    there = near or sorted(timeline.annotations)[:_MOST_LISTED]
    hint = f"; there are: {', '.join(there)}" if there else "; it holds no annotation"
    return f"{path}: no annotation {region!r} in this trace{hint}"


def _many(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
