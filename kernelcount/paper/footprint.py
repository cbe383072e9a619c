"""How many places of memory regular steps lead to together, each once however often they do.

A footprint is a start, and steps of a stride so many times, one inside the other: a tensor's
elements lie so, and a loop that steps through an array reaches it so. Footprints are counted
exactly where each stride on a step's way is a multiple of it, as with the slices, transposes,
windows, splits and flat parts of one array. Where they are woven otherwise, as ``x[::2]`` and
``x[::3]``, each counts by itself: together at most what lies between their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_Box = tuple[range, ...]
"""Multiples of each of several strides, the narrowest first."""

_MOST_LOOKS = 1 << 19
"""Looks at a box at most, while a union is counted. A choice: as many as a thousand boxes need that
all lie apart, of which the largest always is at an end. Those take about a second."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The places ``start + sum(stride * i)`` for every ``0 <= i < n`` of its (stride, n).

    Strides are positive and grow, and none that is a multiple of the one before goes on where that
    one ends: see `footprint`.
    """

    start: int
    steps: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        """Behind its last place."""
        return self.start + 1 + sum(stride * (n - 1) for stride, n in self.steps)

    @property
    def places(self) -> int:
        """As many as it has; where two ways may lead to one place, as it has at most."""
        return min(prod(n for _, n in self.steps), self.end - self.start)

    @property
    def is_run(self) -> bool:
        """Whether it has all places between its ends."""
        return not self.steps or (len(self.steps) == 1 and self.steps[0][0] == 1)


def footprint(start: int, steps: Iterable[tuple[int, int]]) -> Footprint:
    """The footprint of (stride, how many) in any order; a stride may be negative or zero.

    Steps that go on where narrower ones end, or before, are joined with them.
    """
    forwards = []
    for stride, n in steps:
        if n == 0:
            return Footprint(start, ((1, 0),))
        start += min(stride, 0) * (n - 1)
        if stride and n > 1:
            forwards.append((abs(stride), n))
    joined: list[tuple[int, int]] = []
    for stride, n in sorted(forwards):
        inner, count = joined[-1] if joined else (0, 0)
        if inner and stride % inner == 0 and stride // inner <= count:
            joined[-1] = (inner, count + stride // inner * (n - 1))
        else:
            joined.append((stride, n))
    return Footprint(start, tuple(joined))


def distinct_bytes(tensor: Tensor) -> int:
    """Bytes of the elements of a tensor, each place in memory once."""
    return _of(tensor).places


def bytes_together(tensors: Iterable[Tensor]) -> int:
    """Bytes of the elements of all these tensors, each place in memory once."""
    from kernelcount.paper.adapter import unique_id

    given = list({id(t): t for t in tensors}.values())
    if len(given) == 1:
        return distinct_bytes(given[0])
    by_memory: dict[int, list[Footprint]] = {}
    for tensor in given:
        if tensor.numel():
            by_memory.setdefault(unique_id(tensor), []).append(_of(tensor))
    return sum(map(places_together, by_memory.values()))


def _of(tensor: Tensor) -> Footprint:
    """The bytes of a tensor in its memory."""
    size = int(tensor.element_size())
    steps = [(int(s) * size, int(n)) for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    return footprint(int(tensor.storage_offset()) * size, [(1, size), *steps])


def places_together(footprints: Iterable[Footprint]) -> int:
    """Places of all of them, each once; where that is hard to tell, no less than they have."""
    return sum(map(_of_near, _apart(one for one in set(footprints) if one.places)))


def _apart(footprints: Iterable[Footprint]) -> Iterator[list[Footprint]]:
    """Those that lie between one another's ends, by themselves."""
    near: list[Footprint] = []
    reach = 0
    for one in sorted(footprints, key=lambda f: (f.start, f.end)):
        if near and one.start >= reach:
            yield near
            near = []
        near.append(one)
        reach = max(reach, one.end)
    if near:
        yield near


