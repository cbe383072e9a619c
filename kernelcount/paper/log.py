"""What was launched on paper, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernelcount.model import Source, Sync, SyncKind
from kernelcount.paper import atlas, cards, flops, reads, rules, waits
from kernelcount.paper.flops import Flops
from kernelcount.paper.places import STAND_IN, is_on
from kernelcount.paper.rereads import again
from kernelcount.paper.sources import Sources
from kernelcount.paper.traced import Traced
from kernelcount.paper.traffic import traffic
from kernelcount.paper.waits import Pinned

if TYPE_CHECKING:
    from kernelcount.paper.segments import Recorder
    from kernelcount.paper.values import Values


@dataclass(frozen=True, slots=True)
class Call:
    """Something that was launched, or a compiled graph that was called.

    `read` and `written` in bytes of GPU memory, those of all its graph where they are not known
    `apart`. `graph`: the number of a graph that was called,
    instead of all the rest. `source`: where a count that no rule knows is from. `unknown`: nobody
    knows what the call does. `flops`: its operations and their precision, None where there is no
    formula for them. `own`: it is somebody's own op, which moves at most all that it is given.
    `ops` of the user's code are what it computes, and `where` says when, and as a part of what.
    `waits`: the CPU waits in it for the GPU; of a graph, where it is called from. `more_waits`: it
    may wait more often than that. `padded`: how Inductor may pad its operands, by kernels of its
    own that are not counted; empty where it does not.
    """

    name: str
    cost: rules.Cost = rules.NOTHING
    read: int = 0
    written: int = 0
    generated: bool = False
    graph: int | None = None
    source: str | None = None
    unknown: bool = False
    apart: bool = True
    flops: Flops | None = None
    own: bool = False
    ops: tuple[Traced, ...] = ()
    where: Source | None = None
    waits: tuple[Sync, ...] = ()
    more_waits: bool = False
    again: int = 0
    padded: str = ""


# A call in Inductor's code, or an overload as torch writes it: namespace.op, namespace.op.overload.
_OP = re.compile(r"(?!torch\.)([a-z]\w*)\.(\w+)(?:\.\w+)?")


def plain_name(name: str) -> str:
    """``aten::mm``, ``aten.mm.default`` and ``extern_kernels.mm`` are all mm, as in a trace."""
    if match := _OP.fullmatch(name):
        namespace, op = match.groups()
        name = op if namespace == "extern_kernels" else f"{namespace}::{op}"
    return name.removeprefix("aten::")


class Log:
    """Calls in order, noted while it is `open`. `card`: the name of the GPU that they are for.

    `recorder` takes down what was called, and with what, where somebody wants to know. `held`: the
    most bytes that were seen to be held at once, where that is more than the card's memory, else 0.
    `met` is told of each op that runs, also of those that a graph is made of.
    `keeps`: whether graphs are compiled so that they make what nobody uses, too.
    """

    def __init__(self, card: str) -> None:
        self.card = card
        self.pinned = Pinned()
        self.recorder: Recorder | None = None
        self.met: Callable[[rules.Op], None] | None = None
        self.keeps = False
        self.calls: list[Call] = []
        self.is_open = False
        self.held = 0
        self._inside: list[Flops | None] | None = None
        self.sources = Sources()

    @contextmanager
    def opened(self, *, to: bool = True) -> Iterator[None]:
        """Note what runs inside; `to` False: note nothing, it is part of what is noted already."""
        before, self.is_open = self.is_open, to
        try:
            yield
        finally:
            self.is_open = before

    @contextmanager
    def summed(self) -> Iterator[Counter[str]]:
        """Note nothing of what runs inside but the sum of its operations, there at the end."""
        before, self._inside = self._inside, []
        sums: Counter[str] = Counter()
        try:
            with self.opened(to=False):
                yield sums
            sums += flops.total(self._inside)
        finally:
            self._inside = before

    def saw(self) -> None:
        """An op is dispatched; to be told of each, also of those that launch nothing."""
        if self.is_open:
            self.sources.saw()

    def note_op(
        self, op: rules.Op, known: flops.Flops | None = None, *, read: bool = False
    ) -> None:
        """Note an op, if it launches anything. `known`: its operations, where no formula is.

        `read`: it could not do without values, so that a GPU makes the CPU wait in it.
        """
        if self.met is not None:
            self.met(op)
        if self._inside is not None and not self.is_open:
            self._inside.append(flops.of(op, cards.CARDS[self.card]))
        if not self.is_open:
            return
        call, found = call_of(op, self.card), tuple(waits.waits(op, self.pinned))
        more = reads.may_wait_more(op) or (read and not found)
        if call is None and (found or more):
            call = Call(f"{op.namespace}::{op.name}")
        if call is not None:
            ops, where = self.sources.of(op.name)
            call = replace(call, flops=known or call.flops, ops=ops, where=where)
            self.calls.append(replace(call, waits=found, more_waits=more))

    def note_held(self, values: Values) -> None:
        """Look at what is held just now; not where a graph is played, which holds what is fused."""
        if self.is_open and self.recorder is None:
            most = cards.CARDS[self.card].memory
            self.held = max(self.held, values.held_beyond(most))

    def note_wait(self, kind: SyncKind, what: str) -> None:
        """Note a wait that no op makes, at the line of the user's that runs just now."""
        if self.is_open:
            self.calls.append(Call(what, waits=(waits.at(kind, what),)))

    def note_open(self, what: str, *, waits: bool = True) -> None:
        """Note what launches kernels that nobody counts here. `waits`: the CPU may wait in it."""
        if self.is_open:
            self.calls.append(Call(what, rules.Cost(0, exact=False), more_waits=waits))
            if self.recorder is not None:
                self.recorder.beside[what] += 1

    def note_graph(self, index: int) -> None:
        """Note that a compiled graph is called."""
        if self.is_open:
            self.sources.saw()  # of the node that goes through its backward
            if self.recorder is not None:
                self.recorder.went_backward()
            ops, where = self.sources.of("graph")
            here = replace(waits.at("explicit", "graph"), compiled=True)
            self.calls.append(Call("graph", graph=index, ops=ops, where=where, waits=(here,)))


def call_of(op: rules.Op, card: str, on_gpu: str = STAND_IN) -> Call | None:
    """The op as a call, or None where it launches nothing. Only bytes of GPU memory are told."""
    cost = rules.cost(op, on_gpu)
    if cost == rules.NOTHING:
        return None
    cost, source = atlas.refined(op, cost, card)
    ours = replace(
        op,
        read=[t for t in op.read if is_on(t, on_gpu)],
        written=[t for t in op.written if is_on(t, on_gpu)],
        out=[t for t in op.out if is_on(t, on_gpu)],
    )
    read, written = traffic(ours)
    done = flops.of(op, cards.CARDS[card])
    return Call(
        f"{op.namespace}::{op.name}", cost, read, written, source=source, flops=done,
        own=op.namespace not in rules.TORCHS_OWN, again=again(ours, cards.CARDS[card]),
    )  # fmt: skip
