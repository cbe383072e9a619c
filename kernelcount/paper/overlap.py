"""How much memory tensors have together: views that lie over each other share elements.

A view is a set of bytes: a start, and steps of a stride so many times, one inside the other. Such
sets are counted exactly where no step of one carries it beyond the next larger stride, as with the
slices, transposes, windows and splits of one array. Where they are woven otherwise, as ``x[::2]``
and ``x[::3]``, each counts by itself: together at most what lies between their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Steps = tuple[tuple[int, int], ...]
"""(how many, bytes between) each, the widest first."""

_Box = tuple[tuple[int, int], ...]
"""The first and the last of what is covered along each of several strides, the widest first."""

_TERMS = 1023
"""Intersections that are counted at most: those of ten views of which each meets all others. A
choice: it takes milliseconds."""


def distinct_bytes(tensor: Tensor) -> int:
    """Bytes of the elements of a tensor, each place in memory once."""
    return _of(tensor).bytes


def bytes_together(tensors: Iterable[Tensor]) -> int:
    """Bytes of the elements of all these tensors, each place in memory once."""
    from kernelcount.paper.adapter import unique_id

    given = list({id(t): t for t in tensors}.values())
    if len(given) == 1:
        return distinct_bytes(given[0])
    by_memory: dict[int, dict[View, None]] = {}
    for tensor in given:
        if tensor.numel():
            by_memory.setdefault(unique_id(tensor), {})[_of(tensor)] = None
    return sum(_together(list(views)) for views in by_memory.values())


@dataclass(frozen=True, slots=True)
class View:
    """Bytes of a memory from `start` on. `exact`: no two steps lead to one byte."""

    start: int
    steps: Steps
    exact: bool = True

    @property
    def end(self) -> int:
        """Behind its last byte."""
        return self.start + 1 + sum((n - 1) * stride for n, stride in self.steps)

    @property
    def bytes(self) -> int:
        """As many as it has; where they are not known, as it has at most."""
        count = prod(n for n, _ in self.steps)
        return count if self.exact else min(count, self.end - self.start)

    @property
    def is_run(self) -> bool:
        """Whether it has all bytes between its ends."""
        return len(self.steps) == 1 and self.steps[0][1] == 1


def _of(tensor: Tensor) -> View:
    size = int(tensor.element_size())
    pairs = [(int(n), int(s) * size) for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    start = int(tensor.storage_offset()) * size
    if not all(n for n, _ in pairs):
        return View(start, ((0, 1),))
    return view(start, [(size, 1), *((n, s) for n, s in pairs if n > 1 and s)])


def view(start: int, pairs: Iterable[tuple[int, int]]) -> View:
    """A view of these steps in any order: steps that go on where others end are joined."""
    levels: list[tuple[int, int]] = []
    span, exact = 1, True
    for n, stride in sorted(pairs, key=lambda pair: pair[1]):
        count, inner = levels[-1] if levels else (0, 1)
        if levels and stride % inner == 0 and stride // inner <= count:
            levels[-1] = (count + (n - 1) * (stride // inner), inner)
        else:
            exact = exact and stride >= span
            levels.append((n, stride))
        span += (n - 1) * stride
    return View(start, tuple(reversed(levels)), exact)


def _together(views: Sequence[View]) -> int:
    """Bytes of views of one memory."""
    if len(views) == 1:
        return views[0].bytes
    runs = _joined([v for v in views if v.is_run])
    rest = [v for v in views if not v.is_run]
    rest = [v for v in rest if not any(r.start <= v.start and v.end <= r.end for r in runs)]
    if not rest:
        return sum(r.bytes for r in runs)
    left = [*runs, *rest]
    found = _exactly(left)
    if found is not None:
        return found
    return min(sum(v.bytes for v in left), max(v.end for v in left) - min(v.start for v in left))


def _joined(runs: Sequence[View]) -> list[View]:
    """Runs, those made one that touch."""
    joined: list[View] = []
    for run in sorted(runs, key=lambda r: r.start):
        if joined and run.start <= joined[-1].end:
            last = joined.pop()
            run = View(last.start, ((max(last.end, run.end) - last.start, 1),))  # noqa: PLW2901
        joined.append(run)
    return joined


def _exactly(views: Sequence[View]) -> int | None:
    """Bytes of views of one memory by what they have in common; None where that is not known."""
    strides = sorted({s for v in views for _, s in v.steps} | {1}, reverse=True)
    boxes = [box for v in views if (box := _box(v, strides)) is not None]
    if len(boxes) < len(views):
        return None
    # What is in one of them, less what is in two, plus what is in three ...
    terms: list[tuple[int, _Box]] = []
    for box in boxes:
        common = [(-sign, both) for sign, other in terms if (both := _common(box, other))]
        terms += [(1, box), *common]
        if len(terms) > _TERMS:
            return None
    return sum(sign * prod(last - first + 1 for first, last in box) for sign, box in terms)


def _box(one: View, strides: Sequence[int]) -> _Box | None:
    """A view along all these strides; None where it goes beyond one of them on its way."""
    counts = {stride: n for n, stride in one.steps}
    ranges: list[tuple[int, int]] = []
    rest, reach = one.start, 0
    for stride in strides:
        first, rest = divmod(rest, stride)
        ranges.append((first, first))
    for i in reversed(range(len(strides))):
        stride, first, n = strides[i], ranges[i][0], counts.get(strides[i], 1)
        wider = strides[i - 1] if i else 0
        if wider and n > 1 and (first + n) * stride > wider:
            # It goes on in the wider stride, which it must fill: rows of an array as one run.
            if first or wider % stride or (n * stride) % wider or wider in counts:
                return None
            counts[wider] = n * stride // wider
            n = wider // stride
        ranges[i] = (first, first + n - 1)
        reach += ranges[i][1] * stride
        if wider and reach >= wider:
            return None
    return tuple(ranges) if one.exact else None


def _common(one: _Box, other: _Box) -> _Box | None:
    """What two boxes have in common."""
    pairs = zip(one, other, strict=True)
    ranges = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in pairs)
    return ranges if all(first <= last for first, last in ranges) else None
