"""The user's state: arguments, gradients, buffers and random numbers as they were at first.

Each call of the target gets the arguments that the first one got. What it changes is found by its
version counter and copied back in place between the calls, so that addresses stay (a CUDA graph of
the user's holds them) and the copying is in no profile.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a value: tuples, lists, mappings and their views, sets, dataclasses."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, tuple | list | set | frozenset | type({}.items()) | type({}.values())):
        for item in value:
            yield from tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name, None))


class UserState:
    """Remembers what the calls may change, and puts it back."""

    def __init__(self, function: Any, arguments: Any) -> None:
        import torch

        seen: dict[int, torch.Tensor] = {id(t): t for t in tensors(arguments)}
        module = _module_of(function)
        parameters = list(module.parameters()) if module is not None else []
        buffers = list(module.buffers()) if module is not None else []
        for tensor in (*parameters, *buffers):
            seen.setdefault(id(tensor), tensor)
        self.mutated = False
        self._watched = list(seen.values())
        self._versions = [_version(t) for t in self._watched]
        self._pristine: list[torch.Tensor | None] = [_clone(t) for t in self._watched]
        self._gradients = [
            (t, None if t.grad is None else t.grad.clone()) for t in self._watched if t.is_leaf
        ]
        self._training = module.training if module is not None else None
        self._module = module
        self._random = _random_state()
        self._dtype = torch.get_default_dtype()
        self._grad_enabled = torch.is_grad_enabled()

    def before_call(self) -> None:
        """Put arguments, buffers and gradients back to what they were at first."""
        import torch

        with torch.no_grad():
            for i, tensor in enumerate(self._watched):
                if _version(tensor) == self._versions[i] or (p := self._pristine[i]) is None:
                    continue
                self.mutated = True
                if tensor.shape != p.shape or tensor.stride() != p.stride():
                    tensor.set_(p.clone(memory_format=torch.preserve_format))
                else:
                    tensor.copy_(p)
                self._versions[i] = _version(tensor)
        for tensor, gradient in self._gradients:
            tensor.grad = None if gradient is None else gradient.clone()

    def forget_unchanged(self) -> None:
        """Free the copies of what the calls so far have left alone."""
        for i, tensor in enumerate(self._watched):
            if _version(tensor) == self._versions[i]:
                self._pristine[i] = None

    def restore(self) -> None:
        """Leave everything as the user left it: also the RNG, grad mode and default dtype."""
        import torch

        self.before_call()
        _set_random_state(self._random)
        torch.set_default_dtype(self._dtype)
        torch.set_grad_enabled(self._grad_enabled)
        if self._module is not None and self._module.training != self._training:
            self._module.train(bool(self._training))


def _module_of(function: Any) -> torch.nn.Module | None:
    """The nn.Module that is called, if one is."""
    import torch

    owner = getattr(function, "__self__", function)
    return owner if isinstance(owner, torch.nn.Module) else None


def _version(tensor: torch.Tensor) -> int | None:
    """How often it was changed in place; None for an inference tensor, which does not count."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return None


def _clone(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy with the same strides; None where there is none to be had (memory, meta, sparse)."""
    import torch

    if tensor.device.type == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    try:
        with torch.no_grad():
            copy = torch.empty_strided(
                tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
            )
            return copy.copy_(tensor)
    except RuntimeError:  # out of memory, or elements that share a place: never written in place
        return None


def _random_state() -> dict[str, Any]:
    import torch

    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    import torch

    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])
