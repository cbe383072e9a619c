"""How long a call takes, without a profiler: several candidates in turn, until that is precise.

What disturbs a machine comes and goes, so the candidates take turns. Who goes first, and after
whom, has a bearing on the time (caches, the clock, what was done between turns), so the order
changes from turn to turn by a design that is balanced for such effects: E. J. Williams,
"Experimental designs balanced for the estimation of residual effects of treatments", Australian
Journal of Scientific Research A2, 1949. The batch of a turn is long enough for the cost of its two
synchronisations to be lost in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from statistics import median
from typing import Any

from kernelcount.conclusions import noise
from kernelcount.devices.base import Device

_UNSEEN = 0.1
"""The share of `noise.PRECISION` that the cost of starting and ending a batch may have in it."""

_STEADY = 5
"""Turns in a row in which nobody was faster than before: then the clock is up. A GPU that has
waited for a compile of seconds runs at 345 MHz instead of 1,980 (measured on an H200)."""

_LONG = 1e9  # nanoseconds: whatever loads a kernel is quicker than this

_BRIEF = 5e6
"""Nanoseconds of a call to which it matters that others ran before: a shorter one is made once,
untimed, before its batch. The first call after others' finds other things in the caches: of ``mul``
and ``relu`` on a CPU it took 1 to 2 µs more than the next, which is lost in so long a call."""

_LARGEST = 10_000  # calls in a batch


@dataclass
class Candidate:
    """What is to be timed: `calls` are made in rotation; `during` holds round each batch.

    `between` makes the arguments of a call ready, where a call changes them. `brief`: whether a
    call is so short that one goes before each batch, untimed.
    """

    name: str
    calls: Sequence[Callable[[], object]]
    during: Callable[[], AbstractContextManager[Any]]
    between: Callable[[], object] | None = None
    samples: list[float] = field(default_factory=list)
    batch: int = 1
    brief: bool = False
    failed: BaseException | None = None


def in_turn(candidates: Sequence[Candidate], device: Device, seconds: float) -> None:
    """Time all candidates: nanoseconds a call, one for each turn, into their `samples`.

    Ends when every median is known to `noise.PRECISION`, or after so many `seconds`; calls that
    take longer than that are made once each. Raises what a call raises,
    which is kept as what its candidate `failed` with.
    """
    begun = time.monotonic()
    until = begun + seconds
    empty = median(device.time([]) for _ in range(_STEADY))
    batch = _batch(empty, seconds, len(candidates))
    took = [_size(candidate, device, batch) for candidate in candidates]
    if time.monotonic() > until:
        for candidate, once in zip(candidates, took, strict=True):
            candidate.samples.append(once)
            candidate.batch = 1
        return
    _warm_up(candidates, device, begun + seconds / 2)  # the other half is for what counts
    rows, precise = orders(len(candidates)), False
    for done in count(1):
        order = rows[(done - 1) % len(rows)]
        if len(order) > 2:  # noqa: PLR2004  as `orders` has it
            turn(candidates[order[0]], device)
        for i in order:
            candidates[i].samples.append(turn(candidates[i], device))
        if time.monotonic() > until or (precise and done % len(rows) == 0):
            return
        # Whoever comes after this has lost what was in the caches: by one turn more than the
        # design has, each in turn.
        if done % (len(rows) + 1) == 0:
            precise = precise or _precise(candidates)


def orders(n: int) -> list[list[int]]:
    """The orders of `n` candidates in turns that are balanced together.

    Each stands at every place, and after every other, equally often: once in n turns, where n is
    even, twice in 2n turns where it is odd. For two (A B, B A) each follows itself as often, too,
    from one turn to the next. Three and more do so where each turn begins with an untimed batch of
    the one that is first.
    """
    zigzag = [(i + 1) // 2 if i % 2 else (n - i // 2) % n for i in range(n)]  # 0, 1, n-1, 2, n-2
    rows = [[(i + k) % n for i in zigzag] for k in range(n)]
    if n % 2 == 0 or n == 1:
        return rows
    return [order for row in rows for order in (row, row[::-1])]


def shares(variants: int) -> float:
    """How many times as long so many variants are timed as two are: each has a half of it."""
    return max(1.0, variants / 2)


def enough(candidates: Sequence[Candidate]) -> float:
    """Seconds in which all of them have their turns, often enough for a verdict."""
    turns = 2 + 2 * noise.FEWEST  # to find the batch; half of the rest may go to warming up
    n = len(candidates)
    untimed = noise.FEWEST / n if n > 2 else 0  # noqa: PLR2004  of each one, as `in_turn` has it
    return (
        (turns + untimed) * sum(median(c.samples) * (c.batch + c.brief) for c in candidates) / 1e9
    )


def _batch(empty: float, seconds: float, candidates: int) -> float:
    """Nanoseconds of a batch in which what it costs to start and end one, `empty`, is lost.

    Where that leaves no time for turns enough for a verdict, as on a busy machine, the batches are
    shorter, down to those in which the cost just exceeds no precision.
    """
    turns = _STEADY + 2 * noise.FEWEST  # to warm up; and twice as many as a verdict takes
    batches = candidates + (candidates > 2)  # noqa: PLR2004  with the untimed one of `in_turn`
    room = seconds * 1e9 / turns / batches
    return max(empty / noise.PRECISION, min(empty / (noise.PRECISION * _UNSEEN), room))


def _size(candidate: Candidate, device: Device, wanted: float) -> float:
    """Find how many calls make a batch of `wanted` nanoseconds; gives what a call took."""
    once = turn(candidate, device)
    if once < _LONG:
        once = min(once, turn(candidate, device))  # the first call may load a kernel
    candidate.brief = once < _BRIEF
    if candidate.between is None:
        calls = int(wanted / max(once, 1.0))
        candidate.batch = max(1, min(_LARGEST, calls))
    return once


def _warm_up(candidates: Sequence[Candidate], device: Device, until: float) -> None:
    """Work until nobody gets faster any more."""
    best = {c.name: float("inf") for c in candidates}
    quiet = 0
    while quiet < _STEADY and time.monotonic() < until:
        quiet += 1
        for candidate in candidates:
            took = turn(candidate, device)
            if took < best[candidate.name] * (1 - noise.PRECISION):
                quiet = 0
            best[candidate.name] = min(best[candidate.name], took)


def turn(candidate: Candidate, device: Device) -> float:
    """Nanoseconds a call, of one batch of calls. Raises what a call raises, and keeps it."""
    calls = list(islice(cycle(candidate.calls), candidate.batch))
    try:
        with candidate.during():
            if candidate.brief:
                device.time(candidate.calls[-1:], candidate.between)  # then come those of the batch
            return device.time(calls, candidate.between) / candidate.batch
    except BaseException as error:
        candidate.failed = error
        raise


def _precise(candidates: Sequence[Candidate]) -> bool:
    widths = (noise.half_width(c.samples) for c in candidates)
    return all(w is not None and w <= noise.PRECISION for w in widths)
