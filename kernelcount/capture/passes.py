"""What the calls of one variant share, and how they went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelcount.capture.calls import Invocation, Progress, Subject, Way, calling
from kernelcount.model import Break, Capture, Cost, Outcome, Price
from kernelcount.probes.compiler import CompilerWatch
from kernelcount.state import UserState
from kernelcount.variants import Variant

WARM_UPS = 3
"""Calls before the first profile: in reduce-overhead mode a function runs eagerly once, is recorded
into a CUDA graph in the second call and replayed from the third (torch/_inductor/cudagraph_trees).
"""

AGREED = 2
"""Calls after the warm-up that launch the same, at the least, before the call is steady."""

MOST_CALLS = 12
"""torch gives up recompiling at 8 (torch._dynamo.config.recompile_limit), so calls 9 and 10 must
agree; two more are for records that the profiler lost.
"""

PAPER_WARM_UPS = 2
"""Calls on paper before those that count: in the second a size that changed becomes dynamic
(torch._dynamo.config.automatic_dynamic_shapes).
"""


@dataclass
class Steady:
    """How the calls went: the last outcome, whether two agreed, and what was seen on the way."""

    outcome: Outcome
    stable: bool
    seen: list[int]
    compiled_last: bool
    price: Price | None = None
    costs: tuple[tuple[Break, ...], Cost] | None = None


@dataclass(frozen=True)
class Pass:
    """What the calls of one variant share. `scratch` is a folder for the trace."""

    subject: Subject
    variant: Variant
    invocation: Invocation
    state: UserState
    watch: CompilerWatch
    scratch: Path
    progress: Progress


@contextmanager
def begun(subject: Subject, way: Way, scratch: Path, progress: Progress) -> Iterator[Pass]:
    """The same with the compiler watched, on a device that is there."""
    with calling(subject, way) as (invocation, state), CompilerWatch() as watch:
        yield Pass(subject, way.variant, invocation, state, watch, scratch, progress)


def is_empty(outcome: Outcome) -> bool:
    """Whether nothing ran at all."""
    return isinstance(outcome, Capture) and len(outcome.records) == 0
