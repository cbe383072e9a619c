"""What holds a variant back: launches, memory, arithmetic, the CPU, too little work, or none.

Two things are asked in turn. Is the GPU idle for the most of the call? Then launching is what takes
the time, or something else on the CPU. Is it busy? Then its bytes and its operations take a certain
time at least, and whichever explains more than half of what it took holds it back: nothing else
can take more. Every threshold is that half; docs/verdict.md says why, and what is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from statistics import median

from kernelcount.model import (
    NO_TIME,
    Beside,
    Capture,
    Evidence,
    Holding,
    Paper,
    Rates,
    Records,
    Verdict,
    Work,
)

MOST = 0.5
"""A share beyond which nothing else can have a greater one."""

CLUSTER = 16
"""Blocks of the largest cluster (CUDA C++ Programming Guide, "Thread Block Clusters": 8, and 16 on
an H100 by opt-in). A persistent kernel has as many whole clusters as fit, so that fewer blocks than
multiprocessors by less than this are all that it can have."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What is known of the GPU: rates that were measured, else the `cited` ones; `l2` in bytes."""

    measured: Rates | None = None
    cited: Rates | None = None
    l2: int | None = None

    def copy(self) -> tuple[float, bool] | None:
        """Bytes a second of a copy, and whether that was measured; None: not known."""
        return self._first("copy")

    def peak(self) -> float:
        """Bytes a second beyond which they cannot come from memory: reading alone beats a copy."""
        return max((r.copy for r in (self.measured, self.cited) if r and r.copy), default=0.0)

    def copy_l2(self) -> tuple[float, bool] | None:
        """The same of a copy that the L2 cache serves."""
        return self._first("copy_l2")

    def matmul(self, precision: str) -> tuple[float, bool] | None:
        """Operations a second of matrix products at a precision, and whether measured."""
        return self._first("matmul", precision)

    def multiprocessors(self) -> tuple[float, bool] | None:
        """How many there are, and whether the GPU itself said so."""
        return self._first("multiprocessors")

    def _first(self, name: str, precision: str | None = None) -> tuple[float, bool] | None:
        for rates in (self.measured, self.cited):
            value = getattr(rates, name, None)
            value = dict(value or ()).get(precision) if precision else value
            if value:
                return float(value), rates is self.measured
        return None


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
            said = "the call was not timed: --seconds 1 times it"
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
        launching = _launching(capture, call, gpu, compiled)
        self.evidence += (launching,)
        if launching.share is None:
            self.reason = f"the GPU is idle for the most of the call, and {launching.reason}"
        else:
            enough = launching.share >= MOST
            self.verdict = "launch-bound" if enough else "waiting for the CPU"


def _time_of_copies(capture: Capture) -> int:
    r = capture.records
    moves = [w.activity in ("copy", "fill") for w in r.works]
    pairs = zip(r.work, r.duration_ns, strict=True)
    return sum(d for w, d in pairs if moves[w] and d != NO_TIME)


def _launching(capture: Capture, call: float, gpu: Gpu, compiled: bool) -> Evidence:
    """What the CPU needs for the launches of a call, as far as that was measured here."""
    rates, launches = gpu.measured, capture.launches
    if launches is None:
        return Evidence("launching", reason="how much was launched is not known")
    if compiled:
        costs = (rates.compiled_ns, rates.launch_ns) if rates else (None, None)
        fixed, each = costs
    else:
        fixed, each = 0.0, rates.eager_ns if rates else None
    if fixed is None or each is None:
        said = "what launching costs here was not measured: kernelcount doctor measures it"
        return Evidence("launching", reason=said)
    needed = fixed + launches * each
    return Evidence("launching", needed, call, min(needed / call, 1.0), "measured")


