"""Make the arguments of a call: from specs such as ``f32[N]``, from a maker, or generated."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kernelcount.errors import UsageError, UserCodeError

if TYPE_CHECKING:
    import torch

DEFAULT_SIZE = 1_000_000
"""Elements in each generated input where no size is given, and what N stands for then."""

DTYPES: dict[str, str] = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
}
"""Short dtype -> torch's name for it."""

_SHORT = {long: short for short, long in DTYPES.items()}
_VALUES_OF = {"i8": 2**7, "i16": 2**15, "i32": 2**31, "i64": 2**63 - 1, "u8": 2**8}
_DEFAULT_BELOW = 10
_LARGEST = 2**63 - 1
_LONGEST_TEXT = 40
_SCALE = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_SIZE = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,4})?)([kKMG]?)")
_NAMED = re.compile(r"(?:([^\W\d]\w*)\s*=)?\s*(.*)", re.DOTALL)
_TENSOR = re.compile(r"(\w+)\s*\[(.*)\]\s*(?:<\s*(.+))?", re.DOTALL)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_EXAMPLES = {
    "bool": "True",
    "int": "3",
    "float": "3.0",
    "str": "\"'text'\"",
    "list": '"[1, 2]"',
    "tuple": '"(1, 2)"',
}


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


@dataclass(frozen=True, slots=True)
class Spec:
    """One `--input`, read: a tensor, or a Python value where `dtype` is None.

    `name` is the parameter's, None for one in order. `shape` holds (factor, power of N) for each
    dimension, so that ``4*N`` is (4, 1). Integers are drawn from 0 up to, not including, `below`.
    """

    text: str
    name: str | None = None
    dtype: str | None = None
    shape: tuple[tuple[int, int], ...] = ()
    below: int | None = None
    value: Any = None


# ── text to specs, without torch ─────────────────────────────────────────────────────────────────


def parse_size(text: str) -> int:
    """Read a count: ``1e8``, ``1_000_000``, ``64k`` or ``2M``; k, M and G are powers of 1000.

    Raises UsageError for whatever is not a whole number from 0 to 2**63 - 1.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a size: write a whole number such as 1e8, 1_000_000 or 64k"
        )
    number = Decimal(match[1].replace("_", "")) * _SCALE[match[2]]
    if number > _LARGEST:
        raise UsageError(f"{text!r} is too large for a size: the most is 2**63 - 1")
    if number != int(number):
        raise UsageError(
            f"{text!r} is not a whole number: write a size such as 1e8, 1_000_000 or 64k"
        )
    return int(number)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read sizes separated by commas. Raises UsageError where one of them is not a size."""
    return tuple(parse_size(part) for part in text.split(","))


def parse_spec(text: str) -> Spec:
    """Read one `--input`: ``f32[N,1024]``, ``i64[512]<1000``, ``mask=bool[N]``, ``3.0``.

    A dimension is a size, N, or a product of them such as ``4*N``; ``f32[]`` is a tensor without
    dimensions. Anything else is a Python literal. Raises UsageError that says what is wrong where.
    """
    match = _NAMED.fullmatch(text.strip())
    assert match is not None
    name, body = match[1], match[2].strip()
    tensor = _TENSOR.fullmatch(body)
    if tensor is None:
        return Spec(text, name, value=_parse_value(text, body))
    dtype = _known_dtype(tensor[1], f"--input {text}: ")
    dims = tensor[2].split(",") if tensor[2].strip() else []
    shape = tuple(_parse_dim(text, i, dim) for i, dim in enumerate(dims, 1))
    below = None if tensor[3] is None else _parse_below(text, dtype, tensor[3])
    return Spec(text, name, dtype, shape, below)


def _known_dtype(word: str, where: str) -> str:
    if word in DTYPES:
        return word
    near = [_SHORT[word]] if word in _SHORT else difflib.get_close_matches(word, DTYPES, 1, 0.5)
    hint = f"did you mean {near[0]}? There are" if near else "there are"
    raise UsageError(f"{where}there is no dtype {word}: {hint} {', '.join(DTYPES)}")


def _parse_dim(text: str, position: int, dim: str) -> tuple[int, int]:
    factor, power = 1, 0
    for part in (p.strip() for p in dim.split("*")):
        if part == "N":
            power += 1
            continue
        try:
            factor *= parse_size(part)
        except UsageError:
            raise UsageError(
                f"--input {text}: dimension {position} is {dim.strip()!r}, "
                f"but must be a whole number, N, or a product such as 4*N"
            ) from None
    return factor, power


