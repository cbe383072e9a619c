"""Sweeps to render, made by hand: what was counted and timed at each size."""

from __future__ import annotations

from dataclasses import replace

from kernelcount.conclusions import crossover
from kernelcount.model import Capture, Outcome, Report, Run, Speed, Target, Timing, Unmeasured

from . import samples

TARGET = Target("add_relu.py:add_relu", ("f32[100]", "f32[100]"))

# Microseconds a call of eager and compile, about as an H200 takes them for add and relu.
CROSSED = {100: (9.1, 17.4), 10_000: (9.2, 17.3), 1_000_000: (13.1, 17.5), 100_000_000: (469, 280)}


def timed(capture: Capture, us: float, together: tuple[str, ...]) -> Capture:
    """A capture whose call takes about so many microseconds: from 1 % below it to 1 % above."""
    samples_ns = tuple(us * 1e3 * (1 + 0.001 * (i - 10)) for i in range(21))
    return replace(capture, timing=Timing(samples_ns, 40, together))


def speed(base_us: float, us: float) -> Speed:
    ratio = base_us / us
    verdict = "no difference" if abs(ratio - 1) < 0.01 else "faster" if ratio > 1 else "slower"
    return Speed(ratio, ratio * 0.99, ratio * 1.01, verdict)  # type: ignore[arg-type]


def run(size: int, times: tuple[float, ...], *captures: Capture) -> Run:
    """Captures timed in turn, each taking so many microseconds a call."""
    names = tuple(c.name for c in captures)
    outcomes = [timed(c, us, names) for c, us in zip(captures, times, strict=True)]
    return Run(tuple(outcomes), size, speeds=(None, *(speed(times[0], us) for us in times[1:])))


def report(*runs: Run, **given: object) -> Report:
    whole = Report("run", samples.H200, runs, TARGET, crossover.find(runs))
    return replace(whole, **given)  # type: ignore[arg-type]


def crossed() -> Report:
    """compile is slower at small sizes and faster at the largest."""
    return report(*(run(n, us, samples.eager(), samples.compiled()) for n, us in CROSSED.items()))


def of_verdicts(*times: tuple[int, float, float]) -> Report:
    """Sizes with the microseconds of eager and compile."""
    return report(*(run(n, (a, b), samples.eager(), samples.compiled()) for n, a, b in times))


def unmeasured(size: int, *outcomes: Outcome, reason: str = "") -> Run:
    """A size at which not all was measured: what is left, or both for a reason."""
    both = tuple(Unmeasured(name, reason) for name in ("eager", "compile"))
    return Run(outcomes or both, size)
