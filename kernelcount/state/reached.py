"""What a function reaches beside its arguments."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from kernelcount.contents import is_library
from kernelcount.nesting import inside, tensors
from kernelcount.state.modules import once

if TYPE_CHECKING:
    import torch

_REACH = 10_000  # things looked at behind a function; a program has no more that a call changes


class Reached:
    """Modules, tensors and optimizers in a function's closures and globals, and behind objects."""

    def __init__(self, function: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        import torch

        self.modules: list[torch.nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        found: list[torch.Tensor] = []
        seen: dict[int, Any] = {}
        waiting = [function, *arguments[0], *arguments[1].values()]
        while waiting and len(seen) < _REACH:
            value = waiting.pop()
            if id(value) in seen or isinstance(value, type):
                continue
            seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, torch.nn.Module):
                self.modules += value.modules()
                found += (*value.parameters(), *value.buffers())
                held = (v for m in value.modules() for v in vars(m).values())
                waiting += (v for v in held if isinstance(v, torch.optim.Optimizer))
            elif isinstance(value, torch.optim.Optimizer):
                self.optimizers.append(value)
                waiting += (p for group in value.param_groups for p in group["params"])
                found += tensors(list(value.state.values()))
            else:
                waiting += _behind(value)
        self.tensors = once(iter(found))


def _behind(value: Any) -> Iterator[Any]:
    """What is one step behind a value."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        if not is_library(value.__module__):
            yield from _behind_function(value)
    elif isinstance(value, list | tuple | set | frozenset | dict):
        yield from inside(value)
    elif not isinstance(value, ModuleType) and not is_library(type(value).__module__):
        with contextlib.suppress(Exception):  # the user's own attributes may raise anything
            yield from list(vars(value).values())
    with contextlib.suppress(Exception):
        yield getattr(value, "__wrapped__", None)


def _behind_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType) and not is_library(value.__name__):
            yield from (vars(value).get(other) for other in names)


def names_in(code: CodeType) -> set[str]:
    """The names that a function's code and the functions inside it may look up."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))