def _parse_below(text: str, dtype: str, limit: str) -> int:
    if dtype not in _VALUES_OF:
        raise UsageError(
            f"--input {text}: <{limit} is for integers, and {dtype} is none: leave it out"
        )
    below = 0
    with suppress(UsageError):
        below = parse_size(limit)
    if not 1 <= below <= _VALUES_OF[dtype]:
        raise UsageError(
            f"--input {text}: after <, {dtype} needs a number from 1 to {_VALUES_OF[dtype]}"
        )
    return below


def _parse_value(text: str, body: str) -> Any:
    try:
        return ast.literal_eval(body)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    dtype, bracket, rest = body.partition("[")
    if body in DTYPES:
        problem = f"{body} needs a shape, such as {body}[N]"
    elif bracket and dtype.strip() in DTYPES:
        after = rest.rpartition("]")[2].strip()
        problem = (
            f"after ], {after!r} must be <LIMIT or nothing" if "]" in rest else "the ] is missing"
        )
    elif body.capitalize() in ("None", "True", "False"):
        problem = f"write {body.capitalize()}"
    else:
        problem = (
            f"{body!r} is neither a tensor such as f32[N,1024] "
            f"nor a Python value such as 3.0, None or 'text'"
        )
    raise UsageError(f"--input {text}: {problem}")


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


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
        _known_dtype(options.dtype, "--dtype: ")
    signature = _signature(function)
    if signature is not None and not signature.parameters and not options.specs:
        return Arguments((), {})  # a file's maker is for its other functions then
    if options.specs:
        arguments = _from_specs(function, signature, options)
        source, remedy = "--input", "give one --input for each argument"
    elif maker is not None:
        arguments = _from_maker(maker, options)
        source = f"{_name(maker)}()"
        remedy = "give --input for each argument, or name another maker with --inputs"
    else:
        return _generate(function, signature, _Draws(options), options, {})
    if signature is not None:
        _check_fit(f"{source} gives", _shown(function, signature), signature, arguments, remedy)
    return arguments


def heeds_size(
    function: Callable[..., Any], options: InputOptions, maker: Callable[..., Any] | None = None
) -> bool:
    """Whether `build` looks at the size: a spec has an N, a maker takes one, or one is generated.

    Of a maker that takes it, it is not known what it makes of it.
    """
    signature = _signature(function)
    specs = [parse_spec(text) for text in options.specs]
    if any(power for spec in specs for _, power in spec.shape):
        return True
    if maker is not None and not specs and takes_something(function):
        taken = _signature(maker)
        named = taken.parameters.values() if taken is not None else ()
        return any(p.name in ("n", "size") and p.kind in _BY_NAME for p in named)
    if signature is None or any(spec.name is None for spec in specs):
        return False
    return bool(_required(signature, {spec.name: None for spec in specs if spec.name}))


def takes_something(function: Callable[..., Any]) -> bool:
    """Whether a function has parameters, or may: a file's maker is called for such ones alone."""
    signature = _signature(function)
    return signature is None or bool(signature.parameters)


def find_maker(module: ModuleType) -> Callable[..., Any] | None:
    """Return the file's own `make_inputs`, else its `get_inputs`, else None."""
    makers = (vars(module).get(name) for name in ("make_inputs", "get_inputs"))
    return next((maker for maker in makers if callable(maker)), None)


def describe(arguments: Arguments) -> tuple[str, ...]:
    """Say what each argument is: ``f32[1000000]``, ``scale=2.0``, ``None``, ``list(2)``."""
    named = (f"{name}={_describe(value)}" for name, value in arguments.kwargs.items())
    return (*map(_describe, arguments.args), *named)


def _describe(value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        long = str(value.dtype).removeprefix("torch.")
        shape = "nested" if value.is_nested else ",".join(map(str, value.shape))
        return f"{_SHORT.get(long, long)}[{shape}]"
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + "...")
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"{type(value).__name__}({len(value)})"
    return type(value).__name__


# ── from specs and from the signature ────────────────────────────────────────────────────────────


