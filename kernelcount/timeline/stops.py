"""Host calls in which the CPU stood still until the GPU had done something, in columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate


class Stops:
    """Such calls in the order of the file; times in microseconds, as in the trace."""

    def __init__(self) -> None:
        self.thread = array("i")
        self.start, self.duration = array("d"), array("d")
        self.external = array("q")
        self.name: list[str] = []

    def __len__(self) -> int:
        return len(self.name)

    def add(
        self,
        names: Sequence[str],
        threads: Sequence[int],
        times: tuple[Sequence[float], Sequence[float]],
        externals: Sequence[int],
    ) -> None:
        """Take calls, with the External id of the op that each is in."""
        self.name += names
        self.thread.extend(threads)
        self.start.extend(times[0])
        self.duration.extend(times[1])
        self.external.extend(externals)

    def end(self, i: int) -> float:
        """When a call came back."""
        return self.start[i] + max(self.duration[i], 0.0)

    def outermost(self) -> list[int]:
        """Those that are made in no other, by start: a driver's row stands inside a runtime's."""
        order = sorted(range(len(self)), key=lambda i: (self.start[i], -self.duration[i]))
        threads: dict[int, list[int]] = {}
        for i in order:
            threads.setdefault(self.thread[i], []).append(i)
        kept: list[int] = []
        for own in threads.values():
            reached = accumulate((self.end(i) for i in own), max, initial=float("-inf"))
            kept += [i for i, before in zip(own, reached, strict=False) if self.start[i] >= before]
        return sorted(kept, key=self.start.__getitem__)
