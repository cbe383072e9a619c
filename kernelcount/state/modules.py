"""What is called where that is a module, and what it holds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import torch


def module_of(function: Any) -> torch.nn.Module | None:
    """The nn.Module that is called, if one is: itself, by a method of its own, or by a partial."""
    import torch

    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", function)
    return owner if isinstance(owner, torch.nn.Module) else None


def held(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor | None]]:
    """Parameters and buffers of a module and of those inside it, by name, None among them."""
    for prefix, inner in module.named_modules():
        for table in _tables_of_one(inner):
            for name, tensor in table.items():
                yield f"{prefix}.{name}" if prefix else name, tensor


def once(found: Iterator[torch.Tensor]) -> list[torch.Tensor]:
    """Each tensor once, in order."""
    return list({id(t): t for t in found}.values())


def of_module(module: torch.nn.Module | None) -> list[torch.Tensor]:
    """The parameters and buffers of a module."""
    return [] if module is None else once(iter((*module.parameters(), *module.buffers())))


def tables_of(module: torch.nn.Module | None) -> list[dict[str, Any]]:
    """Where a module and those inside keep their parameters and buffers, None among them."""
    return [t for m in (() if module is None else module.modules()) for t in _tables_of_one(m)]


def _tables_of_one(module: torch.nn.Module) -> list[dict[str, Any]]:
    tables = [vars(module).get(name) for name in ("_parameters", "_buffers")]
    if all(isinstance(table, dict) for table in tables):
        return cast("list[dict[str, Any]]", tables)
    # A scripted module keeps them elsewhere: they can be named, and no other put in their place.
    named = (module.named_parameters(recurse=False), module.named_buffers(recurse=False))
    return [dict(table) for table in named]