class _Draws:
    """Random tensors on one device, from one generator."""

    def __init__(self, options: InputOptions) -> None:
        self._device = options.device
        self._size = DEFAULT_SIZE if options.size is None else options.size
        self._generator = _generator(options.device, options.seed)

    def of_spec(self, spec: Spec) -> Any:
        import torch

        if spec.dtype is None:
            return spec.value
        shape = tuple(factor * self._size**power for factor, power in spec.shape)
        if math.prod(shape) > _LARGEST:
            raise UsageError(
                f"--input {spec.text}: with N = {self._size} that has more than 2**63 elements"
            )
        return self.tensor(getattr(torch, DTYPES[spec.dtype]), shape, spec.below)

    def of_length(self, dtype: torch.dtype) -> torch.Tensor:
        return self.tensor(dtype, (self._size,))

    def tensor(
        self, dtype: torch.dtype, shape: tuple[int, ...], below: int | None = None
    ) -> torch.Tensor:
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


def _from_specs(
    function: Callable[..., Any], signature: inspect.Signature | None, options: InputOptions
) -> Arguments:
    draws = _Draws(options)
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
    return _generate(function, signature, draws, options, kwargs)


def _generate(
    function: Callable[..., Any],
    signature: inspect.Signature | None,
    draws: _Draws,
    options: InputOptions,
    given: dict[str, Any],
) -> Arguments:
    """One tensor for each parameter that must be given and is not in `given`."""
    import torch

    if signature is None:
        raise UsageError(
            f"what {_name(function)} takes cannot be read: give each argument with --input, "
            f"such as --input f32[N]"
        )
    required = _required(signature, given)
    _refuse_what_cannot_be_generated(function, signature, required, given)
    dtype = getattr(torch, DTYPES[options.dtype]) if options.dtype else torch.get_default_dtype()
    args: list[torch.Tensor] = []
    kwargs = dict(given)
    order = [p for p in signature.parameters.values() if p.kind in _POSITIONAL]
    for parameter in required:
        # After one that is given by name, the others have to be given by name too.
        if any(p.name in given for p in order[: order.index(parameter)]):
            kwargs[parameter.name] = draws.of_length(dtype)
        else:
            args.append(draws.of_length(dtype))
    return Arguments(tuple(args), kwargs)


def _required(signature: inspect.Signature, given: dict[str, Any]) -> list[inspect.Parameter]:
    return [
        p
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in _VARIABLE and p.name not in given
    ]


