"""A CPU profile -> the operations that do work, and the kernels that Inductor generated.

Rows nest: `aten::relu` holds `aten::clamp_min`. What counts is the outermost op that is neither
made of other ops nor a mere view or allocation; what stands inside it is its own business. A
compiled function shows generated kernels (``graph_0_cpp_fused_add_relu_0``) instead.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path

from kernelcount.devices.aten import effect
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
    found: list[tuple[Event, Work]] = []
    until: dict[object, float] = {}
    for op in sorted(ops, key=lambda o: (str(o.tid), o.ts or 0.0, -(o.dur or 0.0))):
        start = op.ts or 0.0
        if start < until.get(op.tid, float("-inf")):
            continue
        if (work := _work(op.name)) is not None:
            found.append((op, work))
        if work is not None or ("::" in op.name and effect(op.name) == "nothing"):
            until[op.tid] = start + (op.dur or 0.0)
    return found


def _work(name: str) -> Work | None:
    if generated := _GENERATED.fullmatch(name):
        return Work(generated[1], "generated")
    if "::" not in name or name.startswith(("autograd::", "torch::autograd::")):
        return None
    return Work(name, "aten", name.removeprefix("aten::")) if effect(name) == "work" else None


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
