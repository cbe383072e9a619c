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

from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Capture, Environment, Note, Outcome, Unmeasured
from kernelcount.timeline import Settled, Timeline
from kernelcount.traces import saved
from kernelcount.traces.elements import Fault
from kernelcount.traces.kineto import KinetoTrace
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
    if not path.exists():
        raise UnreadableError(f"{path}: no such file")
    if path.is_dir():
        raise UnreadableError(f"{path}: this is a folder; name the trace files in it")
    head = next(Source(path).blocks(), b"")
    if not saved.recognises(head):
        return (read_trace(path, str(path), region, progress),)
    if region is not None:
        raise UsageError(f"{path}: saved captures hold no annotations, so no --region {region!r}")
    outcomes = saved.read(path, progress)
    if not outcomes:
        raise UnreadableError(f"{path}: no capture in it")
    return tuple(replace(o, name=f"{path}:{o.name}") for o in outcomes)


def read_trace(
    path: Path,
    name: str,
    region: str | None = None,
    progress: Progress | None = None,
    mark: str | None = None,
) -> Outcome:
    """What one trace holds, under `name`. Raises as `read_file` does.

    `mark` is an annotation that must be there: without it another profiler took the records.
    """
    trace = KinetoTrace(path, progress)
    timeline = Timeline(region, mark)
    with _collector_resting():
        for batch in trace.batches():
            timeline.add(batch)
        settled = timeline.settle()
    if region is not None and not timeline.regions:
        raise UsageError(_no_such_region(path, region, timeline))
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
    reason = _unknown(trace, settled, len(capture.records))
    return capture if reason is None else Unmeasured(name, reason, capture)


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
    timeline = settled.timeline
    if settled.lost or any(f.fatal for f in faults):
        return False
    untold = timeline.uncorrelated_launches or timeline.uncorrelated_records
    return None if not timeline.host_rows or untold else True


def _unknown(trace: KinetoTrace, settled: Settled, records: int) -> str | None:
    """Why the count cannot be believed, or None where it can."""
    timeline = settled.timeline
    if timeline.mark is not None and not (timeline.mark_seen and timeline.host_rows):
        return ANOTHER_PROFILER
    if fatal := next((f for f in trace.faults if f.fatal), None):
        return f"{fatal.detail}: what stands before is no whole count"
    if settled.lost:
        return _lost(settled)
    if timeline.phaseless:
        return f"{timeline.phaseless} kernel rows have no phase (ph): records or not, who knows"
    if timeline.region is not None and not timeline.host_rows:
        return "no launch is recorded, so no kernel can be told to belong to the region"
    return None if records or timeline.host_rows else _no_gpu_rows(trace, timeline)


def _no_gpu_rows(trace: KinetoTrace, timeline: Timeline) -> str:
    """Why nothing is known of the GPU: no kernel, and no host call that could have launched one."""
    if trace.legacy:
        return (
            "no kernel rows: this is the old autograd-profiler format, which does not tell kernels"
            " from ops; record with torch.profiler"
        )
    if len(timeline.labels):
        top = timeline.labels.top_level
        return (
            f"no GPU rows in this trace, CPU operations alone ({top} at the top level): record with"
            " ProfilerActivity.CUDA, on a machine with a GPU"
        )
    return "no GPU rows in this trace: no kernel, and no call that could have launched one"


def _lost(settled: Settled) -> str:
    launches = settled.timeline.launches
    ids = [str(launches.correlation[i]) for i in settled.lost[:_MOST_LISTED]]
    more = ", ..." if len(settled.lost) > _MOST_LISTED else ""
    n = len(settled.lost)
    return (
        f"{n} of {_many(settled.launches, 'launch', 'launches')} {'has' if n == 1 else 'have'} no"
        f" device record (correlation {', '.join(ids)}{more}): the profiler lost"
        f" {'it' if n == 1 else 'them'}, the count is incomplete"
    )


def _notes(trace: KinetoTrace, settled: Settled) -> Iterator[Note]:
    timeline = settled.timeline
    for fault in trace.faults:
        yield Note(fault.code, fault.detail)
    if settled.lost:
        yield Note("incomplete", _lost(settled))
    early = settled.orphans - settled.extra
    if early and timeline.host_rows and timeline.region is None:
        yield Note(
            "launched-before-recording",
            f"{_many(early, 'kernel was', 'kernels were')} launched before the recording began"
            " (no launch row); counted, but in no step",
        )
    if settled.extra:
        yield Note(
            "more-kernels-than-launches",
            f"{_many(settled.extra, 'kernel shares', 'kernels share')} a launch with another",
        )
    if settled.duplicates:
        yield Note(
            "duplicates",
            f"{_many(settled.duplicates, 'record stood', 'records stood')} there twice, alike in"
            " every field; counted once",
        )
    if untimed := _untimed(settled):
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


def _oddities(trace: KinetoTrace, settled: Settled) -> Iterator[Note]:
    timeline = settled.timeline
    if len(settled.steps) > 1:
        yield Note(
            "several-steps",
            f"{len(settled.steps)} profiler steps: the totals are over all, not for one call",
        )
    if timeline.steps and not settled.steps:
        yield Note("steps-unknown", "no launch is recorded, so kernels belong to no step")
    if settled.captured:
        yield Note(
            "captured",
            f"{_many(settled.captured, 'launch was', 'launches were')} captured into a CUDA graph"
            " and ran nothing; left out",
        )
    if timeline.unpaired:
        yield Note("unpaired", f"{timeline.unpaired} begin or end rows lack their other half")
    if trace.strange:
        yield Note("not-an-event", f"{trace.strange} elements that are no events were passed over")
    if len(timeline.vendors) > 1:
        yield Note("several-vendors", f"calls of {' and '.join(sorted(timeline.vendors))}")


def _untimed(settled: Settled) -> int:
    return Capture("", records=settled.records).untimed_kernels


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
    near = difflib.get_close_matches(region, timeline.annotations, n=_MOST_LISTED)
    there = near or sorted(timeline.annotations)[:_MOST_LISTED]
    hint = f"; there are: {', '.join(there)}" if there else "; it holds no annotation"
    return f"{path}: no annotation {region!r} in this trace{hint}"


def _many(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
