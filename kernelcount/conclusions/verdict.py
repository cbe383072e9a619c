"""What holds a variant back: launches, memory, arithmetic, the CPU, too little work, or none.

Two things are asked in turn. Is the GPU idle for the most of the call? Then launching is what takes
the time, or something else on the CPU. Is it busy? Then its bytes and its operations take a certain
time at least, and whichever explains more than half of what it took holds it back: nothing else
can take more. Every threshold is that half; docs/verdict.md says why, and what is not seen.
"""

from __future__ import annotations

from math import prod
from statistics import median

from kernelcount.conclusions.roofline import Gpu, Roofline, timed_kernels
from kernelcount.model import (
    NO_TIME,
    Beside,
    Capture,
    Evidence,
    Holding,
    Records,
    Verdict,
)

MOST = 0.5
"""A share beyond which nothing else can have a greater one."""

_TO_HOST = "DtoH"
"""In the name of a copy from the device to the host, as Kineto spells it."""

CLUSTER = 16
"""Blocks of the largest cluster (CUDA C++ Programming Guide, "Thread Block Clusters": 8, and 16 on
an H100 by opt-in). A persistent kernel has as many whole clusters as fit, so that fewer blocks than
multiprocessors by less than this are all that it can have."""


def verdict(
    capture: Capture, beside: Beside | None, gpu: Gpu, *, compiled: bool = False
) -> Verdict:
    """What holds back a variant that was measured on a GPU.

    `beside` says what it moves and computes; `compiled`: whether compiled code makes the launches.
    """
    if (reason := _not_to_be_told(capture)) is not None:
        return Verdict(capture.name, None, (), reason)
    call = median(capture.timing.samples_ns) if capture.timing else None
    idle = _Call(capture, call, gpu, compiled)
    if idle.decided:
        return Verdict(capture.name, idle.verdict, idle.evidence, idle.reason, of_call=True)
    kernels = _Kernels(capture, beside, gpu)
    held, reason = kernels.verdict()
    precision = kernels.slowest
    evidence = (*idle.evidence, *kernels.evidence)
    return Verdict(capture.name, held, evidence, reason, call is not None, precision)


def _not_to_be_told(capture: Capture) -> str | None:
    if capture.basis != "measured" or capture.on_cpu:
        return "nothing was measured on a GPU"
    if capture.complete is False:
        return "not every launch has its device record"
    if not capture.count("kernel"):
        return "no kernel was launched"
    if not capture.busy_ns or capture.untimed_kernels:
        return "not every kernel has a valid time"
    return None


class _Call:
    """Whether the GPU is idle for the most of a call, and why; else that is not `decided` here."""

    def __init__(self, capture: Capture, call: float | None, gpu: Gpu, compiled: bool) -> None:
        self.verdict: Holding | None = None
        self.decided, self.reason = False, ""
        if call is None or call <= 0:
            said = "the call was not timed"
            self.evidence: tuple[Evidence, ...] = (Evidence("busy", reason=said),)
            return
        busy, copies = capture.busy_ns, _time_of_copies(capture)
        self.evidence = (Evidence("busy", busy, call, busy / call, "measured"),)
        if copies:
            self.evidence += (Evidence("copies", copies, call, copies / call, "measured"),)
        if busy >= MOST * call:
            return
        self.decided = True
        if busy + copies > (1 - MOST) * call:
            self.verdict = "none of these"  # kernels and copies together keep it at work
            return
        least, most = _launching(capture, call, gpu, compiled)
        self.evidence += (least,) if least.value == most.value else (least, most)
        if least.share is None or most.share is None:
            self.reason = f"the GPU is idle for the most of the call, and {least.reason}"
        elif least.share >= MOST or (most.share >= MOST and not _asks(capture)):
            self.verdict = "launch-bound"
        else:
            self.verdict = "waiting for the CPU"


