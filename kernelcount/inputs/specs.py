"""Text to specs, without torch: sizes, and what one `--input` says."""

from __future__ import annotations

import ast
import difflib
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kernelcount.errors import UsageError

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

SHORT = {long: short for short, long in DTYPES.items()}
_VALUES_OF = {"i8": 2**7, "i16": 2**15, "i32": 2**31, "i64": 2**63 - 1, "u8": 2**8}

LARGEST = 2**63 - 1

_SCALE = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_SIZE = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,4})?)([kKMG]?)")
_NAMED = re.compile(r"(?:([^\W\d]\w*)\s*=)?\s*(.*)", re.DOTALL)
_TENSOR = re.compile(r"(\w+)\s*\[(.*)\]\s*(?:<\s*(.+))?", re.DOTALL)


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
    if number > LARGEST:
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
    dtype = known_dtype(tensor[1], f"--input {text}: ")
    dims = tensor[2].split(",") if tensor[2].strip() else []
    shape = tuple(_parse_dim(text, i, dim) for i, dim in enumerate(dims, 1))
    below = None if tensor[3] is None else _parse_below(text, dtype, tensor[3])
    return Spec(text, name, dtype, shape, below)


def known_dtype(word: str, where: str) -> str:
    """The same word. Raises UsageError, with the nearest, where it is no key of DTYPES."""
    if word in DTYPES:
        return word
    near = [SHORT[word]] if word in SHORT else difflib.get_close_matches(word, DTYPES, 1, 0.5)
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
