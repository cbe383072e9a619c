"""What containers and objects hold: put back where a call has changed it, and told.

A call may put things into a dict or a list that it is given, take some out, or set attributes of an
object. Lists, dicts, sets, deques and arrays of bytes or of NumPy's are looked into, those that
stand for something more included, and the attributes of the user's own objects. An ``nn.Module``,
and what belongs to a library, is one thing.
"""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import is_
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from kernelcount.nesting import ordered

if TYPE_CHECKING:
    import torch

_MOST = 10_000  # things looked at; a program passes no more that a call changes
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_OPEN = (SimpleNamespace, UserDict, UserList)
"""Objects of the standard library that are there to hold things."""


def is_library(module: str | None) -> bool:
    """Whether a module's code is not the user's: torch's, or another that holds no state here."""
    top = (module or "builtins").partition(".")[0]
    return top in ("torch", "numpy", "triton") or top in sys.stdlib_module_names


@dataclass(frozen=True)
class Entry:
    """What is found at a place, where that is no tensor: a value, or what a container consists of.

    `place` names it: ``argument 1['cache']``.
    """

    place: str
    what: Any
    kind: str = ""
    holds: bool = False


class Contents:
    """What everything in a value holds now, so that it can be put back.

    `tensors`: all that there are, those behind the attributes of objects included.
    """

    def __init__(self, value: Any) -> None:
        import torch

        self.tensors: list[torch.Tensor] = []
        self._known: dict[int, Any] = {}
        self._tables: list[tuple[_Table, Any]] = []
        waiting = [value]
        while waiting and len(self._known) < _MOST:
            value = waiting.pop()
            if isinstance(value, _PLAIN) or id(value) in self._known:
                continue
            self._known[id(value)] = value
            if isinstance(value, torch.Tensor):
                self.tensors.append(value)
            tables = _tables(value)
            for table in tables:
                with contextlib.suppress(Exception):  # the user's own objects may raise anything
                    self._tables.append((table, table.read()))
            waiting += reversed([held for _, held in _inside(value, tables)])

    def changed(self) -> bool:
        """Whether anything holds something else than it did."""
        return any(not table.holds(then) for table, then in self._tables)

    def restore(self) -> bool:
        """Put back what has changed, in place; whether anything had."""
        changed = [(table, then) for table, then in self._tables if not table.holds(then)]
        for table, then in changed:
            with contextlib.suppress(Exception):  # the user's own objects may refuse anything
                table.write(then)
        return bool(changed)

    @property
    def known(self) -> Iterable[Any]:
        """All that was looked at."""
        return self._known.values()

    def knows(self, value: Any) -> bool:
        """Whether a value was among them."""
        return id(value) in self._known


def told(named: Iterable[tuple[str, Any]], before: Contents) -> Iterator[tuple[str, Any]]:
    """All that values hold, in an order that does not depend on when it was put there.

    Each tensor, array and float with the name of its place; each container as an `Entry` that says
    what it consists of, and each other value as one, too. What cannot be looked into and was there
    `before` is left out.
    """
    import torch

    seen: dict[int, str] = {}
    waiting = list(named)[::-1]
    while waiting:
        place, value = waiting.pop()
        tables = _tables(value)
        alone = isinstance(value, torch.Tensor) or _is_array(value)
        holds = bool(tables) and not alone
        afterwards = f"{place} afterwards"
        if holds and id(value) in seen:
            yield afterwards, Entry(afterwards, f"what is {seen[id(value)]}, too")
            continue
        if alone or isinstance(value, float | complex):
            yield afterwards, value
        elif isinstance(value, (*_PLAIN, bytearray)):
            kind = type(value).__qualname__
            plain = bytes(value) if isinstance(value, bytearray) else value
            yield afterwards, Entry(afterwards, plain, kind)
        elif not holds and not isinstance(value, tuple | frozenset):
            if not before.knows(value):
                yield afterwards, value
            continue
        inside = list(_inside(value, tables))
        if holds or isinstance(value, tuple | frozenset):
            seen[id(value)] = place
            if not isinstance(value, bytearray):
                keys = ", ".join(key for key, _ in inside)
                kind = type(value).__qualname__
                yield afterwards, Entry(afterwards, keys or "nothing", kind, holds=True)
        if len(seen) < _MOST:
            waiting += [(f"{place}{key}", held) for key, held in reversed(inside)]


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


# ── what can be changed ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Table:
    """One thing that can hold others: how its contents are read, compared and put back.

    `keyed` gives what it holds, each with the key as it is written.
    """

    read: Callable[[], Any]
    write: Callable[[Any], None]
    keyed: Callable[[], Iterator[tuple[str, Any]]]

    def holds(self, then: Any) -> bool:
        """Whether it holds what it did."""
        try:
            return _same(self.read(), then)
        except Exception:  # noqa: BLE001  the user's own objects may raise anything
            return False


