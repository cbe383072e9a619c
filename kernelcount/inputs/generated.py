"""Arguments from specs and from the signature: random tensors, from one generator."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelcount.errors import UsageError
from kernelcount.inputs.annotations import alternatives, takes_tensor
from kernelcount.inputs.arguments import DEFAULT_SIZE, Arguments, InputOptions
from kernelcount.inputs.signatures import POSITIONAL, must_be_given, name_of
from kernelcount.inputs.specs import DTYPES, LARGEST, Spec, parse_spec

if TYPE_CHECKING:
    import torch

_DEFAULT_BELOW = 10

_EXAMPLES = {
    "bool": "True",
    "int": "3",
    "float": "3.0",
    "str": "\"'text'\"",
    "list": '"[1, 2]"',
    "tuple": '"(1, 2)"',
}


class Draws:
    """Random tensors on one device, from one generator."""

    def __init__(self, options: InputOptions) -> None:
        self._device = options.device
        self._size = DEFAULT_SIZE if options.size is None else options.size
        self._generator = _generator(options.device, options.seed)

    def of_spec(self, spec: Spec) -> Any:
        """What a spec asks for: a random tensor, or its own value."""
        import torch

        if spec.dtype is None:
            return spec.value
        shape = tuple(factor * self._size**power for factor, power in spec.shape)
        if math.prod(shape) > LARGEST:
            raise UsageError(
                f"--input {spec.text}: with N = {self._size} that has more than 2**63 elements"
            )
        return self.tensor(getattr(torch, DTYPES[spec.dtype]), shape, spec.below)

    def of_length(self, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of one dimension, as long as the size."""
        return self.tensor(dtype, (self._size,))

    def tensor(
        self, dtype: torch.dtype, shape: tuple[int, ...], below: int | None = None
    ) -> torch.Tensor:
        """A random tensor; integers are `below` a limit."""
        import torch

        if dtype.is_floating_point or dtype.is_complex:
            return torch.randn(shape, dtype=dtype, device=self._device, generator=self._generator)
        limit = 2 if dtype == torch.bool else _DEFAULT_BELOW if below is None else below
        return torch.randint(
            0, limit, shape, dtype=dtype, device=self._device, generator=self._generator
        )


def _generator(device: str, seed: int) -> torch.Generator | None:
    """Return a seeded generator; None for a device without one, such as a pretended GPU."""
    import torch

    try:
        return torch.Generator(device).manual_seed(seed)
    except RuntimeError:
        return None


def from_specs(
    function: Callable[..., Any], signature: inspect.Signature | None, options: InputOptions
) -> Arguments:
    """What the `--input` flags ask for; parameters that they do not name are generated."""
    draws = Draws(options)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for spec in [parse_spec(text) for text in options.specs]:
        if spec.name is None:
            args.append(draws.of_spec(spec))
        elif spec.name in kwargs:
            raise UsageError(f"--input {spec.text}: {spec.name}= is given twice")
        else:
            kwargs[spec.name] = draws.of_spec(spec)
    if args or signature is None:
        return Arguments(tuple(args), kwargs)
    return generate(function, signature, draws, options, kwargs)


def generate(
    function: Callable[..., Any],
    signature: inspect.Signature | None,
    draws: Draws,
    options: InputOptions,
    given: dict[str, Any],
) -> Arguments:
    """One tensor for each parameter that must be given and is not in `given`."""
    import torch

    if signature is None:
        raise UsageError(
            f"what {name_of(function)} takes cannot be read: give each argument with --input, "
            f"such as --input f32[N]"
        )
    required = must_be_given(signature, given)
    _refuse_what_cannot_be_generated(function, signature, required, given)
    dtype = getattr(torch, DTYPES[options.dtype]) if options.dtype else torch.get_default_dtype()
    args: list[torch.Tensor] = []
    kwargs = dict(given)
    order = [p for p in signature.parameters.values() if p.kind in POSITIONAL]
    for parameter in required:
        # After one that is given by name, the others have to be given by name too.
        if any(p.name in given for p in order[: order.index(parameter)]):
            kwargs[parameter.name] = draws.of_length(dtype)
        else:
            args.append(draws.of_length(dtype))
    return Arguments(tuple(args), kwargs)


def _refuse_what_cannot_be_generated(
    function: Callable[..., Any],
    signature: inspect.Signature,
    required: list[inspect.Parameter],
    given: dict[str, Any],
) -> None:
    by_hand = [p for p in required if p.kind not in POSITIONAL or not takes_tensor(p.annotation)]
    if by_hand:
        needs = ", ".join(f"{p.name}=..." for p in by_hand)
        raise UsageError(f"{name_of(function)} needs {needs}: {_how_to_give(by_hand)}")
    kinds = {p.kind: p.name for p in signature.parameters.values()}
    star = kinds.get(inspect.Parameter.VAR_POSITIONAL)
    # Called with nothing, such a function would do nothing, and be counted as that.
    if star is not None and not given and not any(kind in kinds for kind in POSITIONAL):
        raise UsageError(
            f"{name_of(function)} takes *{star}: say how many with --input, once for each, "
            f"such as --input f32[N] --input f32[N]"
        )


def _how_to_give(parameters: list[inspect.Parameter]) -> str:
    examples = [_example(p.annotation) for p in parameters]
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters):
        return "give every argument, in order, with --input"
    if any(example is None for example in examples):
        return "write make_inputs(n, device) in the file, or name a maker with --inputs"
    flags = (f"--input {p.name}={e}" for p, e in zip(parameters, examples, strict=True))
    return f"give {'it' if len(parameters) == 1 else 'them'} with {' '.join(flags)}"


def _example(annotation: Any) -> str | None:
    """Return a spec for a parameter with this annotation; None where no spec can make one."""
    if takes_tensor(annotation):
        return "f32[N]"
    parts = annotation.split("|") if isinstance(annotation, str) else alternatives(annotation)
    for part in parts:
        kind = typing.get_origin(part) or part
        name = (
            kind.partition("[")[0].strip()
            if isinstance(kind, str)
            else getattr(kind, "__name__", "")
        )
        if name in _EXAMPLES:
            return _EXAMPLES[name]
    return None