def _refuse_what_cannot_be_generated(
    function: Callable[..., Any],
    signature: inspect.Signature,
    required: list[inspect.Parameter],
    given: dict[str, Any],
) -> None:
    by_hand = [p for p in required if p.kind not in _POSITIONAL or not _takes_tensor(p.annotation)]
    if by_hand:
        needs = ", ".join(f"{p.name}=..." for p in by_hand)
        raise UsageError(f"{_name(function)} needs {needs}: {_how_to_give(by_hand)}")
    kinds = {p.kind: p.name for p in signature.parameters.values()}
    star = kinds.get(inspect.Parameter.VAR_POSITIONAL)
    # Called with nothing, such a function would do nothing, and be counted as that.
    if star is not None and not given and not any(kind in kinds for kind in _POSITIONAL):
        raise UsageError(
            f"{_name(function)} takes *{star}: say how many with --input, once for each, "
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
    if _takes_tensor(annotation):
        return "f32[N]"
    parts = annotation.split("|") if isinstance(annotation, str) else _alternatives(annotation)
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


def _takes_tensor(annotation: Any) -> bool:
    """Whether a parameter with this annotation may be given a tensor."""
    return any(_is_tensor(part) for part in _alternatives(annotation))


def _alternatives(annotation: Any) -> list[Any]:
    """Take an annotation apart where it stands for others: a union, an alias of a type."""
    origin = typing.get_origin(annotation)
    parts = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return [one for part in parts for one in _alternatives(part)]
    if origin is typing.Annotated:
        return _alternatives(parts[0])
    if isinstance(annotation, typing.TypeVar):
        return _alternatives(Any if annotation.__bound__ is None else annotation.__bound__)
    if hasattr(annotation, "__supertype__"):
        return _alternatives(annotation.__supertype__)
    return [annotation]


def _is_tensor(annotation: Any) -> bool:
    import torch

    if isinstance(annotation, typing.ForwardRef):
        return _text_takes_tensor(annotation.__forward_arg__)
    if isinstance(annotation, str):
        return _text_takes_tensor(annotation)
    if typing.get_origin(annotation) is not None:
        return False
    if annotation in (inspect.Parameter.empty, Any, object):
        return True
    if isinstance(annotation, type) and issubclass(annotation, torch.Tensor):
        return True
    # Shape annotations, such as jaxtyping's, are classes of their own: Float[Tensor, "n"].
    return _text_takes_tensor(getattr(annotation, "__name__", ""))


def _text_takes_tensor(text: str) -> bool:
    """Whether an annotation that could not be evaluated looks like a tensor's."""
    for part in text.split("|"):
        head, bracket, inside = part.strip().partition("[")
        word = head.strip("'\" ").rpartition(".")[2]
        if word in ("Any", "object") or re.fullmatch(r"\w*Tensor", word):
            return True
        # Float[Tensor, "n"] and Optional[Tensor], but not list[Tensor], which is no tensor.
        holds = ("list", "tuple", "dict", "sequence", "iterable", "mapping", "callable", "type")
        if bracket and word.lower() not in holds and re.search(r"\b\w*Tensor\b", inside):
            return True
    return False


# ── from a maker ─────────────────────────────────────────────────────────────────────────────────


def _from_maker(maker: Callable[..., Any], options: InputOptions) -> Arguments:
    import torch

    kwargs = _maker_arguments(maker, options)
    try:
        with _seeded(options.seed):
            result = maker(**kwargs)
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise UserCodeError(f"{_name(maker)}() called sys.exit({code})") from error
    arguments = _read_result(result, _name(maker))
    signature = _signature(maker)
    places_them = signature is not None and "device" in signature.parameters
    if places_them or torch.device(options.device).type == "cpu":
        return arguments
    # With its index: fake tensors cannot be moved to a "cuda" that this build of torch lacks.
    device = torch.empty(0, device=options.device).device
    moved: dict[int, torch.Tensor] = {}
    return Arguments(
        tuple(_moved(value, device, moved) for value in arguments.args),
        {name: _moved(value, device, moved) for name, value in arguments.kwargs.items()},
    )


def _maker_arguments(maker: Callable[..., Any], options: InputOptions) -> dict[str, Any]:
    """Return the arguments that a maker asks for by name, of those on offer."""
    import torch

    signature = _signature(maker)
    if signature is None:
        return {}
    size = DEFAULT_SIZE if options.size is None else options.size
    dtype = getattr(torch, DTYPES[options.dtype]) if options.dtype else torch.get_default_dtype()
    known = {"n": size, "size": size, "device": options.device, "dtype": dtype}
    asked = {"device"}
    asked |= {"n", "size"} if options.size is not None else set()
    asked |= {"dtype"} if options.dtype is not None else set()
    named = [p for p in signature.parameters.values() if p.kind not in _VARIABLE]
    required = [p for p in named if p.default is p.empty]
    lacking = [p.name for p in required if p.name not in known or p.kind is p.POSITIONAL_ONLY]
    if lacking:
        raise UsageError(
            f"{_name(maker)} needs {', '.join(lacking)}, but is called with those of n, size, "
            f"device and dtype that it takes, by name: give {', '.join(lacking)} a default"
        )
    given = {
        p.name: known[p.name]
        for p in named
        if p.kind is not p.POSITIONAL_ONLY and (p.name in asked or p in required)
    }
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        given["device"] = options.device
    return given


def _read_result(result: Any, name: str) -> Arguments:
    import torch

    match result:
        case (list() | tuple() as args, Mapping() as kwargs) if type(result) is tuple:
            pass
        case list() | tuple() as args:
            kwargs = {}
        case Mapping() as kwargs:
            args = ()
        case torch.Tensor():
            args, kwargs = (result,), {}
        case _:
            kind = "None" if result is None else f"a {type(result).__name__}"
            raise UsageError(
                f"{name}() returned {kind}: return a tuple of arguments, a dict of them by name, "
                f"or (args, kwargs)"
            )
    odd = [key for key in kwargs if not isinstance(key, str)]
    if odd:
        raise UsageError(
            f"{name}() returned a dict with the key {odd[0]!r}: keys are parameter names"
        )
    return Arguments(tuple(args), dict(kwargs))


def _moved(value: Any, device: torch.device, done: dict[int, torch.Tensor]) -> Any:
    """`value` with its CPU tensors on `device`; a tensor that occurs twice stays one tensor."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return value
        if id(value) not in done:
            done[id(value)] = _moved_tensor(value, device)
        return done[id(value)]
    if type(value) is list:
        return [_moved(v, device, done) for v in value]
    if type(value) is dict:
        return {k: _moved(v, device, done) for k, v in value.items()}
    if isinstance(value, tuple):
        parts = [_moved(v, device, done) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _moved_tensor(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    if not value.is_leaf:
        return value.to(device)
    # A leaf has to stay one: a plain copy of it would send its gradient to the CPU.
    return value.detach().to(device).requires_grad_(value.requires_grad)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch, and leave its RNG as it was. A GPU that is not in use yet is not started."""
    import torch

    state = torch.get_rng_state()
    gpus = [gpu for gpu in (torch.cuda, torch.xpu) if gpu.is_initialized()]
    gpu_states = [gpu.get_rng_state_all() for gpu in gpus]
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)
        for gpu, states in zip(gpus, gpu_states, strict=True):
            gpu.set_rng_state_all(states)


