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
from kernelcount.model import Capture, Environment, Outcome, Unmeasured
from kernelcount.reading import gaps, occupancy, waits
from kernelcount.reading.doubts import (
    ANOTHER_PROFILER,
    MOST_LISTED,
    complete,
    notes_on,
    why_unknown,
)
from kernelcount.timeline import Settled, Timeline, written_twice
from kernelcount.traces import saved
from kernelcount.traces.kineto import KinetoTrace, device_rows
from kernelcount.traces.source import Progress, Source

__all__ = ["ANOTHER_PROFILER", "read_file", "read_trace"]


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
        records=occupancy.worked_out(settled.records, trace.header),
        launches=settled.launches if timeline.host_rows else None,
        graph_launches=settled.graph_launches if timeline.host_rows else None,
        complete=complete(trace.faults, settled),
        steps=settled.steps,
        notes=tuple(notes_on(trace, settled)),
    )
    if (reason := why_unknown(trace, settled)) is not None:
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
    near = difflib.get_close_matches(region, timeline.annotations, n=MOST_LISTED)
    there = near or sorted(timeline.annotations)[:MOST_LISTED]
    hint = f"; there are: {', '.join(there)}" if there else "; it holds no annotation"
    return f"{path}: no annotation {region!r} in this trace{hint}"
