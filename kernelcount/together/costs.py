"""What launching costs here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median

from kernelcount.capture import Subject
from kernelcount.conclusions import rates, verdict
from kernelcount.devices import DEVICES
from kernelcount.model import LaunchCosts
from kernelcount.nesting import tensors
from kernelcount.probes import launching
from kernelcount.together.turns import Timed


def launching_costs(subject: Subject, timed: Sequence[Timed]) -> LaunchCosts | None:
    """What launching costs here, where the GPU is idle for the most of a call and nobody knows."""
    where = subject.environment
    if subject.device.kind == "cpu":
        return None
    idle = [t for t in timed if t.capture.busy_ns < verdict.MOST * median(t.candidate.samples)]
    compiling = any(t.run.compiles for t in idle)
    known = rates.kept(where.device or "", where.torch or "")
    if not idle or (known and known.eager_ns and (known.compiled_ns or not compiling)):
        return None
    given = tensors((subject.arguments.args, subject.arguments.kwargs))
    places = (str(t.device) for t in given if t.device.type != "cpu")
    kind = subject.device.kind
    return _launch_costs(kind, next(places, kind), compiling=compiling)


@cache
def _launch_costs(kind: str, name: str, *, compiling: bool) -> LaunchCosts | None:
    """The same, measured once in a process."""
    return launching.costs(DEVICES[kind], name, compiling=compiling)
