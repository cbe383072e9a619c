"""What single calls launch on paper, and calls as they are written down in tests/data.

A call is written down as ``{"op", "args", "kwargs", "backward"}``: the name below ``torch``, and
arguments of which tensors are ``{"shape", "dtype"}``, whole numbers with their ``"values"``, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from kernelcount.paper.cards import DEFAULT, find
from kernelcount.paper.gpu import PretendedGpu


class Launched(NamedTuple):
    """Kernels and copies of one call; `at_least`: or more of them."""

    kernels: int
    copies: int
    at_least: bool = False

    def is_as(self, measured: Launched) -> bool:
        """Whether a GPU may launch what it was measured to."""
        if self.at_least:
            return self.kernels <= measured.kernels and self.copies <= measured.copies
        return self[:2] == measured[:2]


@contextmanager
def paper() -> Iterator[Callable[[Callable[..., Any], tuple[Any, ...]], Launched]]:
    """Gives a function that counts a call with these arguments, which are on the stand-in."""
    gpu = PretendedGpu(find(DEFAULT))

    def launched(call: Callable[..., Any], args: tuple[Any, ...]) -> Launched:
        gpu.run(lambda: call(*args), args)
        costs = [noted.cost for noted in gpu.noted]
        open_ = any(not cost.exact for cost in costs) or any(noted.unknown for noted in gpu.noted)
        return Launched(sum(c.kernels for c in costs), sum(c.copies for c in costs), open_)

    with gpu.prepare():
        yield launched


def placed(value: Any, device: str, *, grad: bool) -> Any:
    """Arguments with copies of their tensors there; `grad`: those that can be differentiated by."""

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.detach().clone(memory_format=torch.contiguous_format).to(device)
        return made.requires_grad_() if grad and tensor.is_floating_point() else made

    return tree_map_only(torch.Tensor, moved, value)


def forward(op: Callable[..., Any], args: Any, kwargs: Any, _: Any = None) -> Any:
    """The call without gradients."""
    with torch.no_grad():
        return op(*args, **kwargs)


def backward(op: Callable[..., Any], args: Any, kwargs: Any, grads: list[Any]) -> Any:
    """The call and the gradients by all that it is given. `grads`: of its results, or None."""
    out = tree_flatten(op(*args, **kwargs))[0]
    leaves = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    wanted = [t for t in leaves if t.requires_grad]
    ends = [(o, g) for o, g in zip(out, grads, strict=True) if g is not None]
    return torch.autograd.grad(
        [o for o, _ in ends], wanted, [g for _, g in ends], allow_unused=True
    )


def gradient_shapes(op: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """The shapes of the results that can be differentiated, by the CPU; None for the others."""
    args, kwargs = placed((args, kwargs), "cpu", grad=True)
    out = tree_flatten(op(*args, **kwargs))[0]
    is_wanted = [isinstance(o, torch.Tensor) and o.requires_grad for o in out]
    return [tuple(o.shape) if yes else None for o, yes in zip(out, is_wanted, strict=True)]


def ready(
    op: Callable[..., Any], args: Any, kwargs: Any, shapes: list[Any] | None, device: str
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A call to be made there, and its arguments. `shapes`: of the results' gradients, or None."""
    args, kwargs = placed((args, kwargs), device, grad=shapes is not None)
    if shapes is None:
        return forward, (op, args, kwargs)
    grads = [None if s is None else torch.ones(s, device=device) for s in shapes]
    return backward, (op, args, kwargs, grads)


# ── written down ─────────────────────────────────────────────────────────────────────────────────


def named(name: str) -> Callable[..., Any]:
    """The function of this name below torch, or the method. Raises AttributeError."""
    begin = torch if hasattr(torch, name.partition(".")[0]) else torch.Tensor
    return reduce(getattr, name.split("."), begin)  # type: ignore[arg-type]


def written(value: Any) -> Any:
    """An argument as JSON has it. Raises TypeError for what cannot be written down."""
    if isinstance(value, torch.Tensor):
        made = {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
        if not value.is_floating_point() and value.dtype != torch.bool:
            made["values"] = value.flatten().tolist()
        return made
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, list | tuple):
        return [written(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(type(value).__name__)


def call_of(made: dict[str, Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """The op, the arguments and those by name of a call that was written down."""
    kwargs = {name: read(value) for name, value in made["kwargs"].items()}
    return named(made["op"]), read(made["args"]), kwargs


def read(value: Any) -> Any:
    """An argument that was written down, on the CPU."""
    if isinstance(value, list):
        return [read(v) for v in value]
    if not isinstance(value, dict):
        return value
    dtype = getattr(torch, value["dtype"])
    if "shape" not in value:
        return dtype
    if "values" in value:
        return torch.tensor(value["values"], dtype=dtype).reshape(value["shape"])
    numbers = torch.rand(value["shape"])
    return numbers > 0.5 if dtype is torch.bool else numbers.to(dtype)
