"""Fewer bits: TF32 for products in float32, and bfloat16 for inputs and parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import MethodType
from typing import Any

from kernelcount import capture
from kernelcount.inputs import Arguments
from kernelcount.nesting import tensors
from kernelcount.remedies.facts import Attempt, Facts
from kernelcount.state import module_of

_AMPERE = 8
"""The first compute capability that has TF32 (NVIDIA's A100 whitepaper, 2020)."""


def no_tf32(facts: Facts) -> str:
    """Why TF32 does not apply; empty where it does."""
    import torch

    if not facts.gpu or torch.version.hip:
        return "TF32 is a precision of NVIDIA's GPUs"
    if torch.cuda.get_device_capability()[0] < _AMPERE:
        return "this GPU has no TF32"
    if not facts.products:
        return "no matrix product or convolution in float32"
    if not products_without_tf32(facts):
        return "TF32 is on already"
    return ""


def products_without_tf32(facts: Facts) -> frozenset[str]:
    """The families with products in float32 that the user's settings keep off the tensor cores."""
    import torch

    now = {
        "matmul": torch.backends.cuda.matmul.fp32_precision,
        "convolution": torch.backends.cudnn.conv.fp32_precision,
    }
    return frozenset(f for f in facts.products if now[f] != "tf32")


@contextmanager
def tf32() -> Iterator[None]:
    """Let products in float32 use TF32; the user's settings are as they were afterwards.

    torch has older and newer settings of one thing, and refuses to tell the older ones where the
    two differ: both are set, as long as it tells. The older ones, put back, leave another value in
    the newer ones, so these are put back last.
    """
    import torch

    newer = [
        (module, module.fp32_precision)
        for module in (
            torch.backends.cuda.matmul,
            torch.backends.cudnn.conv,
            torch.backends.cudnn.rnn,
            torch.backends.mkldnn.matmul,
        )
    ]
    older: list[tuple[Callable[[Any], object], Any]] = []
    with suppress(RuntimeError):
        older.append((torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()))
    with suppress(RuntimeError):
        allow = partial(setattr, torch.backends.cudnn, "allow_tf32")
        older.append((allow, torch.backends.cudnn.allow_tf32))
    try:
        for put, _ in older:
            put("high" if put is torch.set_float32_matmul_precision else True)
        for module, _ in newer[:2]:
            module.fp32_precision = "tf32"
        yield
    finally:
        for put, value in older:
            put(value)
        for module, value in newer:
            module.fp32_precision = value


@contextmanager
def in_tf32(facts: Facts) -> Iterator[Attempt]:
    """The variant itself, with TF32 allowed while it is called."""
    yield Attempt(_again(facts, facts.way.function, "TF32"), facts.subject, tf32, precise=False)


def no_bf16(facts: Facts) -> str:
    """Why bfloat16 does not apply; empty where it does."""
    given = facts.subject.arguments
    module = module_of(facts.way.function)
    found = [*tensors((given.args, given.kwargs)), *(() if module is None else module.parameters())]
    if any(map(_is_wide, found)):
        return ""
    return "no input and no parameter is float32 or float64"


@contextmanager
def in_bf16(facts: Facts) -> Iterator[Attempt]:
    """The variant on inputs in bfloat16, a module by a copy of it with such parameters.

    What a function reaches without being given it stays as it is.
    """
    subject = facts.subject
    narrow = replace(
        subject,
        arguments=_arguments(subject.arguments),
        remake=lambda seed: _arguments(subject.remake(seed)),
        fresh=[],
    )
    function = _narrowed(facts.way.function)
    yield Attempt(_again(facts, function, "bf16"), narrow, precise=False)


def _again(facts: Facts, function: Callable[..., Any], name: str) -> capture.Way:
    """The same kind of variant of `function`, under a name of its own."""
    return capture.way(replace(facts.way.variant, name=name), function)


def _is_wide(tensor: Any) -> bool:
    import torch

    return tensor.dtype in (torch.float32, torch.float64)


def _arguments(given: Arguments) -> Arguments:
    done: dict[int, Any] = {}
    return Arguments(_cast(given.args, done), _cast(given.kwargs, done))


def _cast(value: Any, done: dict[int, Any]) -> Any:
    """The same nesting with bfloat16 for float32 and float64; what is one tensor stays one."""
    import torch

    if isinstance(value, torch.Tensor):
        if not _is_wide(value):
            return value
        if id(value) not in done:
            narrow = value.detach().to(torch.bfloat16)
            done[id(value)] = narrow.requires_grad_(value.requires_grad)
        return done[id(value)]
    if type(value) in (tuple, list):
        return type(value)(_cast(item, done) for item in value)
    if type(value) is dict:
        return {key: _cast(item, done) for key, item in value.items()}
    return value


def _narrowed(function: Any) -> Any:
    """The function, of a copy in bfloat16 of the module that it is or belongs to."""
    import torch

    if isinstance(function, partial):
        given = _cast((function.args, dict(function.keywords)), {})
        return partial(_narrowed(function.func), *given[0], **given[1])
    if isinstance(function, torch.nn.Module):
        return copy.deepcopy(function).to(torch.bfloat16)
    if isinstance(function, MethodType) and isinstance(function.__self__, torch.nn.Module):
        return MethodType(function.__func__, _narrowed(function.__self__))
    return function
