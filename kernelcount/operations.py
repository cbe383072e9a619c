"""A CPU profile -> the operations that do work, and the kernels that Inductor generated.

Rows nest: `aten::relu` holds `aten::clamp_min`. What counts is the outermost op that is neither
made of other ops nor a mere view or allocation; what stands inside it is its own business. A
compiled function shows generated kernels (``graph_0_cpp_fused_add_relu_0``) instead.
"""

from __future__ import annotations

import re
from array import array
from itertools import islice, takewhile
from pathlib import Path

from kernelcount.devices.aten import becomes, effect
from kernelcount.devices.base import MARK
from kernelcount.model import Lane, Records, Work
from kernelcount.traces.kineto import Annotation, Event, KinetoTrace, Op

_GENERATED = re.compile(r"(?:graph_\d+_)?(cpp_fused\w*)")


def read_operations(path: Path) -> Records | None:
    """The operations of the profiled call in the trace at `path`, in order of start.

    None where the trace does not hold the call: another profiler emptied it.
    """
    ops: list[Event] = []
    marks: list[Event] = []
    for batch in KinetoTrace(path).batches():
        ops += [row for row in batch if type(row) is Op]
        marks += [row for row in batch if type(row) is Annotation and row.name == MARK]
    if not marks or marks[0].ts is None or marks[0].dur is None:
        return None
    begin, end = marks[0].ts, marks[0].ts + marks[0].dur
    inside = [o for o in ops if o.ts is not None and begin <= o.ts <= end]
    return _columns(sorted(_outermost(inside), key=lambda found: found[0].ts or 0.0))


def _outermost(ops: list[Event]) -> list[tuple[Event, Work]]:
    """The ops that count. Each bears the name of the outermost op around it as its label."""
    found: list[tuple[Event, Work]] = []
    settled: dict[object, float] = {}
    outer: dict[object, tuple[float, str]] = {}
    rows = sorted(ops, key=lambda o: (str(o.tid), o.ts or 0.0, -(o.dur or 0.0)))
    for i, op in enumerate(rows):
        start, end = _span(op)
        if start < settled.get(op.tid, float("-inf")):
            continue
        if start >= outer.get(op.tid, (float("-inf"), ""))[0] and _is_operator(op.name):
            outer[op.tid] = (end, op.name.removeprefix("aten::"))
        generated = _GENERATED.fullmatch(op.name)
        if generated:
            found.append((op, Work(generated[1], "generated")))
        elif not _is_operator(op.name) or _passes_on(rows, i):
            continue
        elif effect(op.name) != "nothing":
            found.append((op, Work(op.name, "aten", outer[op.tid][1])))
        settled[op.tid] = end
    return found


def _passes_on(rows: list[Event], i: int) -> bool:
    """Whether the op in row `i` is made of others, which stand in the rows after it."""
    op = rows[i]
    what = effect(op.name)
    if what != "mixed":
        return what == "composite"
    end, others = _span(op)[1], becomes(op.name)
    inside = takewhile(lambda o: o.tid == op.tid and _span(o)[0] < end, islice(rows, i + 1, None))
    return any(o.name in others for o in inside)


def _span(op: Event) -> tuple[float, float]:
    """Start and end in microseconds."""
    return op.ts or 0.0, (op.ts or 0.0) + (op.dur or 0.0)


def _is_operator(name: str) -> bool:
    return "::" in name and not name.startswith(("autograd::", "torch::autograd::"))


def _columns(found: list[tuple[Event, Work]]) -> Records:
    works: dict[Work, int] = {}
    index = array("i", (works.setdefault(work, len(works)) for _, work in found))
    return Records(
        tuple(works),
        (Lane("cpu", "0"),),
        index,
        array("i", bytes(4 * len(found))),
        array("q", (round((op.ts or 0.0) * 1000) for op, _ in found)),
        array("q", (round((op.dur or 0.0) * 1000) for op, _ in found)),
    )
