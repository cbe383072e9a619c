"""Make the arguments of a call: from specs such as ``f32[N]``, from a maker, or generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelcount.inputs.arguments import Arguments, InputOptions, describe
from kernelcount.inputs.generated import Draws, from_specs, generate
from kernelcount.inputs.maker import find_maker, from_maker
from kernelcount.inputs.signatures import (
    BY_NAME,
    as_called,
    check_fit,
    must_be_given,
    name_of,
    refuse_misfit,
    signature_of,
)
from kernelcount.inputs.specs import DTYPES, known_dtype, parse_size, parse_sizes, parse_spec

__all__ = [
    "DTYPES", "Arguments", "InputOptions", "build", "check_fit", "describe", "find_maker",
    "heeds_size", "parse_size", "parse_sizes", "parse_spec", "takes_something",
]  # fmt: skip


def build(
    function: Callable[..., Any],
    options: InputOptions,
    maker: Callable[..., Any] | None = None,
) -> Arguments:
    """Make the arguments of one call of `function`, the same for the same options.

    `options.specs` come first: in order, or by name; where all are named, the other parameters
    that must be given are generated. Then `maker`. Then one 1-D tensor from a standard normal for
    each required positional parameter that may take a tensor. Integer tensors hold values from 0
    to 9, or below the limit of their spec; bool tensors are random.

    The RNG state of torch is left as it was. Raises UsageError where the arguments do not fit the
    function or cannot be told. What a maker or an allocation raises is passed on as it is, but for
    a maker's SystemExit: a UserCodeError.
    """
    if options.dtype is not None:
        known_dtype(options.dtype, "--dtype: ")
    signature = signature_of(function)
    if signature is not None and not signature.parameters and not options.specs:
        return Arguments((), {})  # a file's maker is for its other functions then
    if options.specs:
        arguments = from_specs(function, signature, options)
        source, remedy = "--input", "give one --input for each argument"
    elif maker is not None:
        arguments = from_maker(maker, options)
        source = f"{name_of(maker)}()"
        remedy = "give --input for each argument, or name another maker with --inputs"
    else:
        return generate(function, signature, Draws(options), options, {})
    if signature is not None:
        refuse_misfit(
            f"{source} gives", as_called(function, signature), signature, arguments, remedy
        )
    return arguments


def heeds_size(
    function: Callable[..., Any], options: InputOptions, maker: Callable[..., Any] | None = None
) -> bool:
    """Whether `build` looks at the size: a spec has an N, a maker takes one, or one is generated.

    Of a maker that takes it, it is not known what it makes of it.
    """
    signature = signature_of(function)
    specs = [parse_spec(text) for text in options.specs]
    if any(power for spec in specs for _, power in spec.shape):
        return True
    if maker is not None and not specs and takes_something(function):
        taken = signature_of(maker)
        named = taken.parameters.values() if taken is not None else ()
        return any(p.name in ("n", "size") and p.kind in BY_NAME for p in named)
    if signature is None or any(spec.name is None for spec in specs):
        return False
    return bool(must_be_given(signature, {spec.name: None for spec in specs if spec.name}))


def takes_something(function: Callable[..., Any]) -> bool:
    """Whether a function has parameters, or may: a file's maker is called for such ones alone."""
    signature = signature_of(function)
    return signature is None or bool(signature.parameters)
