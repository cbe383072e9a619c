"""How many distinct elements regular accesses to one array reach together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

_MOST_CELLS = 100_000
"""Cells that a union is counted in at most; beyond them the sum stands, which is no less."""


@dataclass(frozen=True, slots=True)
class Box:
    """The addresses ``start + sum(stride * i)`` for every ``0 <= i < n`` of its (stride, n).

    In elements; strides are positive, grow, and none lies inside what the ones before it fill.
    """

    start: int
    sides: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """Addresses, or no less: those of rows that overlap by part of a row count twice."""
        return min(prod(n for _, n in self.sides), self.last - self.start + 1)

    @property
    def last(self) -> int:
        """The highest address."""
        return self.start + sum(stride * (n - 1) for stride, n in self.sides)

    def holds(self, other: Box) -> bool:
        """Whether it is without gaps and reaches whatever the other does."""
        gapless = not self.sides or (len(self.sides) == 1 and self.sides[0][0] == 1)
        return gapless and self.start <= other.start and other.last <= self.last


def box(start: int, sides: Iterable[tuple[int, int]]) -> Box:
    """The box of loops that step by a stride so many times; a stride may be negative or zero."""
    steps = []
    for stride, n in sides:
        start += min(stride, 0) * (n - 1)
        if stride and n > 1:
            steps.append((abs(stride), n))
    return Box(start, _merged(sorted(steps)))


def _merged(steps: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Loops of which one goes on where another ends, or before, as one."""
    merged: list[tuple[int, int]] = []
    for stride, n in steps:
        below, times = merged[-1] if merged else (0, 0)
        if below and stride % below == 0 and stride <= below * times:
            merged[-1] = (below, stride // below * (n - 1) + times)
        else:
            merged.append((stride, n))
    return tuple(merged)


def reached(boxes: Iterable[Box]) -> int:
    """Distinct addresses of all together; where that is hard to tell, no less than those."""
    apart: list[Box] = []
    for one in sorted(set(boxes), key=lambda b: -b.count):
        if not any(other.holds(one) for other in apart):
            apart.append(one)
    if len(apart) <= 1:
        return sum(one.count for one in apart)
    strides = sorted({stride for one in apart for stride, _ in one.sides} | {1}, reverse=True)
    digits = [found for one in apart if (found := _digits(one, strides)) is not None]
    if len(digits) < len(apart):
        return sum(one.count for one in apart)
    return min(sum(one.count for one in apart), _union(digits))


def _digits(one: Box, strides: Sequence[int]) -> list[range] | None:
    """The box as ranges of multiples of each stride, from the largest; None where it is none.

    It is one where no sum of the lower multiples comes up to the next stride: then an address has
    one set of multiples alone.
    """
    counts = dict(_split(one, strides))
    if set(counts) - set(strides):
        return None
    rest, found = one.start, list[range]()
    for stride in strides:
        first, rest = divmod(rest, stride)
        found.append(range(first, first + counts.get(stride, 1)))
    reach = 0
    for stride, digits in zip(reversed(strides), reversed(found), strict=True):
        if reach >= stride:
            return None
        reach += stride * (digits.stop - 1)
    return found


def _split(one: Box, strides: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Its sides, cut at the strides that other boxes have."""
    for stride, n in one.sides:
        below, left = stride, n
        for cut in reversed(strides):
            times = cut // below
            if cut > below and cut % below == 0 and left > times and left % times == 0:
                yield below, times
                below, left = cut, left // times
        yield below, left


def _union(boxes: Sequence[Sequence[range]]) -> int:
    """Points of integer boxes, each once."""
    cuts = [
        sorted({edge for one in sides for edge in (one.start, one.stop)})
        for sides in zip(*boxes, strict=True)
    ]
    if prod(map(len, cuts)) > _MOST_CELLS:
        return sum(prod(map(len, one)) for one in boxes)
    cells = (list(pairwise(edges)) for edges in cuts)
    return sum(
        prod(stop - start for start, stop in cell)
        for cell in product(*cells)
        if any(
            all(a.start <= lo < a.stop for a, (lo, _) in zip(one, cell, strict=True))
            for one in boxes
        )
    )