@dataclass(frozen=True, slots=True)
class _Bound:
    """Nanoseconds that something takes at least; `whole` False: of a part, for a `reason`.

    `measured`: whether the rate is; `moved`, `took`: bytes, and nanoseconds that they took; `l2`:
    whether the L2 cache served them.
    """

    ns: float = 0.0
    whole: bool = True
    reason: str = ""
    measured: bool = True
    moved: int = 0
    took: int = 0
    l2: bool = False


class _Kernels:
    """What explains the time for which the GPU is busy."""

    def __init__(self, capture: Capture, beside: Beside | None, gpu: Gpu) -> None:
        self._gpu, self._busy = gpu, capture.busy_ns
        self._records = (beside and beside.ledger) or capture.records
        outcome = beside.outcome if beside else None
        # Operations are those of the function, whichever kernels do them; bytes are the kernels'.
        self._worked_out = outcome.paper if isinstance(outcome, Capture) else None
        self._paper = beside.paper if beside else None
        self.slowest: str | None = None
        parts = self._memory_parts()
        self._memory, self._arithmetic = self._sum(parts), self._least_arithmetic()
        self._few = self._blocks()
        self.evidence = (*self._of_memory(parts), self._of_arithmetic(), self._few)

    def verdict(self) -> tuple[Holding | None, str]:
        """What holds the kernels back, or None and the reason why that cannot be told."""
        memory, arithmetic = self._memory.ns, self._arithmetic.ns
        if max(memory, arithmetic) >= MOST * self._busy:
            return ("memory-bound" if memory >= arithmetic else "compute-bound"), ""
        if self._few.share is not None and self._few.share >= MOST:
            return "too small to fill the GPU", ""
        reasons = [b.reason for b in (self._memory, self._arithmetic) if not b.whole]
        reasons += [self._few.reason] if self._few.share is None else []
        return (None, "; ".join(dict.fromkeys(reasons))) if reasons else ("none of these", "")

    # ── memory ───────────────────────────────────────────────────────────────────────────────────

    def _memory_parts(self) -> list[_Bound]:
        """Of each kernel whose bytes are known; of all together, where only their sum is."""
        timed = list(_timed(self._records))
        known = [((w.read or 0) + (w.written or 0), d) for w, d in timed if _has_bytes(w)]
        paper = self._paper
        if len(known) < len(timed) and paper is not None and not paper.at_most:
            return [self._least(paper.read + paper.written, self._busy, together=True)]
        parts = [self._least(moved, took) for moved, took in known if moved]
        if len(known) < len(timed):
            missing = len(timed) - len(known)
            said = f"of {missing} of {len(timed)} kernels the bytes are not known"
            parts.append(_Bound(whole=False, reason=said))
        return parts

    def _least(self, moved: int, took: int, *, together: bool = False) -> _Bound:
        """What these bytes take at least, no more than they took.

        Where all that goes in and out fits into the L2 cache, or they came faster than memory can
        give them, the cache served them: then they are held against its rate, or nothing is said.
        """
        copy, cache, l2 = self._gpu.copy(), self._gpu.copy_l2(), self._gpu.l2
        if copy is None:
            return _Bound(whole=False, reason="how fast this GPU copies is not known")
        fits = l2 is not None and (together or moved <= l2)
        served = fits and (self._inside_l2() or moved / took * 1e9 > self._gpu.peak())
        if served and cache is None:
            said = "the L2 cache serves its kernels, and how fast that is was not measured"
            return _Bound(0.0, False, said, moved=moved, took=took, l2=True)
        rate, measured = cache if served and cache is not None else copy
        least = min(moved / rate * 1e9, took)
        return _Bound(least, measured=measured, moved=moved, took=took, l2=served)

    def _inside_l2(self) -> bool:
        """Whether all that goes into the call and comes out fits into the L2 cache."""
        paper, l2 = self._worked_out, self._gpu.l2
        if paper is None or l2 is None:
            return False
        return 0 < min(paper.floor, paper.read + paper.written) <= l2

    def _sum(self, parts: Sequence[_Bound]) -> _Bound:
        missing = [p.reason for p in parts if not p.whole]
        return _Bound(
            min(sum(p.ns for p in parts), self._busy),
            not missing,
            "; ".join(dict.fromkeys(missing)),
            all(p.measured for p in parts),
            sum(p.moved for p in parts),
            sum(p.took for p in parts),
        )

    def _of_memory(self, parts: Sequence[_Bound]) -> Iterator[Evidence]:
        """One piece for what comes from memory, one for what the L2 cache serves."""
        cached, others = [p for p in parts if p.l2], [p for p in parts if not p.l2]
        if others or not cached:
            yield self._rate("memory", self._sum(others), self._gpu.copy())
        if cached:
            yield self._rate("L2 cache", self._sum(cached), self._gpu.copy_l2())

    def _rate(self, what: str, bound: _Bound, rate: tuple[float, bool] | None) -> Evidence:
        """Bytes a second of the kernels that are known, and how much their bytes explain."""
        if rate is None or (not bound.whole and not bound.ns):
            return Evidence(what, reason=bound.reason or "how fast this GPU copies is not known")
        return Evidence(
            what,
            bound.moved / bound.took * 1e9 if bound.took else 0.0,
            rate[0],
            bound.ns / self._busy,
            "modelled" if bound.measured else "cited",
            bound.reason,
        )

    # ── arithmetic ───────────────────────────────────────────────────────────────────────────────

    def _least_arithmetic(self) -> _Bound:
        if self._worked_out is None:
            return _Bound(whole=False, reason="its operations were not counted on paper")
        parts: list[_Bound] = []
        longest = 0.0
        for precision, count in self._worked_out.flops:
            rate = self._gpu.matmul(precision)
            if rate is None:
                said = f"how fast this GPU multiplies in {precision} is not known"
                parts.append(_Bound(whole=False, reason=said))
                continue
            parts.append(_Bound(count / rate[0] * 1e9, measured=rate[1]))
            if parts[-1].ns > longest:
                longest, self.slowest = parts[-1].ns, precision
        if self._worked_out.own:
            parts.append(_Bound(whole=False, reason=_own(self._worked_out)))
        return self._sum(parts)

    def _of_arithmetic(self) -> Evidence:
        bound, paper = self._arithmetic, self._worked_out
        if paper is None or (not bound.whole and not bound.ns):
            return Evidence("arithmetic", reason=bound.reason)
        done = sum(n for _, n in paper.flops)
        parts = [(n, self._gpu.matmul(p)) for p, n in paper.flops]
        least = sum(n / rate[0] for n, rate in parts if rate)
        whole = all(rate for _, rate in parts) and least
        return Evidence(
            "arithmetic",
            done / self._busy * 1e9,
            done / least if whole else None,
            bound.ns / self._busy,
            "modelled" if bound.measured else "cited",
            bound.reason,
        )

    # ── blocks ───────────────────────────────────────────────────────────────────────────────────

    def _blocks(self) -> Evidence:
        """Blocks of the kernel that runs at half of the kernel time, when sorted by them."""
        there = self._gpu.multiprocessors()
        if there is None:
            return Evidence("blocks", reason="how many multiprocessors there are is not known")
        timed = [(prod(w.grid), d) for w, d in _timed(self._records) if w.grid]
        total = sum(d for _, d in _timed(self._records))
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


def _own(paper: Paper) -> str:
    names = ", ".join(dict.fromkeys(w.label or w.name for w in paper.own))
    return f"what {names} computes is not known"


def _timed(records: Records) -> Iterator[tuple[Work, int]]:
    """The kernels with their time, in nanoseconds."""
    for index, duration in zip(records.work, records.duration_ns, strict=True):
        work = records.works[index]
        if work.activity == "kernel" and duration != NO_TIME:
            yield work, duration


def _has_bytes(work: Work) -> bool:
    """Whether it is known what a kernel moves, and not only what it moves at most."""
    return work.read is not None and work.written is not None and not work.at_most
