"""What is asked of arguments, what they are, and how they are said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernelcount.inputs.specs import SHORT

DEFAULT_SIZE = 1_000_000
"""Elements in each generated input where no size is given, and what N stands for then."""

_LONGEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What the flags ask for.

    `size` None: 1e6 elements, and makers use their own default. `dtype` is a key of DTYPES, or
    None for torch's default. `device` is a torch device string.
    """

    size: int | None = None
    specs: tuple[str, ...] = ()
    dtype: str | None = None
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def describe(arguments: Arguments) -> tuple[str, ...]:
    """Say what each argument is: ``f32[1000000]``, ``scale=2.0``, ``None``, ``list(2)``."""
    named = (f"{name}={_describe(value)}" for name, value in arguments.kwargs.items())
    return (*map(_describe, arguments.args), *named)


def _describe(value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        long = str(value.dtype).removeprefix("torch.")
        shape = "nested" if value.is_nested else ",".join(map(str, value.shape))
        return f"{SHORT.get(long, long)}[{shape}]"
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + "...")
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"{type(value).__name__}({len(value)})"
    return type(value).__name__
