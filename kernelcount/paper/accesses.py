"""What a kernel that Inductor writes loads and stores, from the bodies of its loops.

Inductor's own lists of reads and writes serve its scheduler: they name an array that was written by
its last writer, with the size of the part written, and count as read what must only come first.
The loops themselves say what is loaded and stored, by which index, under which mask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from math import ceil, floor, prod
from types import MappingProxyType
from typing import Any

from kernelcount.paper.footprint import Footprint, footprint, places_together


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store of an array by one index.

    `where`: the elements that it reaches, if its index is regular; `most`: how many they are at
    most. `index` tells it from others.
    """

    name: str
    where: Footprint | None
    most: int
    index: str = ""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in a loop: the variables that it depends on, and what is known of it.

    `index`: it as an expression of the variables; `source`: the array and index that it was loaded
    by; `limits`: where it is a mask, expressions that
    are not negative where it holds.
    """

    variables: frozenset[Any] = frozenset()
    index: Any = None
    limits: tuple[Any, ...] = ()
    source: str = ""

    def __getitem__(self, _: Any) -> _Value:
        """One of several results."""
        return self


_numbers = count()
"""Of what is computed and then looked up by."""

Ranges = Mapping[Any, tuple[int, int]]
"""The first value of each variable of a loop, and the one after its last."""


@dataclass
class _Loops:
    """The loops that are being followed: what they load and store, in order."""

    sizes: dict[Any, int]
    found: list[tuple[str, Access]] = field(default_factory=list)
    masks: list[tuple[Any, ...]] = field(default_factory=list)
    indirect: dict[Any, frozenset[Any]] = field(default_factory=dict)

    def note(self, kind: str, name: str, index: Any) -> None:
        """Note an access of this kind, under the masks that hold now."""
        index = _known(_expression(index), {*self.sizes, *self.indirect})
        ranges = _narrowed({v: (0, n) for v, n in self.sizes.items()}, sum(self.masks, ()))
        reaching = {v: ranges[v] for v in self.variables(index)}
        if all(low < high for low, high in ranges.values()):
            self.found.append((kind, _access(name, index, reaching)))

    def loaded(self, name: str, index: Any) -> _Value:
        """Note a load; what comes of it."""
        self.note("load", name, index)
        index = _expression(index)
        return _Value(self.variables(index), source=f"{name}[{index}]")

    def under(self, mask: _Value, body: Callable[[], _Value]) -> _Value:
        """What a part of the loops gives that runs where a mask holds."""
        self.masks.append(mask.limits)
        result = body()
        self.masks.pop()
        return _Value(result.variables | mask.variables)

    def looked_up(self, value: _Value) -> Any:
        """A value as a part of an index.

        What was loaded at one place has one name; the rest stays apart, in other loops too.
        """
        symbol = _expression(value.source or f"computed{next(_numbers)}")
        self.indirect[symbol] = value.variables
        return symbol

    def searched(self, name: str) -> None:
        """Note loads of an array that may lead anywhere in it."""
        self.found.append(("load", Access(name, None, _size(name))))

    def variables(self, index: Any) -> frozenset[Any]:
        """The variables of the loops that an index depends on."""
        free = index.free_symbols
        through = (self.indirect[s] for s in free if s in self.indirect)
        return frozenset(free & set(self.sizes)).union(*through)


def _expression(value: Any) -> Any:
    """A number or a name as an expression; such an one as it is."""
    import sympy  # type: ignore[import-untyped]

    return sympy.Symbol(value, integer=True) if isinstance(value, str) else sympy.sympify(value)


def _known(index: Any, variables: set[Any]) -> Any:
    """An index with numbers for the sizes that it names, and with what Inductor keeps apart."""
    sizes = {s: _hint(s) for s in index.free_symbols - variables}
    return (index.subs(sizes) if sizes else index).expand(identity=True)


def _hint(size: Any) -> int:
    from torch._inductor.virtualized import V

    size = _expression(size).xreplace(_sizes.get())
    sizes = V.graph.sizevars
    hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint  # the latter to torch 2.11
    return int(hint(size, fallback=0))


@contextmanager
def sizes_known(numbers: Mapping[Any, int]) -> Iterator[None]:
    """Have symbols that hang on values, for which Inductor has no number, stand for these."""
    before = _sizes.set(numbers)
    try:
        yield
    finally:
        _sizes.reset(before)


_sizes: ContextVar[Mapping[Any, int]] = ContextVar("sizes", default=MappingProxyType({}))


def _narrowed(ranges: Ranges, limits: Iterable[Any]) -> Ranges:
    """The ranges where limits hold, as far as each is of one variable; otherwise too wide."""
    narrow = dict(ranges)
    for limit in limits:
        plain = _affine(limit, ranges)
        if plain is None or len(plain[1]) != 1:
            continue
        start, ((variable, by),) = plain[0], plain[1].items()
        low, high = narrow[variable]
        edge = -start / by
        low, high = (max(low, ceil(edge)), high) if by > 0 else (low, min(high, floor(edge) + 1))
        narrow[variable] = (low, high)
    return narrow


def _affine(index: Any, variables: Iterable[Any]) -> tuple[int, dict[Any, int]] | None:
    """(constant, factor of each variable) of an index that is a sum of such; else None."""
    index = index.expand()
    factors = {v: by for v in variables if (by := index.coeff(v)) != 0}
    rest = index - sum(by * v for v, by in factors.items())
    if not (rest.is_Integer and all(by.is_Integer for by in factors.values())):
        return None
    return int(rest), {v: int(by) for v, by in factors.items()}


def _access(name: str, index: Any, ranges: Ranges) -> Access:
    most = prod(high - low for low, high in ranges.values())
    plain = _affine(index, ranges)
    if plain is not None:
        start, factors = plain
        start += sum(by * ranges[v][0] for v, by in factors.items())
        where = footprint(start, ((by, ranges[v][1] - ranges[v][0]) for v, by in factors.items()))
        return Access(name, where, where.places)
    span = _span(index, ranges)
    if span is not None and span[1] - span[0] < most:
        where = footprint(span[0], [(1, span[1] - span[0] + 1)])
        return Access(name, where, where.places)
    return Access(name, None, most, f"{index} {sorted(map(str, ranges.items()))}")


def _span(index: Any, ranges: Ranges) -> tuple[int, int] | None:
    """The lowest and highest value of an index that divides; None where it depends on data."""
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    if not index.free_symbols <= set(ranges):
        return None
    bounds = bound_sympy(index, {v: ValueRanges(lo, hi - 1) for v, (lo, hi) in ranges.items()})
    if not (bounds.lower.is_Integer and bounds.upper.is_Integer):
        return None
    return int(bounds.lower), int(bounds.upper)


# For a comparison, what is not negative where it holds.
_COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: b - a - 1,
    "le": lambda a, b: b - a,
    "gt": lambda a, b: a - b - 1,
    "ge": lambda a, b: a - b,
}
_BOTH = frozenset({"and_", "logical_and", "bitwise_and"})


def _result(loops: _Loops, name: str, args: tuple[Any, ...]) -> _Value:
    """What an operation in a loop gives."""
    from torch.utils._pytree import tree_leaves

    if name == "constant":
        return _Value(index=_expression(args[0]) if type(args[0]) is int else None)
    if name in ("index_expr", "value_expr"):
        index = _known(_expression(args[0]), {*loops.sizes, *loops.indirect})
        return _Value(loops.variables(index), index)
    if name == "to_dtype":
        return args[0] if isinstance(args[0], _Value) else _Value()
    values = [v for v in tree_leaves(args) if isinstance(v, _Value)]
    variables = frozenset[Any]().union(*(v.variables for v in values))
    indices = [v.index for v in values]
    if name in _COMPARES and None not in indices:
        return _Value(variables, limits=(_COMPARES[name](*indices),))
    if name in _BOTH:
        return _Value(variables, limits=sum((v.limits for v in values), ()))
    return _Value(variables)


def _handler(loops: _Loops) -> Any:
    """What stands in the place of the code generator while loops are followed."""
    from torch._inductor.ops_handler import DefaultHandler

    class Follower(DefaultHandler):  # type: ignore[misc]
        """Notes loads and stores."""

        def _default(self, name: str, args: Any, _: Any) -> Any:
            return _result(loops, name, args)

        def load(self, name: str, index: Any) -> Any:
            return loops.loaded(name, index)

        def load_seed(self, name: str, offset: Any) -> Any:
            return loops.loaded(name, offset)

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:  # noqa: ARG002
            if mode == "atomic_add":
                loops.note("load", name, index)
            loops.note("store", name, index)

        def store_reduction(self, name: str, index: Any, value: Any) -> None:  # noqa: ARG002
            loops.note("store", name, index)

        def masked(self, mask: Any, body: Any, other: Any) -> Any:  # noqa: ARG002
            return loops.under(mask, body)

        def indirect_indexing(self, value: Any, *_: Any, **__: Any) -> Any:
            return loops.looked_up(value)

        def bucketize(self, values: Any, boundaries: Any, *_: Any, **given: Any) -> Any:
            for searched in filter(None, (boundaries, given.get("sorter"))):
                loops.searched(searched[0])
            return _Value(values.variables)

    return Follower()


def _of_loops(node: Any) -> list[tuple[str, Access]]:
    """What the loops of one of Inductor's nodes load and store, in order."""
    from torch._inductor.dependencies import index_vars_squeeze
    from torch._inductor.virtualized import V

    variables, sizes = index_vars_squeeze(*node._sizes)
    loops = _Loops({v: _hint(n) for v, n in sizes.items()})
    with V.set_ops_handler(_handler(loops)):
        node._body(*variables)
    return loops.found


