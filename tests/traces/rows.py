"""Rows of small traces, as Kineto writes them, and what `read` makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernelcount.model import Capture, Outcome, Unmeasured
from kernelcount.reading import read_file

Row = dict[str, Any]


def row(cat: str, name: str, ts: Any, dur: Any, pid: Any, tid: Any, **args: Any) -> Row:
    """Any complete event."""
    whole = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**whole, "args": args}


def kernel(correlation: Any = 1, ts: Any = 100.0, name: str = "k", **args: Any) -> Row:
    """A kernel of 2 us on device 0."""
    device = args.setdefault("device", 0)
    args.setdefault("stream", 7)
    return row("kernel", name, ts, args.pop("dur", 2.0), device, 7, correlation=correlation, **args)


def copy(correlation: Any = 1, ts: Any = 100.0, name: str = "Memcpy HtoD", **args: Any) -> Row:
    """A memcpy on device 0."""
    device = args.setdefault("device", 0)
    return row("gpu_memcpy", name, ts, 1.0, device, 7, correlation=correlation, **args)


def launch(
    correlation: Any = 1, ts: Any = 10.0, name: str = "cudaLaunchKernel", pid: Any = 9, **args: Any
) -> Row:
    """A host call of 4 us, by the runtime unless `cat` says otherwise."""
    tid, cat = args.pop("tid", 9), args.pop("cat", "cuda_runtime")
    return row(cat, name, ts, args.pop("dur", 4.0), pid, tid, correlation=correlation, **args)


def graph_launch(correlation: Any = 1, ts: Any = 10.0, **args: Any) -> Row:
    """A launch of a CUDA graph."""
    return launch(correlation, ts, "cudaGraphLaunch", **args)


def driver(correlation: Any = 1, ts: Any = 11.0, **args: Any) -> Row:
    """The driver's own row of a launch, inside the runtime's by default."""
    return launch(correlation, ts, "cuLaunchKernel", cat="cuda_driver", dur=1.0, **args)


def op(name: str, ts: float, dur: float, external: int, pid: Any = 9, tid: Any = 9) -> Row:
    """An op on the host."""
    return row("cpu_op", name, ts, dur, pid, tid, **{"External id": external})


def annotation(name: str, ts: Any, dur: Any, pid: Any = 9, tid: Any = 9) -> Row:
    """A named range on the host."""
    return row("user_annotation", name, ts, dur, pid, tid)


def half(phase: str, whole: Row) -> Row:
    """The begin or the end of an event."""
    ts = whole["ts"] + (whole["dur"] if phase == "E" else 0)
    return {**{k: v for k, v in whole.items() if k != "dur"}, "ph": phase, "ts": ts}


def read(folder: Path, rows: list[Any], region: str | None = None, **header: Any) -> Outcome:
    """What the one outcome of a trace of these rows is."""
    path = folder / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": rows}))
    (outcome,) = read_file(path, region)
    return outcome


def seen(outcome: Outcome) -> Capture:
    """What was recorded, be it in part."""
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    assert capture is not None
    return capture


def kernels(outcome: Outcome) -> int:
    """How many kernels were recorded, be it in part."""
    return seen(outcome).count("kernel")


def notes(outcome: Outcome) -> dict[str, str]:
    """The notes by code."""
    return {note.code: note.detail for note in seen(outcome).notes}


def reason(outcome: Outcome) -> str | None:
    """Why the count is unknown, or None where it is known."""
    return outcome.reason if isinstance(outcome, Unmeasured) else None
