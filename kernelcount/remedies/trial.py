"""One remedy beside the variant that it is for: times in turn, results, kernels."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from kernelcount.conclusions import comparison
from kernelcount.errors import KernelcountError
from kernelcount.memory import is_out_of_memory
from kernelcount.model import Capture, Numerics, Remedy, Speed, Timing
from kernelcount.probes import configs, timing
from kernelcount.probes.agreement import beside
from kernelcount.remedies.facts import Attempt, Facts
from kernelcount.together import Running


def measure(name: str, facts: Facts, attempt: AbstractContextManager[Attempt]) -> Remedy:
    """What the remedy comes to. The attempt is made first: where it fails, nothing is timed.

    Raises NotMeasuredError where it is none, and whatever the user's code raises, with the state
    put back.
    """
    subject, device = facts.subject, facts.subject.device
    with ExitStack() as stack:
        stack.enter_context(configs.kept())
        stack.enter_context(device.prepare())
        made = stack.enter_context(attempt)
        base = Running(facts.way, subject, stack)
        run = Running(made.way, made.subject, stack, made.during)
        found = _compared(base, run, rough=not made.precise)
        made.remark(found)  # what is no remedy need not be timed
        candidates = [base.candidate(), run.candidate()]
        timing.in_turn(candidates, device, subject.seconds)
        speed = _speed(candidates)
        reason = made.remark(found)
        if speed is None and not reason:
            reason = "timed too seldom to tell: --seconds gives it more"
        kernels = None if device.kind == "cpu" else _kernels(run)
    return Remedy(name, "tried", reason, speed, found, kernels)


def _compared(base: Running, run: Running, *, rough: bool) -> Numerics:
    """How the results differ; held against float64 where the arithmetic is `rough`.

    The copies may be what there is no memory for: the calls can be timed all the same.
    """
    try:
        return beside(base, base.results(), run, wanted=rough, in_its_dtypes=rough)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return Numerics("unknown", 0, notes=("no memory to keep the results of both",))


def _speed(candidates: list[timing.Candidate]) -> Speed | None:
    names = tuple(c.name for c in candidates)
    first, second = (
        Capture(c.name, timing=Timing(tuple(c.samples), c.batch, names)) for c in candidates
    )
    return comparison.speed(first, second)


def _kernels(run: Running) -> int | None:
    """Kernels of one call under the profiler; None where they are not known for sure."""
    try:
        with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder:
            outcome = run.profiled(Path(folder))
    except (KernelcountError, OSError, RuntimeError):  # a profiler that cannot begin, for one
        return None
    whole = isinstance(outcome, Capture) and outcome.complete is not False
    return outcome.count("kernel") if isinstance(outcome, Capture) and whole else None
