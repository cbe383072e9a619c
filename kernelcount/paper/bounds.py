"""The least that a call must move, and the least time that its bytes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from kernelcount.paper import rules
from kernelcount.paper.adapter import unique_id
from kernelcount.paper.cards import Card
from kernelcount.paper.footprint import (
    Footprint,
    bytes_together,
    distinct_bytes,
    of_tensor,
    places_together,
)
from kernelcount.paper.log import Call
from kernelcount.paper.places import is_on
from kernelcount.paper.steps import leaves
from kernelcount.paper.traffic import given_back, in_part, looked_at


class Ends:
    """The arrays that go into a call and come out of it, on the GPU; to be made before the call.

    `reached`: what the function may read or change without being given it: what globals and
    closures hold, and the gradients that a backward pass begins with. Of those, and of the
    parameters and buffers of a module that is given, the ones count that an op of the call reads,
    which `met` is told of. They are no arrays to measure transfers by, but where no array is given.
    What is given and lies on the host is one: the call moves it to the GPU, or a part of it.
    """

    def __init__(self, given: Any, reached: Iterable[Any] = ()) -> None:
        self._given = _by_memory(leaves(given))
        hosts = (t for t in leaves(given) if hasattr(t, "layout") and not is_on(t))
        self._largest_of_host = max(map(distinct_bytes, hosts), default=0)
        self._is_given_arrays = bool(self._given or self._largest_of_host)
        held = _by_memory([*_of_modules(given), *reached])
        self._held = {key: every for key, every in held.items() if key not in self._given}
        self._known = self._given | self._held
        self._versions = {key: _versions(every) for key, every in self._known.items()}
        self._gradients = [(t, t.grad, _versions([t.grad])) for t in _leaves_of(self._known)]
        self._touched = {key: _Touched() for key in self._known}

    @property
    def any_on_gpu(self) -> bool:
        """Whether anything that goes into the call is on the GPU."""
        return bool(self._known)

    def met(self, op: rules.Op) -> None:
        """An op runs in the call: what it reads and was not written before, and what it changes."""
        near = [t for t in (*op.read, *op.written) if is_on(t) and unique_id(t) in self._known]
        if not near or rules.cost(op) == rules.NOTHING:
            return
        part = in_part(op)
        for tensor in filter(is_on, looked_at(op)):
            if (touched := self._touched.get(unique_id(tensor))) is not None:
                touched.read(tensor, part[1] if part and part[0] is tensor else None)
        for tensor in filter(is_on, given_back(op)):
            # The optimizers' ops on lists of tensors do not count as a version of each.
            if (touched := self._touched.get(unique_id(tensor))) is not None:
                touched.write(tensor, part[2] if part and part[0] is tensor else None)

    def floor(self, result: Any, *, blind: bool = False) -> tuple[int, int]:
        """(bytes of the largest array, bytes with each input read and each output written once).

        Of an input as much as ops of the call read before they wrote it; a result that shares an
        input's memory is written only where the call changed the input, and as far. A gradient that
        the call leaves at what it was given, or at what it holds, is an output. `blind`: not all
        that runs was met, so that what is given counts as read, and what is changed as written.
        """
        made = _by_memory(_parts(result))
        fresh = {key: every for key, every in made.items() if key not in self._known}
        arrays = [every for part in (self._given, fresh) for every in part.values()]
        read = {key: touched.must_read for key, touched in self._touched.items()}
        for key, every in self._given.items() if blind else ():
            read[key] = read[key] or bytes_together(every)
        left = {key: bytes_together(every) for key, every in fresh.items()}
        left |= {key: self._changed(key) for key in self._known if self._is_changed(key)}
        for tensor, old, version in self._gradients:
            now = tensor.grad
            if now is not None and is_on(now) and (now is not old or _versions([now]) != version):
                left.setdefault(unique_id(now), distinct_bytes(now))
                if now is old:  # it was added to
                    read.setdefault(unique_id(now), distinct_bytes(now))
        if not self._is_given_arrays:
            arrays += [every for key, every in self._held.items() if self._touched[key].is_touched]
        largest = max((distinct_bytes(t) for every in arrays for t in every), default=0)
        return max(largest, self._largest_of_host), sum(read.values()) + sum(left.values())

    def _changed(self, key: int) -> int:
        """Bytes that the call writes of a memory; all of it, where no op was met that does."""
        return self._touched[key].written or bytes_together(self._known[key])

    def _is_changed(self, key: int) -> bool:
        if self._touched[key].written:
            return True
        return _versions(self._known[key]) != self._versions[key]


@dataclass
class _Touched:
    """What ops read and write of a memory that was there before the call.

    Where an op touches an unknown part of it, as by indices, that is as much as it takes at most.
    """

    before: dict[Footprint, None] = field(default_factory=dict)
    over: dict[Footprint, None] = field(default_factory=dict)
    later: dict[Footprint, int] = field(default_factory=dict)
    part_read: int = 0
    part_written: int = 0

    def read(self, tensor: Any, part: int | None) -> None:
        """An op reads a tensor in it, or a part of that."""
        here = of_tensor(tensor)
        if part is not None:
            self.part_read = max(self.part_read, min(part, self._new(here)))
        elif not self.over:
            self.before[here] = None
        elif here not in self.later:
            self.later[here] = self._new(here)

    def write(self, tensor: Any, part: int | None) -> None:
        """An op writes a tensor in it, or a part of that."""
        if part is None:
            self.over[of_tensor(tensor)] = None
        else:
            self.part_written = max(self.part_written, part)

    def _new(self, here: Footprint) -> int:
        """Bytes of it that no op has written before."""
        known = self.over if len(self.over) <= _MOST_KEPT else {}
        return places_together([here, *known]) - places_together(known)

    @property
    def is_touched(self) -> bool:
        """Whether any op reads or writes in it."""
        return bool(self.must_read or self.written)

    @property
    def must_read(self) -> int:
        """Bytes that the call must read of what was there."""
        at_first = places_together(self.before)
        return max(at_first, self.part_read, *self.later.values())

    @property
    def written(self) -> int:
        """Bytes that the call must write of it."""
        return max(places_together(self.over), self.part_written)


_MOST_KEPT = 64
"""Parts of a memory that are told apart when more of it is read. A choice: milliseconds."""


def _by_memory(values: Iterable[Any]) -> dict[int, list[Any]]:
    """The GPU's tensors by their memory."""
    found: dict[int, list[Any]] = {}
    for tensor in filter(is_on, values):
        found.setdefault(unique_id(tensor), []).append(tensor)
    return found


