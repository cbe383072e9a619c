"""What values hold: the tensors, and the rest, in whatever people put them into."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_COLLECTIONS: tuple[type[Any], ...] = (
    tuple,
    list,
    set,
    frozenset,
    deque,
    type({}.items()),
    type({}.values()),
)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a value: tuples, lists, mappings and their views, sets, dataclasses."""
    import torch

    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))


def leaves(value: Any) -> Iterator[Any]:
    """Everything in a value that holds nothing itself, in order; a tensor is one thing."""
    import torch

    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        held = [] if isinstance(value, torch.Tensor) else list(inside(value))
        if not held:
            yield value
        elif id(value) not in seen:  # a list may hold itself
            seen.add(id(value))
            waiting += reversed(held)


@dataclasses.dataclass(frozen=True)
class Keys:
    """The keys of a mapping, which are values as well."""

    keys: tuple[Any, ...]


def parts(value: Any) -> Iterator[Any]:
    """As `leaves`, with mappings in the order of their keys, each behind its `Keys`.

    What holds nothing, such as an empty list, is left out, but for a deque that can hold nothing.
    """
    import torch

    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if not _holds(value) or isinstance(value, torch.Tensor):
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            held = list(inside(value))
            if isinstance(value, SimpleNamespace):
                names = sorted(vars(value))
                held = [Keys(tuple(names)), *(vars(value)[name] for name in names)]
            elif isinstance(value, Mapping):
                keys = ordered(value)
                held = [Keys(tuple(keys)), *(value[key] for key in keys)]
            elif isinstance(value, set | frozenset):
                held = ordered(value)
            waiting += reversed(held)


def _holds(value: Any) -> bool:
    holds = isinstance(value, (Mapping, SimpleNamespace, *_COLLECTIONS)) or _is_record(value)
    return holds and not _is_consumed(value)


def form(value: Any) -> Any:
    """Which containers a value consists of: the name of its type, with the same of all it holds.

    None where it is too deep for that, or holds itself.
    """
    try:
        return _form(value)
    except RecursionError:
        return None


def _form(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor) or not _holds(value):
        return type(value).__qualname__, None
    if isinstance(value, Mapping):
        held = [value[key] for key in ordered(value)]
    else:
        held = ordered(value) if isinstance(value, set | frozenset) else list(inside(value))
    return type(value).__qualname__, tuple(map(_form, held))


def _is_consumed(value: Any) -> bool:
    return isinstance(value, deque) and value.maxlen == 0


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Keys)


def ordered(values: Iterable[Any]) -> list[Any]:
    """In an order that does not depend on the one they were put in, as far as they have one."""
    return sorted(values, key=_order)


def _order(value: Any) -> tuple[str, str]:
    plain = isinstance(value, str | bytes | int | float | complex | tuple)
    return type(value).__qualname__, repr(value) if plain else ""


def inside(value: Any) -> Iterator[Any]:
    """What a value holds itself: items, values of a mapping, fields of a dataclass."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, _COLLECTIONS):
        yield from value
    elif isinstance(value, SimpleNamespace):
        yield from vars(value).values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)


def renewed(value: Any) -> Any:
    """The same tensors in new lists, dicts and sets, so that a call may append to what it gets."""
    return _renewed(value, {})


def _renewed(value: Any, done: dict[int, Any]) -> Any:
    kind = type(value)
    if id(value) in done:
        return done[id(value)]
    if kind is list:
        done[id(value)] = new = []
        new += [_renewed(item, done) for item in value]
        return new
    if kind is dict:
        done[id(value)] = table = {}
        table.update({key: _renewed(item, done) for key, item in value.items()})
        return table
    if kind is set:
        return set(value)
    if kind is tuple:
        return tuple(_renewed(item, done) for item in value)
    return value
