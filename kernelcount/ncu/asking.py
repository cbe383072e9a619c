"""What was counted, with what the GPU's counters say of it, or a note that says why they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernelcount import worker
from kernelcount.examination.counters import INSTALL, installed
from kernelcount.model import Capture, Counters, Job, Note, Outcome
from kernelcount.ncu import matching, metrics
from kernelcount.ncu.log import Log
from kernelcount.ncu.process import Unread, profile
from kernelcount.runners import name_of

Progress = Callable[[str], None]

_NAMED = 3  # kernels in a note


def counted(job: Job, outcomes: Mapping[int, Outcome], progress: Progress) -> dict[int, Outcome]:
    """The outcomes, each that was measured with counters or with a note on why there are none."""
    ncu = installed()
    found = dict(outcomes)
    missing = f"Nsight Compute is not installed: {INSTALL}"
    hopeless = None if ncu else Unread(missing, everywhere=True)
    for step in worker.steps(job):
        capture = outcomes[step.index]
        if not isinstance(capture, Capture) or not capture.count("kernel"):
            continue
        logs: list[Log | Unread] = [hopeless] if hopeless else []
        for number, names in enumerate(metrics.PASSES, start=1):
            if ncu is None or any(isinstance(got, Unread) for got in logs):
                break
            of = f"{number} of {len(metrics.PASSES)}"
            progress(f"{name_of(step, job)}: under Nsight Compute, run {of}")
            logs.append(profile(ncu, _alone(job, step), names))
        hopeless = next((g for g in logs if isinstance(g, Unread) and g.everywhere), None)
        found[step.index] = told(capture, logs)
    return found


def _alone(job: Job, step: worker.Step) -> Job:
    """The job of one step; nobody waits there for traces or times."""
    sizes = () if step.size is None else (step.size,)
    return replace(job, variants=(step.variant,), sizes=sizes, traces=(), seconds=0.0)


def told(capture: Capture, logs: Sequence[Log | Unread]) -> Capture:
    """A capture with what the logs, one for each of `metrics.PASSES`, say of its records."""
    notes: list[Note] = []
    values: list[dict[str, float | None]] = [{} for _ in range(len(capture.records))]
    for names, got in zip(metrics.PASSES, logs, strict=False):
        if isinstance(got, Unread):
            notes.append(Note("no-counters", f"no counters: {got.reason}"))
        elif (places := matching.match(capture, got.kernels)) is None:
            notes.append(_differs(capture, got))
        else:
            for own, place in zip(values, places, strict=True):
                own.update({} if place is None else got.kernels[place].metrics)
            notes += [*_run_again(got), *_unknown(names, got)]
    counters = tuple(map(_counters, values)) if any(values) else ()
    return replace(capture, counters=counters, notes=(*capture.notes, *dict.fromkeys(notes)))


def _counters(values: Mapping[str, float | None]) -> Counters | None:
    return metrics.counters(values) if values else None


def _differs(capture: Capture, got: Log) -> Note:
    there, here = len(got.kernels), capture.count("kernel")
    names = sorted({matching.function(kernel.name) for kernel in got.kernels})
    detail = (
        f"under Nsight Compute the call launched {there} kernels where {here} were counted"
        if there != here
        else f"under Nsight Compute the call launched other kernels: {', '.join(names[:_NAMED])}"
    )
    return Note("ncu-differs", f"{detail}; no counter is matched to any")


def _run_again(got: Log) -> list[Note]:
    """Whether a kernel was run several times for the bytes that it reads from DRAM."""
    of_bytes = any(metrics.READ in kernel.metrics for kernel in got.kernels)
    if not of_bytes or got.passes in (None, 1):
        return []
    detail = (
        f"for the DRAM bytes each kernel was run {got.passes} times: what the run before left in "
        "the L2 cache may not have been read from DRAM"
    )
    return [Note("ncu-replayed", detail)]


def _unknown(names: Sequence[str], got: Log) -> list[Note]:
    """Which of the metrics asked for ncu has no value of, for one kernel or another."""
    asked = [name for name in names if name in metrics.ASKED]
    without = [n for n in asked if any(k.metrics.get(n) is None for k in got.kernels)]
    if metrics.STALLS in names and not any(metrics.stall(k.metrics) for k in got.kernels):
        without.append(metrics.STALLS)
    if not without:
        return []
    return [Note("no-counters", f"ncu has no value here of {', '.join(without)}")]
