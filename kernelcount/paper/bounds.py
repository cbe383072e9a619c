"""The least that a call must move, and the least time that its bytes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from kernelcount.paper.adapter import unique_id
from kernelcount.paper.cards import Card
from kernelcount.paper.log import Call
from kernelcount.paper.places import is_on
from kernelcount.paper.overlap import distinct_bytes
from kernelcount.paper.steps import leaves


class Ends:
    """The arrays that go into a call and come out of it, on the GPU; to be made before the call.

    The parameters and buffers of a module that is given must be read too, but are no arrays to
    measure transfers by.
    """

    def __init__(self, given: Any) -> None:
        self._given = _by_memory(leaves(given))
        held = _by_memory(_of_modules(given))
        self._held = sum(distinct_bytes(t) for key, t in held.items() if key not in self._given)
        self._versions = {key: _version(t) for key, t in self._given.items()}

    def floor(self, result: Any) -> tuple[int, int]:
        """(bytes of the largest array, bytes with each input read and each output written once).

        A result that shares an input's memory is written only where the call changed the input.
        """
        made = _by_memory(_parts(result))
        fresh = [t for key, t in made.items() if key not in self._given]
        changed = [t for key, t in self._given.items() if _version(t) != self._versions[key]]
        read = [distinct_bytes(t) for t in self._given.values()]
        written = [distinct_bytes(t) for t in (*fresh, *changed)]
        return max((*read, *written), default=0), sum(read) + sum(written) + self._held


def _by_memory(values: Iterable[Any]) -> dict[int, Any]:
    """The GPU's tensors by their memory: of several that share one, the largest."""
    largest: dict[int, Any] = {}
    for tensor in filter(is_on, values):
        old = largest.setdefault(unique_id(tensor), tensor)
        if distinct_bytes(tensor) > distinct_bytes(old):
            largest[unique_id(tensor)] = tensor
    return largest


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


def _version(tensor: Any) -> int | None:
    """How often it was changed in place; None for an inference tensor, which does not count."""
    return None if tensor.is_inference() else int(tensor._version)
