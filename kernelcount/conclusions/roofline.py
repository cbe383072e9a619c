"""What bytes and operations take at least: the roofline of what was measured.

S. Williams, A. Waterman, D. Patterson, "Roofline", Communications of the ACM 52(4), 2009, with the
rates that a copy and a matrix product reach on the GPU at hand in the place of peaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelcount.model import NO_TIME, Beside, Capture, Evidence, Paper, Rates, Records, Work


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


@dataclass(frozen=True, slots=True)
class Bound:
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


class Roofline:
    """Lower bounds of the time for which the GPU is busy, and the evidence for them.

    `memory` and `arithmetic` are the bounds; `slowest`: the precision whose operations take the
    most time, None where there are none.
    """

    def __init__(self, capture: Capture, beside: Beside | None, gpu: Gpu) -> None:
        self._gpu, self._busy = gpu, capture.busy_ns
        self._records = (beside and beside.ledger) or capture.records
        outcome = beside.outcome if beside else None
        # Operations are those of the function, whichever kernels do them; bytes are the kernels'.
        self._worked_out = outcome.paper if isinstance(outcome, Capture) else None
        self._paper = beside.paper if beside else None
        self.slowest: str | None = None
        parts = self._memory_parts()
        self.memory, self.arithmetic = self._sum(parts), self._least_arithmetic()
        self.evidence = (*self._of_memory(parts), self._of_arithmetic())

    # ── memory ───────────────────────────────────────────────────────────────────────────────────

    def _memory_parts(self) -> list[Bound]:
        """Of each kernel whose bytes are known; of all together, where only their sum is."""
        timed = list(timed_kernels(self._records))
        known = [((w.read or 0) + (w.written or 0), d) for w, d in timed if _has_bytes(w)]
        paper = self._paper
        if len(known) < len(timed) and paper is not None and not paper.at_most:
            return [self._least(paper.read + paper.written, self._busy, together=True)]
        parts = [self._least(moved, took) for moved, took in known if moved]
        if len(known) < len(timed):
            missing = len(timed) - len(known)
            said = f"of {missing} of {len(timed)} kernels the bytes are not known"
            parts.append(Bound(whole=False, reason=said))
        return parts

    def _least(self, moved: int, took: int, *, together: bool = False) -> Bound:
        """What these bytes take at least, no more than they took.

        Where all that goes in and out fits into the L2 cache, or they came faster than memory can
        give them, the cache served them: then they are held against its rate, or nothing is said.
        """
        copy, cache, l2 = self._gpu.copy(), self._gpu.copy_l2(), self._gpu.l2
        if copy is None:
            return Bound(whole=False, reason="how fast this GPU copies is not known")
        fits = l2 is not None and (together or moved <= l2)
        served = fits and (self._inside_l2() or moved / took * 1e9 > self._gpu.peak())
        if served and cache is None:
            said = "the L2 cache serves its kernels, and how fast that is was not measured"
            return Bound(0.0, False, said, moved=moved, took=took, l2=True)
        rate, measured = cache if served and cache is not None else copy
        least = min(moved / rate * 1e9, took)
        return Bound(least, measured=measured, moved=moved, took=took, l2=served)

    def _inside_l2(self) -> bool:
        """Whether all that goes into the call and comes out fits into the L2 cache."""
        paper, l2 = self._worked_out, self._gpu.l2
        if paper is None or l2 is None:
            return False
        return 0 < min(paper.floor, paper.read + paper.written) <= l2

    def _sum(self, parts: Sequence[Bound]) -> Bound:
        missing = [p.reason for p in parts if not p.whole]
        return Bound(
            min(sum(p.ns for p in parts), self._busy),
            not missing,
            "; ".join(dict.fromkeys(missing)),
            all(p.measured for p in parts),
            sum(p.moved for p in parts),
            sum(p.took for p in parts),
        )

    def _of_memory(self, parts: Sequence[Bound]) -> Iterator[Evidence]:
        """One piece for what comes from memory, one for what the L2 cache serves."""
        cached, others = [p for p in parts if p.l2], [p for p in parts if not p.l2]
        if others or not cached:
            yield self._rate("memory", self._sum(others), self._gpu.copy())
        if cached:
            yield self._rate("L2 cache", self._sum(cached), self._gpu.copy_l2())

    def _rate(self, what: str, bound: Bound, rate: tuple[float, bool] | None) -> Evidence:
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

    def _least_arithmetic(self) -> Bound:
        if self._worked_out is None:
            return Bound(whole=False, reason="its operations were not counted on paper")
        parts: list[Bound] = []
        longest = 0.0
        for precision, count in self._worked_out.flops:
            rate = self._gpu.matmul(precision)
            if rate is None:
                said = f"how fast this GPU multiplies in {precision} is not known"
                parts.append(Bound(whole=False, reason=said))
                continue
            parts.append(Bound(count / rate[0] * 1e9, measured=rate[1]))
            if parts[-1].ns > longest:
                longest, self.slowest = parts[-1].ns, precision
        if self._worked_out.own:
            parts.append(Bound(whole=False, reason=_own(self._worked_out)))
        return self._sum(parts)

    def _of_arithmetic(self) -> Evidence:
        bound, paper = self.arithmetic, self._worked_out
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


def _own(paper: Paper) -> str:
    names = ", ".join(dict.fromkeys(w.label or w.name for w in paper.own))
    return f"what {names} computes is not known"


def timed_kernels(records: Records) -> Iterator[tuple[Work, int]]:
    """The kernels with their time, in nanoseconds."""
    for index, duration in zip(records.work, records.duration_ns, strict=True):
        work = records.works[index]
        if work.activity == "kernel" and duration != NO_TIME:
            yield work, duration


def _has_bytes(work: Work) -> bool:
    """Whether it is known what a kernel moves, and not only what it moves at most."""
    return work.read is not None and work.written is not None and not work.at_most
