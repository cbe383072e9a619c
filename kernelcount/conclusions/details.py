"""What stands behind one row of a capture: how its kernels were launched, what their counters say.

A row sums up the records of one name and label. Counts and bytes are those of all of them; shares
are averaged by the time that each took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kernelcount.model import Capture, Counters, Work

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Detail:
    """The launch configuration that all records of a row share; None: unknown, or not the same.

    `grid` and `block` in blocks and threads, `shared_memory` in bytes, `occupancy` as `Work` has
    it: an estimate. `several`: the records were launched in more ways than one. `counters` are
    those of all records, None unless each has some.
    """

    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    registers: int | None = None
    shared_memory: int | None = None
    occupancy: float | None = None
    several: bool = False
    counters: Counters | None = None


def of_rows(capture: Capture) -> tuple[Detail, ...]:
    """A detail for each of the capture's rows, in their order."""
    records = capture.records
    works: dict[object, list[Work]] = {}
    for index in dict.fromkeys(records.work):
        work = records.works[index]
        works.setdefault(_key(work), []).append(work)
    counted = _by_key(capture) if capture.counters else {}
    return tuple(_detail(own, counted.get(key)) for key, own in works.items())


def dram(capture: Capture) -> tuple[int, int] | None:
    """Bytes that all kernels read from and wrote to DRAM; None unless each has its counters."""
    works = capture.records.works
    pairs = zip(capture.records.work, capture.counters, strict=False)
    total = _merged([c for w, c in pairs if works[w].activity == "kernel"])
    if total is None or total.dram_read is None or total.dram_written is None:
        return None
    return total.dram_read, total.dram_written


def _key(work: Work) -> object:
    """As `Capture.rows` tells rows apart."""
    return work.name, work.caption, work.activity


def _by_key(capture: Capture) -> dict[object, Counters | None]:
    records = capture.records
    keys = [_key(work) for work in records.works]
    found: dict[object, list[Counters | None]] = {}
    for work, counters in zip(records.work, capture.counters, strict=True):
        found.setdefault(keys[work], []).append(counters)
    return {key: _merged(own) for key, own in found.items()}


def _detail(works: Sequence[Work], counters: Counters | None) -> Detail:
    grids = {w.grid for w in works}
    blocks = {w.block for w in works}
    registers = {w.registers for w in works}
    shared = {w.shared_memory for w in works}
    occupancies = {w.occupancy for w in works}
    one = (grids, blocks, registers, shared)
    return Detail(
        _only(grids),
        _only(blocks),
        _only(registers),
        _only(shared),
        _only(occupancies),
        any(len(values) > 1 for values in one),
        counters,
    )


def _only(values: set[_T]) -> _T | None:
    return next(iter(values)) if len(values) == 1 else None


def _merged(each: Sequence[Counters | None]) -> Counters | None:
    """The counters of several kernels together; None unless each has some."""
    known = [c for c in each if c is not None]
    if not known or len(known) < len(each):
        return None
    times = [c.time_ns for c in known]
    return Counters(
        _sum(c.dram_read for c in known),
        _sum(c.dram_written for c in known),
        _sum(times),
        _mean([c.occupancy for c in known], times),
        _mean([c.dram_share for c in known], times),
        _mean([c.sm_share for c in known], times),
        _longest([c.stall for c in known], times),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _mean(shares: Sequence[float | None], times: Sequence[int | None]) -> float | None:
    """By time; None where a share is not known, or of several a time."""
    if len(set(shares)) == 1:
        return shares[0]
    total = _sum(times)
    if not total:
        return None
    parts = [None if s is None or t is None else s * t for s, t in zip(shares, times, strict=True)]
    known = [part for part in parts if part is not None]
    return sum(known) / total if len(known) == len(parts) else None


def _longest(stalls: Sequence[str | None], times: Sequence[int | None]) -> str | None:
    """The reason that most of the time goes to, among those that are known."""
    by_reason: Counter[str] = Counter()
    for stall, time in zip(stalls, times, strict=True):
        if stall is not None:
            by_reason[stall] += time or 0
    return max(by_reason, key=by_reason.__getitem__, default=None)