def _tables(value: Any) -> list[_Table]:
    """The contents and the attributes of a value, where a call can change them."""
    import torch

    if type(value) is tuple:
        return []
    if isinstance(value, torch.Tensor):
        plain = type(value) in (torch.Tensor, torch.nn.Parameter)
        return [_attributes(value, hidden=False)] if plain else []
    if isinstance(value, bytearray):
        return [_of_bytes(value)]
    if _is_array(value):
        return [_of_array(value)] if value.flags.writeable and value.dtype.kind != "O" else []
    tables = [_of_container(value)] if isinstance(value, list | dict | set | deque) else []
    kind = type(value)
    if kind in (list, dict, set, deque):
        return tables
    closed = (type, ModuleType, FunctionType, MethodType, torch.nn.Module, torch.optim.Optimizer)
    if isinstance(value, closed) or (is_library(kind.__module__) and not isinstance(value, _OPEN)):
        return tables
    with contextlib.suppress(Exception):  # the user's own objects may raise anything
        if isinstance(vars(value), dict):
            tables.append(_attributes(value))
    if slots := [s for c in kind.__mro__ for s in vars(c).values() if _is_slot(s)]:
        tables.append(_of_slots(value, slots))
    return tables


def _inside(value: Any, tables: list[_Table]) -> Iterator[tuple[str, Any]]:
    for table in tables:
        with contextlib.suppress(Exception):  # the user's own objects may raise anything
            yield from table.keyed()
    if isinstance(value, tuple):
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, frozenset):
        yield from ((f"[{i}]", item) for i, item in enumerate(ordered(value)))


def _of_container(value: Any) -> _Table:
    if isinstance(value, dict):
        base: Any = dict if not isinstance(value, OrderedDict) else OrderedDict

        def refill(then: dict[Any, Any]) -> None:
            base.clear(value)
            for key, item in then.items():
                base.__setitem__(value, key, item)

        def keys() -> list[Any]:
            own = list(base.keys(value))
            return own if base is not dict else ordered(own)

        def items() -> Iterator[tuple[str, Any]]:
            return ((f"[{key!r}]", dict.__getitem__(value, key)) for key in keys())

        return _Table(lambda: dict(base.items(value)), refill, items)
    if isinstance(value, set):

        def replace(then: set[Any]) -> None:
            set.clear(value)
            set.update(value, then)

        return _Table(lambda: set(value), replace, lambda: _numbered(ordered(value)))

    def put(then: list[Any]) -> None:
        if isinstance(value, deque):
            deque.clear(value)
            deque.extend(value, then)
        else:
            list.__setitem__(value, slice(None), then)

    return _Table(lambda: list(value), put, lambda: _numbered(value))


def _numbered(values: Any) -> Iterator[tuple[str, Any]]:
    return ((f"[{i}]", item) for i, item in enumerate(values))


def _attributes(value: Any, *, hidden: bool = True) -> _Table:
    """Those of an object that has a ``__dict__``; not the `hidden` ones, which torch may set."""

    def read() -> dict[str, Any]:
        return {k: v for k, v in vars(value).items() if hidden or k[:1] != "_"}

    def write(then: dict[str, Any]) -> None:
        table = vars(value)
        for name in read().keys() - then.keys():
            del table[name]
        table.update(then)

    return _Table(read, write, lambda: ((f".{k}", v) for k, v in sorted(read().items())))


def _is_slot(member: Any) -> bool:
    return isinstance(member, MemberDescriptorType)


def _of_slots(value: Any, slots: list[MemberDescriptorType]) -> _Table:
    def read() -> dict[str, Any]:
        found = {}
        for slot in slots:
            with contextlib.suppress(AttributeError):  # not filled
                found[slot.__name__] = slot.__get__(value)
        return found

    def write(then: dict[str, Any]) -> None:
        now = read()
        for slot in slots:
            if slot.__name__ in then:
                slot.__set__(value, then[slot.__name__])
            elif slot.__name__ in now:
                slot.__delete__(value)

    return _Table(read, write, lambda: ((f".{k}", v) for k, v in sorted(read().items())))


def _of_bytes(value: bytearray) -> _Table:
    def write(then: bytes) -> None:
        value[:] = then

    return _Table(lambda: bytes(value), write, lambda: iter(()))


def _of_array(value: Any) -> _Table:
    def write(then: Any) -> None:
        value[...] = then

    return _Table(value.copy, write, lambda: iter(()))


def _same(one: Any, other: Any) -> bool:
    """Whether two readings of one table show the same things; plain values by what they are."""
    if isinstance(one, dict):
        if len(one) != len(other):
            return False
        if all(map(is_, one, other)) and all(map(is_, one.values(), other.values())):
            return True
        return list(one) == list(other) and all(_is(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is, one, other))
    if _is_array(one):
        same = (one == other) | ((one != one) & (other != other))  # noqa: PLR0124  NaN is not itself
        return bool(one.shape == other.shape and same.all())
    return bool(one == other)


def _is(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and isinstance(one, _PLAIN) and bool(one == other)