def _leaves_of(known: dict[int, list[Any]]) -> Iterator[Any]:
    """Tensors that gradients are kept at."""
    return (t for every in known.values() for t in every if t.is_leaf and t.requires_grad)


def _parts(result: Any) -> Iterator[Any]:
    """Everything in a result, fields of dataclasses included."""
    for value in leaves(result):
        if is_dataclass(value) and not isinstance(value, type):
            yield from _parts([getattr(value, f.name, None) for f in fields(value)])
        else:
            yield value


def _of_modules(given: Any) -> Iterator[Any]:
    import torch

    for value in leaves(given):
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
            yield from value.buffers()


def least_time(calls: Iterable[Call], unit: int, card: Card) -> int | None:
    """Nanoseconds for which the card's memory alone is busy; None where that is no measure.

    It is none where something else than memory may bound the call (whatever no rule knows: matrix
    products, convolutions, attention, sorting) or where the arrays fit into the L2 cache.
    """
    moved = list(calls)
    if unit <= card.l2 or not all(c.cost.exact for c in moved):
        return None
    return round(sum(c.read + c.written for c in moved) / card.bandwidth * 1e9)


def _versions(tensors: Iterable[Any]) -> list[int | None]:
    """How often each was changed in place; None for an inference tensor, which does not count."""
    return [None if t is None or t.is_inference() else int(t._version) for t in tensors]
