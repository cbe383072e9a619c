"""Which op on the host a record's External id leads to, as the short name that a person would say.

Ops nest: `aten::relu` calls `aten::clamp_min`, and that launches the kernel. The label is the
outermost operator (relu), since that is what stands in the user's code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from operator import eq, le
from typing import Any

_NOT_OPERATORS = ("autograd::", "torch::autograd::")
Label = tuple[str, ...]
"""The ops round a launch, from the outermost to the innermost."""

_NONE, _MOST = -1, 1 << 62
_BEFORE_ALL = float("-inf")
_TOUCH = 0.0007  # microseconds by which sums of times in traces may be wrong


class Labels:
    """Host ops in columns; `resolve` turns them into labels by External id.

    A trace holds as many ops as anything else, so that all is done by whole columns.
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._name, self._thread = array("i"), array("i")
        self._start, self._duration = array("d"), array("d")
        self._external = array("q")

    def __len__(self) -> int:
        return len(self._name)

    def add(
        self,
        names: Iterable[str],
        threads: array[int],
        times: tuple[array[float], array[float]],
        externals: Iterable[int | None],
    ) -> None:
        """Take ops: starts and durations in microseconds, External ids or None."""
        table = self._names
        self._name.extend(array("i", [table.setdefault(name, len(table)) for name in names]))
        self._thread.extend(threads)
        self._start.extend(times[0])
        self._duration.extend(times[1])
        known = [e if e is not None and 0 <= e < _MOST else _NONE for e in externals]
        self._external.extend(array("q", known))

    def columns(self) -> tuple[list[str], tuple[Any, Any, Any, Any]]:
        """All names; and by op its name's place there, its thread, its start and its duration."""
        return list(self._names), (self._name, self._thread, self._start, self._duration)

    def top_level(self) -> int:
        """How many ops stand in no other op of their thread."""
        number = 0
        for indices in self._by_thread(range(len(self))).values():
            reached = _BEFORE_ALL
            for i in indices:
                number += self._start[i] >= reached
                reached = max(reached, self._start[i] + self._duration[i] - _TOUCH)
        return number

    def resolve(self, processes: Sequence[object]) -> dict[object, dict[int, Label]]:
        """By process, the ops round each External id, of which the last bears the id itself.

        `add` stands for ``aten::add``; other names are kept. `processes` names the process of each
        thread: External ids are counted in each anew.
        """
        short = [_label(name) for name in self._names]
        nests = _Nests([name or "" for name in short])
        operators = [label is not None for label in short]
        chosen = list(compress(range(len(self)), map(operators.__getitem__, self._name)))
        labels: dict[object, dict[int, Label]] = {}
        for thread, indices in self._by_thread(chosen).items():
            found = labels.setdefault(processes[thread], {})
            columns = (self._name, self._start, self._duration, self._external)
            open_: list[tuple[float, int]] = []  # when the ops round this one end, and their nest
            for name, start, duration, external in zip(
                *(map(column.__getitem__, indices) for column in columns), strict=True
            ):
                while open_ and start >= open_[-1][0]:
                    open_.pop()
                nest = nests.inside(open_[-1][1] if open_ else _NONE, name)
                open_.append((start + duration - _TOUCH, nest))
                found[external] = nests.names[nest]
            found.pop(_NONE, None)
        return labels

    def _by_thread(self, indices: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The ops of each thread, outer ones before inner ones."""
        threads = set(self._thread)
        if len(threads) == 1:
            return {threads.pop(): self._sorted(indices)}
        ops: dict[int, list[int]] = {thread: [] for thread in threads}
        for i in indices:
            ops[self._thread[i]].append(i)
        return {thread: self._sorted(own) for thread, own in ops.items()}

    def _sorted(self, indices: Sequence[int]) -> Sequence[int]:
        """By start, and of those that start together the longest first."""
        starts = list(map(self._start.__getitem__, indices))
        following = starts[1:]
        if all(map(le, starts, following)):
            ties = compress(count(), map(eq, starts, following))
            if all(self._duration[indices[i]] >= self._duration[indices[i + 1]] for i in ties):
                return indices
        longest_first = sorted(indices, key=self._duration.__getitem__, reverse=True)
        return sorted(longest_first, key=self._start.__getitem__)


class _Nests:
    """Ops inside of ops: each way to stand in one another once, since a trace repeats them."""

    def __init__(self, ops: Sequence[str]) -> None:
        self.names: list[Label] = []
        self._ops, self._known = ops, dict[tuple[int, int], int]()

    def inside(self, outer: int, op: int) -> int:
        """The place in `names` of an op inside of what stands at `outer`, or of `_NONE`."""
        nest = self._known.setdefault((outer, op), len(self.names))
        if nest == len(self.names):
            self.names.append((*(self.names[outer] if outer != _NONE else ()), self._ops[op]))
        return nest


def _label(name: str) -> str | None:
    """What an operator is called, or None where the row is no operator."""
    if "::" not in name or name.startswith(_NOT_OPERATORS):
        return None
    return name.removeprefix("aten::")
