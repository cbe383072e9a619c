"""Variants that take turns: calls without a profiler, then profiled ones."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic

from kernelcount.capture import Subject
from kernelcount.model import NO_TIME, Capture, Work
from kernelcount.probes import timing
from kernelcount.together.running import Running

PROFILED = 5
"""Profiled calls of which the median is a kernel's time. Of single calls on an H200, 95 of 100
pairs differ by less than 7 % at the worst (see render.figures)."""


class Timed:
    """A variant that takes its turns, with what was counted of it."""

    def __init__(self, run: Running, capture: Capture) -> None:
        self.run, self.capture = run, capture
        run.draws_as_it_says = not (run.compiles or _is_compiled(capture))
        self.candidate = run.candidate()


def _is_compiled(capture: Capture) -> bool:
    """Whether code of torch.compile's ran, which has a random number generator of its own."""
    generated = (r.activity == "generated" or r.name[:7] == "triton_" for r in capture.rows())
    return capture.breaks is not None or any(generated)


Failed = Callable[[int, BaseException], None]
"""Takes the position of a variant that raised, and what: it is left out from then on."""


def in_turn(timed: dict[int, Timed], failed: Failed, subject: Subject) -> None:
    """Time those that do not raise; where one does, the others once more without it."""
    while timed:
        candidates = {i: t.candidate for i, t in timed.items()}
        try:
            seconds = subject.seconds * timing.shares(len(candidates))
            timing.in_turn(list(candidates.values()), subject.device, seconds)
        except BaseException as error:
            i = next((i for i, c in candidates.items() if c.failed is error), None)
            if i is None:
                raise
            failed(i, error)
            for candidate in candidates.values():
                candidate.samples.clear()
        else:
            return


def take_median_times(
    subject: Subject, timed: dict[int, Timed], failed: Failed, scratch: str | None
) -> None:
    """Give each record the median of its times in several profiled calls, in turn.

    They come after the time pass, and each after a turn of unprofiled calls: the GPU's clock, which
    falls while it waits for a compile, is up then. As many as `subject.seconds` have room for. On
    the CPU an operation's time is that of a single call: nobody compares it.
    """
    if subject.device.kind == "cpu":
        return
    until = monotonic() + subject.seconds * timing.shares(len(timed))
    took = sum(median(t.candidate.samples) for t in timed.values()) / 1e9
    seen: dict[int, list[array[int]]] = {i: [] for i in timed}
    with TemporaryDirectory(prefix="kernelcount-", dir=scratch) as folder:
        for _ in range(PROFILED):
            if monotonic() + took > until:
                break
            for i, t in list(timed.items()):
                try:
                    timing.turn(t.candidate, subject.device)
                    found = t.run.profiled(Path(folder))
                except BaseException as error:  # noqa: BLE001  whatever user code raises
                    failed(i, error)
                    continue
                # Where streams overlap the order may change: such a call is left out.
                if isinstance(found, Capture) and _order(found) == _order(t.capture):
                    seen[i].append(found.records.duration_ns)
    for i, t in timed.items():
        t.capture = _at_median(t.capture, seen[i])


def _at_median(capture: Capture, others: Sequence[array[int]]) -> Capture:
    if not others:
        return capture
    times = array("q", map(_median, zip(*others, strict=True)))
    return replace(capture, records=replace(capture.records, duration_ns=times))


def _order(capture: Capture) -> list[Work]:
    records = capture.records
    return [records.works[w] for w in records.work]


def _median(times: Sequence[int]) -> int:
    known = [t for t in times if t != NO_TIME]
    return round(median(known)) if known else NO_TIME