# ── signatures ───────────────────────────────────────────────────────────────────────────────────


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """Read what a call takes, annotations evaluated where they can be; None if unreadable."""
    called = _called(function)
    for evaluated in (True, False):
        # An annotation that is evaluated can raise anything: it stays text then.
        with suppress(Exception):
            return inspect.signature(called, eval_str=evaluated)
    return None


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the parameters of `function` are written: a module's are its forward's."""
    from torch import nn

    if isinstance(function, functools.partial):
        return functools.partial(_called(function.func), *function.args, **function.keywords)
    if isinstance(function, nn.Module):
        return _uncompiled(function).forward  # type: ignore[no-any-return]
    return function


def _uncompiled(module: Any) -> Any:
    """Undo torch.compile's wrapping of a module: the wrapper's own forward takes anything."""
    while (inner := vars(module).get("_modules", {}).get("_orig_mod")) is not None:
        module = inner
    return module


def _name(function: Any) -> str:
    from torch import nn

    if isinstance(function, nn.Module):
        return type(_uncompiled(function)).__name__
    if isinstance(function, functools.partial):
        return _name(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def _shown(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """Show how `function` is called: names and markers, without annotations and defaults."""
    bare = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _DOTS)
        for p in signature.parameters.values()
    ]
    return f"{_name(function)}{inspect.Signature(bare)}"


class _Dots:
    def __repr__(self) -> str:
        return "..."


_DOTS = _Dots()


def check_fit(function: Callable[..., Any], arguments: Arguments) -> None:
    """Refuse arguments, made for another function, that `function` does not take.

    Raises UsageError; nothing where the signature cannot be read.
    """
    if (signature := _signature(function)) is not None:
        remedy = "an implementation takes what the target takes"
        shown = _shown(function, signature)
        _check_fit("the target gets", shown, signature, arguments, remedy)


def _check_fit(
    source: str, shown: str, signature: inspect.Signature, arguments: Arguments, remedy: str
) -> None:
    """Raise a UsageError where the call would be a TypeError."""
    try:
        signature.bind(*arguments.args, **arguments.kwargs)
    except TypeError as error:
        problems = _misfits(signature, arguments) or [f"does not take that ({error})"]
        given = _given(arguments)
        raise UsageError(
            f"{source} {given} but {shown} {' and '.join(problems)}: {remedy}"
        ) from None


def _given(arguments: Arguments) -> str:
    places = ", ".join(f"x{i}" for i in range(len(arguments.args)))
    parts = [f"({places})"] if arguments.args else []
    parts += [f"{name}=" for name in arguments.kwargs]
    return ", ".join(parts) or "nothing"


def _misfits(signature: inspect.Signature, arguments: Arguments) -> list[str]:
    """Say what is missing, too much, unknown or given twice, each as the end of a sentence."""
    parameters = signature.parameters.values()
    kinds = {p.kind for p in parameters}
    places = [p.name for p in parameters if p.kind in _POSITIONAL]
    names = {
        p.name for p in parameters if p.kind not in _VARIABLE and p.kind is not p.POSITIONAL_ONLY
    }
    count = len(arguments.args)
    filled = set(places[:count])
    missing = [
        p.name if p.kind in _POSITIONAL else f"{p.name}=..."
        for p in _required(signature, {})
        if p.name not in filled and p.name not in names.intersection(arguments.kwargs)
    ]
    unknown = [f"{name}=" for name in arguments.kwargs if name not in names]
    twice = [name for name in arguments.kwargs if name in filled & names]
    problems = [f"needs {', '.join(missing)}"] if missing else []
    if count > len(places) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        plural = "" if len(places) == 1 else "s"
        problems.append(f"takes {len(places) or 'no'} positional argument{plural}, not {count}")
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        problems.append(f"takes no {', '.join(unknown)}")
    if twice:
        problems.append(f"gets {', '.join(twice)} twice")
    return problems