def _time_of_copies(capture: Capture) -> int:
    r = capture.records
    moves = [w.activity in ("copy", "fill") for w in r.works]
    pairs = zip(r.work, r.duration_ns, strict=True)
    return sum(d for w, d in pairs if moves[w] and d != NO_TIME)


def _asks(capture: Capture) -> bool:
    """Whether the CPU waits in the call, or else whether something comes to the host in it."""
    if capture.syncs is not None:
        return any(not sync.free for sync in capture.syncs)
    works, r = capture.records.works, capture.records
    return any(works[w].activity == "copy" and _TO_HOST in works[w].name for w in r.work)


def _launching(
    capture: Capture, call: float, gpu: Gpu, compiled: bool
) -> tuple[Evidence, Evidence]:
    """What the CPU needs for the launches of a call, at the least and at the most.

    As far as that was measured, beside the call or before: for the plainest op, and for a call of a
    module.
    """
    launches = capture.launches
    rates = (capture.timing and capture.timing.launching) or gpu.measured
    if launches is None:
        return _not_told("how much was launched is not known")
    if rates is None or not rates.eager_ns or not (rates.compiled_ns or not compiled):
        return _not_told(
            "what launching costs here was not measured: kernelcount doctor measures it"
        )
    least, most = launches * rates.eager_ns, launches * (rates.module_ns or rates.eager_ns)
    if compiled and rates.compiled_ns:
        # A call of compiled code holds its first launch; what a further one costs there nobody has
        # measured, and an op in eager code, which is a launch, stands for it.
        least = most = rates.compiled_ns + max(launches - 1, 0) * rates.eager_ns
    return (
        Evidence("launching", least, call, min(least / call, 1.0), "measured"),
        Evidence("launching at most", most, call, min(most / call, 1.0), "measured"),
    )


def _not_told(reason: str) -> tuple[Evidence, Evidence]:
    return Evidence("launching", reason=reason), Evidence("launching at most", reason=reason)


class _Kernels:
    """What explains the time for which the GPU is busy."""

    def __init__(self, capture: Capture, beside: Beside | None, gpu: Gpu) -> None:
        self._busy, self._bounds = capture.busy_ns, Roofline(capture, beside, gpu)
        self._few = _blocks(capture.records, gpu)
        self.slowest = self._bounds.slowest
        self.evidence = (*self._bounds.evidence, self._few)

    def verdict(self) -> tuple[Holding | None, str]:
        """What holds the kernels back, or None and the reason why that cannot be told."""
        bounds = (self._bounds.memory, self._bounds.arithmetic)
        memory, arithmetic = (bound.ns for bound in bounds)
        if max(memory, arithmetic) >= MOST * self._busy:
            return ("memory-bound" if memory >= arithmetic else "compute-bound"), ""
        if self._few.share is not None and self._few.share >= MOST:
            return "too small to fill the GPU", ""
        reasons = [b.reason for b in bounds if not b.whole]
        reasons += [self._few.reason] if self._few.share is None else []
        return (None, "; ".join(dict.fromkeys(reasons))) if reasons else ("none of these", "")


def _blocks(records: Records, gpu: Gpu) -> Evidence:
    """Blocks of the kernel that runs at half of the kernel time, when sorted by them."""
    there = gpu.multiprocessors()
    if there is None:
        return Evidence("blocks", reason="how many multiprocessors there are is not known")
    timed = [(prod(w.grid), d) for w, d in timed_kernels(records) if w.grid]
    total = sum(d for _, d in timed_kernels(records))
    if sum(d for _, d in timed) < total:
        return Evidence("blocks", reason="of some kernels the number of blocks is not recorded")
    few = sum(d for blocks, d in timed if blocks <= there[0] - CLUSTER)
    passed, at_half = 0, 0
    for blocks, duration in sorted(timed):
        passed, at_half = passed + duration, blocks
        if passed >= MOST * total:
            break
    basis = "measured" if there[1] else "cited"
    return Evidence("blocks", at_half, there[0], few / total, basis)  # type: ignore[arg-type]