def _of_near(near: Sequence[Footprint]) -> int:
    """Places of what lies between one another's ends, in the order of their starts."""
    runs = _joined([one for one in near if one.is_run])
    rest = [one for one in near if not one.is_run]
    rest = [one for one in rest if not any(r.start <= one.start and one.end <= r.end for r in runs)]
    left = [*runs, *rest]
    if len(left) == 1:
        return left[0].places
    at_most = min(
        sum(one.places for one in left),
        max(one.end for one in left) - min(one.start for one in left),
    )
    strides = sorted({stride for one in left for stride, _ in one.steps} | {1})
    boxes: list[_Box] = []
    for one in left:
        of_one = _boxes(one, strides)
        if of_one is None:
            return at_most
        boxes += of_one
    points = _points(boxes)
    return at_most if points is None else points


def _joined(runs: Iterable[Footprint]) -> list[Footprint]:
    """Runs in the order of their starts, those made one that touch."""
    joined: list[Footprint] = []
    for run in runs:
        if joined and run.start <= joined[-1].end:
            last = joined.pop()
            length = max(last.end, run.end) - last.start
            joined.append(footprint(last.start, [(1, length)]))
        else:
            joined.append(run)
    return joined


def _boxes(one: Footprint, strides: Sequence[int]) -> list[_Box] | None:
    """A footprint as boxes of multiples of these strides, the narrowest first.

    Of each stride there are fewer multiples than make the next, so that a place has one set of
    multiples alone. None where steps go beyond a stride that is no multiple of theirs.
    """
    counts, first, rest = dict(one.steps), dict[int, int](), one.start
    for stride in reversed(strides):
        first[stride], rest = divmod(rest, stride)
    # What is settled of the narrower strides, and to which multiples of this one it leads.
    begun: list[tuple[_Box, range]] = [((), range(1))]
    for i, stride in enumerate(strides):
        wider = strides[i + 1] if i + 1 < len(strides) else None
        start, last = first[stride], first[stride] + counts.get(stride, 1) - 1
        longer: list[tuple[_Box, range]] = []
        for box, carried in begun:
            multiples = range(start + carried[0], last + carried[-1] + 1)
            reach = sum(s * m[-1] for s, m in zip(strides, (*box, multiples), strict=False))
            if wider is None or reach < wider:
                longer.append(((*box, multiples), range(1)))
            elif wider % stride:
                return None
            else:
                longer += [((*box, m), c) for m, c in _carried(multiples, wider // stride)]
        begun = longer
    return [box for box, _ in begun]


def _carried(multiples: range, times: int) -> Iterator[tuple[range, range]]:
    """Multiples below `times`, and the multiples of what is `times` as wide that go with them."""
    (row, start), (end_row, end) = divmod(multiples.start, times), divmod(multiples.stop, times)
    if row == end_row:
        yield range(start, end), range(row, row + 1)
        return
    if start:
        yield range(start, times), range(row, row + 1)
        row += 1
    if row < end_row:
        yield range(times), range(row, end_row)
    if end:
        yield range(end), range(end_row, end_row + 1)


def _points(boxes: Iterable[_Box]) -> int | None:
    """Points of integer boxes, each once; None where it takes too long to tell them apart."""
    points = looks = 0
    left = [list(boxes)]
    while left:
        some = list(set(left.pop()))
        if not some:
            continue
        looks += len(some)
        if looks > _MOST_LOOKS:
            return None
        # The largest counts whole, and of the others what is beyond it on one of its sides.
        largest = max(some, key=_size)
        points += _size(largest)
        for side, inside in enumerate(largest):
            below, some, above = _parted(some, side, inside)
            left += [below, above]
    return points


def _size(box: _Box) -> int:
    return prod(map(len, box))


def _parted(boxes: Iterable[_Box], side: int, inside: range) -> tuple[list[_Box], ...]:
    """What boxes have on one side before a range, in it, and behind it."""
    below, within, above = list[_Box](), list[_Box](), list[_Box]()
    for box in boxes:
        start, stop = box[side].start, box[side].stop
        if inside.start <= start and stop <= inside.stop:
            within.append(box)
            continue
        for cut, low, high in (
            (below, start, min(stop, inside.start)),
            (within, max(start, inside.start), min(stop, inside.stop)),
            (above, max(start, inside.stop), stop),
        ):
            if low < high:
                cut.append((*box[:side], range(low, high), *box[side + 1 :]))
    return below, within, above
