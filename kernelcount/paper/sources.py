"""Whose line an eager op is of, by the Python frames above it; in backward, by the forward op's.

Autograd numbers its nodes as they are made. The first op that is dispatched after a number was
given is the one that the node is of: what runs while that node is at work comes from its line, but
where code of the user's runs in it, as a backward of their own or a hook does: then from that line.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

from kernelcount.model import Phase, Place, Source
from kernelcount.origins import attention
from kernelcount.origins.callers import calls_the_user, is_generated, is_users, line_of, plain
from kernelcount.paper import origins
from kernelcount.paper.traced import NO_ROOTS, Roots, Traced


class _Where(NamedTuple):
    """The line, the module, the phase as far as frames tell, and whether it is attention by parts.

    `inside`: the line lies in what autograd calls, as a backward of the user's own does, where a
    node of its is at work. `roots`: of a compiled function, where that is what calls.
    """

    place: Place | None = None
    module: str | None = None
    phase: Phase = "forward"
    composed: bool = False
    inside: bool = False
    roots: Roots = NO_ROOTS


_Kind = Literal["user", "module", "optimizer", "backward", "engine", "attention", "ours", ""]

_OF_MODULES = ("torch/nn/modules/module.py", "_call_impl")
_OF_OPTIMIZERS = "torch/optim/"
_OF_AUTOGRAD = "torch/autograd/__init__.py"  # it makes the first gradient
_OF_ENGINE = ("torch/autograd/graph.py", "_engine_run_backward")  # what it calls lies inside
_OF_ATTENTION = (str(Path(__file__).with_name("attention.py")), "by_math")


class Sources:
    """Tells of each op where it comes from, while the call that is counted goes on."""

    def __init__(self) -> None:
        self._forward: dict[int, _Where] = {}
        self._number = -1
        self._paths: dict[int, tuple[Any, dict[int, str]]] = {}

    def saw(self, *, compiled: bool = False) -> None:
        """An op is dispatched, or a graph called: to be told of each, in order, before `of`."""
        if origins.lacking():
            return
        number = origins.sequence_number()
        if number != self._number:
            self._number = number
            self._forward[number - 1] = self._walk(compiled=compiled)

    def roots(self) -> Roots:
        """The variables of the function that calls a graph just now, or whose backward it is."""
        if origins.lacking():
            return NO_ROOTS
        node = origins.backward_number()
        forward = self._forward.get(node) if node is not None else None
        return self._walk(compiled=True).roots if forward is None else forward.roots

    def of(self, op: str) -> tuple[tuple[Traced, ...], Source | None]:
        """The op that runs just now, and where it comes from; nothing where that is not known."""
        if origins.lacking():
            return (), None
        node = origins.backward_number()
        here = self._walk(in_backward=node is not None)
        if node is not None:
            here = self._in_backward(here, self._forward.get(node))
        backend = attention.backend(op) or ("math" if here.composed else None)
        traced = Traced(op, here.place, here.module, here.phase)
        return (traced,), Source(phase=here.phase, attention=backend)

    def _in_backward(self, here: _Where, forward: _Where | None) -> _Where:
        """Where what runs while a node is at work is from: the user's code in it, or its forward.

        Code of the user's that is called in no module is in that of the forward.
        """
        known = forward or _Where(here.place)
        if here.inside:
            module = here.module or known.module
            return here._replace(module=module, phase="backward")
        return known._replace(phase="backward")

    def _walk(self, *, in_backward: bool = False, compiled: bool = False) -> _Where:
        """What the frames tell; of modules `in_backward` those alone that autograd calls.

        `compiled`: also what modules a compiled function has, which calls.
        """
        frame: FrameType | None = sys._getframe(1)
        place: Place | None = None
        modules: list[Any] = []
        phase: Phase = "forward"
        composed = False
        called, inside = True, False
        variables: dict[str, Any] | None = None
        while frame is not None:
            code = frame.f_code
            if compiled and variables is None and not _is_runtime(frame):
                variables = frame.f_locals
            kind = _kind(code.co_filename, code.co_name)
            if kind == "ours":
                break
            if kind == "user":
                if place is None and not is_generated(frame):
                    place = Place(code.co_filename, line_of(frame), plain(code.co_name))
                    inside = called
            elif kind == "module" and (called or not in_backward):
                modules.append(frame.f_locals.get("self"))
            elif kind in ("optimizer", "backward"):
                phase = kind
            elif kind == "engine":
                called = False
            elif kind == "attention":
                composed = True
            frame = frame.f_back
        path = self._path(modules)
        return _Where(place, path, phase, composed, inside, self._roots(modules, variables or {}))

    def _roots(self, modules: list[Any], variables: dict[str, Any]) -> Roots:
        """The paths of the variables that are modules, in the outermost that is called."""
        known = self._paths[id(modules[-1])][1] if modules else {}
        found = ((name, known.get(id(value))) for name, value in variables.items())
        return tuple((n, _without_wrapper(path)) for n, path in found if path is not None)

    def _path(self, modules: list[Any]) -> str | None:
        """The path of the innermost of the modules that are called, in the outermost."""
        if not modules:
            return None
        inner, outer = modules[0], modules[-1]
        if id(outer) not in self._paths:
            named = {id(module): name for name, module in outer.named_modules()}
            self._paths[id(outer)] = (outer, named)
        path = self._paths[id(outer)][1].get(id(inner), type(inner).__name__)
        return _without_wrapper(path) or None


def _without_wrapper(path: str) -> str:
    """A module's path without that of torch.compile's own module round it."""
    return path.removeprefix("_orig_mod").strip(".")


# What runs between a compiled function and its graph: torch's runtime of graphs, code that this
# writes, in modules of no name, and ours.
_RUNTIME = ("kernelcount.", "torch._", "torch.autograd", "torch.fx", "torch.utils", "contextlib")


def _is_runtime(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return name is None or str(name).startswith(_RUNTIME)


@lru_cache(maxsize=4096)
def _kind(file: str, function: str) -> _Kind:
    """Whose a frame is, or what it tells of what goes on; empty: nothing."""
    if calls_the_user(file):
        return "ours"
    posix = file.replace("\\", "/")
    if posix.endswith(_OF_MODULES[0]):
        return "module" if function == _OF_MODULES[1] else ""
    if posix.endswith(_OF_ENGINE[0]):
        return "engine" if function == _OF_ENGINE[1] else ""
    if posix.endswith(_OF_AUTOGRAD):
        return "backward"
    if _OF_OPTIMIZERS in posix and not is_users(file):
        return "optimizer"
    if (file, function) == _OF_ATTENTION:
        return "attention"
    return "user" if is_users(file) else ""
