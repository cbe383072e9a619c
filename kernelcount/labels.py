"""Which op on the host a record's External id leads to, as the short name that a person would say.

Ops nest: `aten::relu` calls `aten::clamp_min`, and that launches the kernel. The label is the
outermost operator (relu), since that is what stands in the user's code.
"""

from __future__ import annotations

from array import array
from itertools import islice
from operator import le

_NOT_OPERATORS = ("autograd::", "torch::autograd::")
_NONE = -1


class Labels:
    """Host ops in columns; `resolve` turns them into labels by External id."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._name, self._thread = array("i"), array("i")
        self._start, self._duration, self._external = array("q"), array("q"), array("q")
        self.top_level = 0

    def __len__(self) -> int:
        return len(self._name)

    def op(self, name: str, thread: int, start: int, duration: int, external: int | None) -> None:
        """Take one op: times in nanoseconds, `external` its External id."""
        self._name.append(self._names.setdefault(name, len(self._names)))
        self._thread.append(thread)
        self._start.append(start)
        self._duration.append(duration)
        fits = external is not None and 0 <= external < 1 << 62
        self._external.append(external if fits and external is not None else _NONE)

    def resolve(self) -> dict[int, str | None]:
        """The label of each External id: `add` for ``aten::add``, other namespaces kept."""
        names = [_label(name) for name in self._names]
        labels: dict[int, str | None] = {}
        open_ends: dict[int, list[tuple[int, str | None]]] = {}
        self.top_level = 0
        for i in self._order():
            start, end = self._start[i], self._start[i] + self._duration[i]
            stack = open_ends.setdefault(self._thread[i], [])
            while stack and stack[-1][0] <= start:
                stack.pop()
            self.top_level += not stack
            outer = stack[-1][1] if stack else None
            label = outer if outer is not None else names[self._name[i]]
            stack.append((end, label))
            if label is not None and self._external[i] != _NONE:
                labels[self._external[i]] = label
        return labels

    def _order(self) -> range | list[int]:
        """Outer ops before inner ones: by thread, then start, then the longer first."""
        n = len(self._name)
        starts, threads = self._start, self._thread
        if all(map(le, starts, islice(starts, 1, None))) and not self._ties():
            return range(n)
        return sorted(range(n), key=lambda i: (threads[i], starts[i], -self._duration[i]))

    def _ties(self) -> bool:
        pairs = zip(self._start, islice(self._start, 1, None), strict=False)
        return any(a == b for a, b in pairs)


def _label(name: str) -> str | None:
    """What an operator is called, or None where the row is no operator."""
    if "::" not in name or name.startswith(_NOT_OPERATORS):
        return None
    return name.removeprefix("aten::")
