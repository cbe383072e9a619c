"""An op of the user's code on its way from a call or a graph to the kernels that compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelcount.model import Apart, Origin, Phase, Place, Source


@dataclass(frozen=True, slots=True)
class Traced:
    """One op. `call` tells it apart from others like it in its `family`, a graph and its backward.

    An op without either is one of its own each time. `root`: the variable, of the function that was
    compiled, from which the path in `module` leads on; empty: from the outermost module.
    """

    op: str
    place: Place | None = None
    module: str | None = None
    phase: Phase = "forward"
    call: str = ""
    family: tuple[int, ...] = ()
    root: str = ""


Roots = tuple[tuple[str, str], ...]
"""Variables of a compiled function that are modules, with the path of each in the outermost."""

NO_ROOTS: Roots = ()


class Numbering:
    """Numbers ops that are alike in the order in which they are met."""

    def __init__(self) -> None:
        self._known: dict[Traced, int] = {}
        self._next: Counter[tuple[object, ...]] = Counter()

    def origins(self, ops: Iterable[Traced]) -> tuple[Origin, ...]:
        """The ops of one kernel, each once, in order."""
        return tuple(dict.fromkeys(self._origin(op) for op in ops))

    def _origin(self, op: Traced) -> Origin:
        alike = (op.op, op.place, op.module, op.phase)
        number = self._known.get(op) if op.call else None
        if number is None:
            number = self._next[alike]
            self._next[alike] += 1
            if op.call:
                self._known[op] = number
        return Origin(*alike, number)


def placed(
    ops: Sequence[Traced],
    site: Traced | None,
    family: tuple[int, ...],
    phase: Phase | None = None,
    roots: Roots = NO_ROOTS,
) -> tuple[Traced, ...]:
    """The ops of a graph as one call of it, at `site`, has them: where they tell no line, it does.

    `phase`: that of the call, where the graph does not tell it, as that of a hook does not.
    """
    at = site or Traced("")
    return tuple(
        replace(
            op,
            place=op.place or at.place,
            module=_in_outermost(op, at.module, roots),
            phase=phase or op.phase,
            family=family,
            root="",
        )
        for op in ops
    )


def _in_outermost(op: Traced, called: str | None, roots: Roots) -> str | None:
    """The path of an op's module in the outermost that is called; `called`: of the innermost."""
    for name, path in roots:
        if name == op.root:
            return ".".join(filter(None, (path, op.module))) or None
    return op.module or called


def in_its_graph(source: Source, *, several: bool) -> Source:
    """Where a kernel comes from; alone in its graph, it is apart from the `several` others by that.

    A graph and its backward are one here: between them there is no break.
    """
    if not several:
        return source
    alone, apart = Apart("nothing-shared"), Apart("graph-break")
    return replace(source, apart=tuple(apart if a == alone else a for a in source.apart))
