"""The least that a call must move, and the least time that its bytes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from kernelcount.paper import rules
from kernelcount.paper.adapter import unique_id
from kernelcount.paper.cards import Card
from kernelcount.paper.footprint import bytes_together, distinct_bytes
from kernelcount.paper.log import Call
from kernelcount.paper.places import is_on
from kernelcount.paper.steps import leaves
from kernelcount.paper.traffic import looked_at


class Ends:
    """The arrays that go into a call and come out of it, on the GPU; to be made before the call.

    `reached`: what the function may read or change without being given it: what globals and
    closures hold, and the gradients that a backward pass begins with. Of those, and of the
    parameters and buffers of a module that is given, the ones count that an op of the call reads,
    which `met` is told of. They are no arrays to measure transfers by.
    """

    def __init__(self, given: Any, reached: Iterable[Any] = ()) -> None:
        self._given = _by_memory(leaves(given))
        held = _by_memory([*_of_modules(given), *reached])
        self._held = {key: every for key, every in held.items() if key not in self._given}
        self._known = self._given | self._held
        self._versions = {key: _versions(every) for key, every in self._known.items()}
        self._gradients = [(t, t.grad, _versions([t.grad])) for t in _leaves_of(self._known)]
        self._read: set[int] = set()
        self._written: set[int] = set()
        self._overwritten: set[int] = set()

    def met(self, op: rules.Op) -> None:
        """An op runs in the call: what it changes, and what it reads and was not written over."""
        near = [t for t in (*op.read, *op.written) if is_on(t) and unique_id(t) in self._known]
        if not near or rules.cost(op) == rules.NOTHING:
            return
        read = {unique_id(t) for t in looked_at(op) if is_on(t)}
        self._read |= (read & self._held.keys()) - self._overwritten
        for tensor in filter(is_on, op.written):
            key = unique_id(tensor)
            # The optimizers' ops on lists of tensors do not count as a version of each.
            self._written |= {key} & self._known.keys()
            if key in self._held and key not in self._read:
                whole = bytes_together(self._held[key])
                self._overwritten |= {key} if distinct_bytes(tensor) >= whole else set()

    def floor(self, result: Any) -> tuple[int, int]:
        """(bytes of the largest array, bytes with each input read and each output written once).

        A result that shares an input's memory is written only where the call changed the input.
        A gradient that the call leaves at what it was given, or at what it holds, is an output.
        """
        made = _by_memory(_parts(result))
        fresh = {key: every for key, every in made.items() if key not in self._known}
        arrays = [every for part in (self._given, fresh) for every in part.values()]
        changed = {key: self._known[key] for key in self._known if self._is_changed(key)}
        read, left = self._given | {k: self._held[k] for k in self._read}, fresh | changed
        for tensor, old, version in self._gradients:
            now = tensor.grad
            if now is not None and is_on(now) and (now is not old or _versions([now]) != version):
                left.setdefault(unique_id(now), [now])
                if now is old:  # it was added to
                    read.setdefault(unique_id(now), [now])
        largest = max((distinct_bytes(t) for every in arrays for t in every), default=0)
        return largest, sum(map(bytes_together, (*read.values(), *left.values())))

    def _is_changed(self, key: int) -> bool:
        return key in self._written or _versions(self._known[key]) != self._versions[key]


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
            yield from _parts([getattr(value, field.name, None) for field in fields(value)])
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
