"""Whose line an eager op is of, by the Python frames above it; in backward, by the forward op's.

Autograd numbers its nodes as they are made. The first op that is dispatched after a number was
given is the one that the node is of: what runs while that node is at work comes from its line.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from kernelcount import attention
from kernelcount.callers import calls_the_user, is_generated, is_users, line_of, plain
from kernelcount.model import Phase, Place, Source
from kernelcount.paper import origins
from kernelcount.paper.traced import Traced

_Where = tuple[Place | None, str | None, Phase, bool]
"""The line, the module, the phase as far as frames tell, and whether it is attention by parts."""

_Kind = Literal["user", "module", "optimizer", "backward", "attention", "ours", ""]

_OF_MODULES = ("torch/nn/modules/module.py", "_call_impl")
_OF_OPTIMIZERS = "torch/optim/"
_OF_AUTOGRAD = "torch/autograd/__init__.py"  # it makes the first gradient
_OF_ATTENTION = (str(Path(__file__).with_name("attention.py")), "by_math")


class Sources:
    """Tells of each op where it comes from, while the call that is counted goes on."""

    def __init__(self) -> None:
        self._forward: dict[int, _Where] = {}
        self._number = -1
        self._paths: dict[int, tuple[Any, dict[int, str]]] = {}

    def saw(self) -> None:
        """An op is dispatched: to be called for each, in order, before `of`."""
        if origins.lacking():
            return
        number = origins.sequence_number()
        if number != self._number:
            self._number = number
            self._forward[number - 1] = self._walk()

    def of(self, op: str) -> tuple[tuple[Traced, ...], Source | None]:
        """The op that runs just now, and where it comes from; nothing where that is not known."""
        if origins.lacking():
            return (), None
        node = origins.backward_number()
        place, module, phase, composed = self._walk()
        if node is not None:
            phase = "backward"
            place, module, _, composed = self._forward.get(node, (place, None, phase, False))
        backend = attention.backend(op) or ("math" if composed else None)
        return (Traced(op, place, module, phase),), Source(phase=phase, attention=backend)

    def _walk(self) -> _Where:
        frame: FrameType | None = sys._getframe(1)
        place: Place | None = None
        modules: list[Any] = []
        phase: Phase = "forward"
        composed = False
        while frame is not None:
            code = frame.f_code
            kind = _kind(code.co_filename, code.co_name)
            if kind == "ours":
                break
            if kind == "user":
                if place is None and not is_generated(frame):
                    place = Place(code.co_filename, line_of(frame), plain(code.co_name))
            elif kind == "module":
                modules.append(frame.f_locals.get("self"))
            elif kind in ("optimizer", "backward"):
                phase = kind
            elif kind == "attention":
                composed = True
            frame = frame.f_back
        return place, self._path(modules), phase, composed

    def _path(self, modules: list[Any]) -> str | None:
        """The path of the innermost of the modules that are called, in the outermost."""
        if not modules:
            return None
        inner, outer = modules[0], modules[-1]
        if id(outer) not in self._paths:
            named = {id(module): name for name, module in outer.named_modules()}
            self._paths[id(outer)] = (outer, named)
        path = self._paths[id(outer)][1].get(id(inner), type(inner).__name__)
        return path.removeprefix("_orig_mod").strip(".") or None


@lru_cache(maxsize=4096)
def _kind(file: str, function: str) -> _Kind:
    """Whose a frame is, or what it tells of what goes on; empty: nothing."""
    if calls_the_user(file):
        return "ours"
    posix = file.replace("\\", "/")
    if posix.endswith(_OF_MODULES[0]):
        return "module" if function == _OF_MODULES[1] else ""
    if posix.endswith(_OF_AUTOGRAD):
        return "backward"
    if _OF_OPTIMIZERS in posix and not is_users(file):
        return "optimizer"
    if (file, function) == _OF_ATTENTION:
        return "attention"
    return "user" if is_users(file) else ""
