"""Sizes and numbers in a graph that hang on values: what they were when the graph was called.

A graph with ``nonzero`` in it is written for any number of elements. How many kernels a library
call launches for them, and how much is moved, is told of as many as there were.
"""

from __future__ import annotations

from typing import Any

from kernelcount.paper import adapter
from kernelcount.paper.steps import leaves, mapped


class Sizes:
    """What the nodes of one graph gave, by name, that hangs on values; over all of its calls."""

    def __init__(self, module: Any) -> None:
        hanging = (n for n in module.graph.nodes if hangs(n.meta.get("val")))
        self._seen: dict[str, list[list[Any]]] = {n.name: [] for n in hanging}

    def note(self, name: str, result: Any) -> None:
        """A node gave this."""
        if (seen := self._seen.get(name)) is not None:
            now = [n for value in leaves(result) for n in _numbers(value)]
            if now not in seen:
                seen.append(now)

    def symbols(self, module: Any) -> dict[Any, Any]:
        """The number that each symbol of the module's values stood for, where it was always one.

        `module`: the graph, or a copy with the same names.
        """
        found: dict[Any, set[int]] = {}
        for node in module.graph.nodes:
            for numbers in self._seen.get(node.name, ()):
                traced = (n for value in leaves(node.meta.get("val")) for n in _numbers(value))
                for expression, number in zip(traced, numbers, strict=False):
                    if (symbol := adapter.value_symbol(expression)) is not None:
                        found.setdefault(symbol, set()).add(number)
        return {s: _integer(*n) for s, n in found.items() if len(n) == 1}


def _integer(number: int) -> Any:
    import sympy  # type: ignore[import-untyped]

    return sympy.Integer(number)


def as_it_was(value: Any, symbols: dict[Any, int]) -> Any:
    """Tensors and numbers as large as they were. Raises LookupError where that is not known."""
    return mapped(value, lambda item: _known(item, symbols)) if hangs(value) else value


def _known(item: Any, symbols: dict[Any, int]) -> Any:
    if not adapter.hangs_on_values(item):
        return item
    if not hasattr(item, "dtype"):
        return adapter.as_number(item, symbols)
    shape, stride = ([adapter.as_number(n, symbols) for n in s] for s in _forms(item))
    return adapter.resized(item, shape, stride)


def hangs(value: Any) -> bool:
    """Whether any size or number in a traced value hangs on values."""
    return any(map(adapter.hangs_on_values, leaves(value)))


def _forms(tensor: Any) -> tuple[Any, Any]:
    return tensor.shape, tensor.stride()


def _numbers(value: Any) -> list[Any]:
    """A number, or those of a tensor's shape; of anything else None."""
    return list(value.shape) if hasattr(value, "dtype") else [value]