def _real(name: str) -> str:
    """The array that a writer's name stands for, if it writes into one that was there."""
    from torch._inductor.virtualized import V

    return str(V.graph.scheduler.mutation_real_name.get(name, name))


def _size(name: str) -> int:
    from torch._inductor.virtualized import V

    return _hint(V.graph.get_numel(_real(name)))


def _bytes(accesses: Mapping[str, Iterable[Access]]) -> int:
    """Bytes of each array that accesses reach: each element once."""
    from torch._inductor.virtualized import V

    total = 0
    for name, all_of_it in accesses.items():
        known = [one.where for one in all_of_it if one.where is not None]
        other = {one.index: one.most for one in all_of_it if one.where is None}
        elements = min(places_together(known) + sum(other.values()), _size(name))
        total += elements * int(V.graph.get_dtype(name).itemsize)
    return total


def of_kernel(nodes: Iterable[Any]) -> tuple[int, int]:
    """Bytes that a generated kernel must read and must write, by Inductor's nodes that make it up.

    To be called where Inductor has written its code. What an earlier part of the kernel made or
    stored at the same place is not loaded again, and what no other kernel needs is not stored.
    """
    from torch._inductor.virtualized import V

    gone = V.graph.removed_buffers | V.graph.inplaced_to_remove
    read, written = defaultdict[str, set[Access]](set), defaultdict[str, set[Access]](set)
    for kind, access in _in_order(nodes):
        if access.name in gone:
            continue
        name = _real(access.name)
        placed = Access(name, access.where, access.most, access.index)
        if kind == "store":
            written[name].add(placed)
        elif placed not in written[name]:
            read[name].add(placed)
    return _bytes(read), _bytes(written)


def _in_order(nodes: Iterable[Any]) -> Iterator[tuple[str, Access]]:
    for node in nodes:
        yield from _of_loops(node)


def rewritten(name: str) -> int | None:
    """Bytes of the array that a writer of it, or of a part, stands for; None where it is no such.

    A library call that is given the array may touch all of it.
    """
    from torch._inductor.virtualized import V

    if _real(name) == name:
        return None
    return _size(name) * int(V.graph.get_dtype(_real(name)).itemsize)


def has_loops(node: Any) -> bool:
    """Whether Inductor writes a node's kernel itself, from loops."""
    return getattr(node, "_body", None) is not None


def is_view(node: Any) -> bool:
    """Whether a node calls an op that only looks at its operand in another way."""
    return bool(getattr(getattr(node, "op_overload", None), "is_view", False))
