"""What the stand-ins for torch's CUDA part play in: the count that goes on just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelcount.model import SyncKind
from kernelcount.paper.log import Log
from kernelcount.paper.values import Values
from kernelcount.paper.waits import Pinned


@dataclass
class Scene:
    """The count of the moment, which a stream or a graph of the user's may outlive.

    `doubts`: what may launch more kernels than counted; `refusals`: what is not followed at all,
    and why; `told`: what was asked and answered by assumption. Each once, in order. `pinned`: host
    memory that the user had pinned.
    """

    log: Log | None = None
    values: Values | None = None
    doubts: dict[str, None] = field(default_factory=dict)
    refusals: dict[str, None] = field(default_factory=dict)
    told: dict[str, None] = field(default_factory=dict)
    pinned: Pinned = field(default_factory=Pinned)

    def begin(self, log: Log, values: Values) -> None:
        """Another count begins."""
        self.log, self.values = log, values
        log.pinned = self.pinned
        for noted in self._noted:
            noted.clear()

    def end(self) -> None:
        """The count is over; what was noted stays."""
        self.log = self.values = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What is noted inside is forgotten."""
        before = [dict(noted) for noted in self._noted]
        try:
            yield
        finally:
            for noted, then in zip(self._noted, before, strict=True):
                noted.clear()
                noted.update(then)

    @property
    def _noted(self) -> tuple[dict[str, None], ...]:
        return self.doubts, self.refusals, self.told

    def note_wait(self, kind: SyncKind, what: str) -> None:
        """Note that the CPU would wait here for the GPU."""
        if self.log is not None:
            self.log.note_wait(kind, what)

    def note_open(self, what: str, *, waits: bool = True) -> None:
        """Note that `what` has launched kernels that nobody counts here, or waited in it."""
        if self.log is not None:
            self.log.note_open(what, waits=waits)


OF_ALL = Scene()
"""That of every count in this process, of which one goes on at a time. A stream that a module made
when it was imported is told of in the counts that come after, too."""
