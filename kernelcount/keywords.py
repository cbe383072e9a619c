"""What each keyword of the Python API takes. What is no such value is refused in the same words.

Ranges, names and what excludes what are the command line's affair: `app.check_options` has them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real

from kernelcount.errors import KernelcountError, UsageError, UserCodeError

_LONGEST = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class _Taken:
    """Values that a keyword takes: in words, and by a test."""

    words: str
    test: Callable[[object], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_named(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _are_specs(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(spec, str) for spec in value)


def _a_name(example: str) -> _Taken:
    return _Taken(f"a string such as {example!r}", lambda v: v is None or isinstance(v, str))


_YES_OR_NO = _Taken("True or False", lambda v: isinstance(v, bool))
_SECONDS = _Taken("a number of seconds", _is_number)

_TAKEN: dict[str, _Taken] = {
    "kwargs": _Taken("a dict of keyword arguments by name", lambda v: v is None or _are_named(v)),
    "variant": _Taken("a name such as 'compile', or a function",
                      lambda v: isinstance(v, str) or callable(v)),
    "variants": _Taken("a list such as ['eager', 'compile'] of names and functions",
                       lambda v: isinstance(v, list | tuple)),
    "device": _a_name("cuda:0"),
    "gpu": _a_name("H200"),
    "backward": _YES_OR_NO,
    "no_grad": _YES_OR_NO,
    "evaluate": _YES_OR_NO,
    "seconds": _SECONDS,
    "reference": _YES_OR_NO,
    "cold": _YES_OR_NO,
    "size": _Taken("a number, or a string such as '64k'",
                   lambda v: v is None or isinstance(v, str) or _is_number(v)),
    "inputs": _Taken("a list of specs such as ['f32[N]']", _are_specs),
    "maker": _Taken("a function, or the name of one",
                    lambda v: v is None or isinstance(v, str) or callable(v)),
    "dtype": _a_name("bf16"),
    "seed": _Taken("a whole number", lambda v: isinstance(v, Integral) and _is_number(v)),
    "timeout": _Taken(_SECONDS.words, lambda v: v is None or _is_number(v)),
    "update": _YES_OR_NO,
    "allow_undecided": _YES_OR_NO,
    "region": _a_name("forward"),
    "path": _Taken("the path of a file", lambda v: isinstance(v, str | os.PathLike)),
}  # fmt: skip


def check(**given: object) -> None:
    """Raise UsageError, with what to give instead, for the first value that is not of its kind."""
    for name, value in given.items():
        if not _TAKEN[name].test(value):
            raise UsageError(f"{name}: give {_TAKEN[name].words}, not {shown(value)}")


_FLAGS = {"input": "inputs", "inputs": "maker", "no-grad": "no_grad", "eval": "evaluate"}
"""Flags of the command line that are not called as their keywords are."""

_FLAG = re.compile(
    r"(?<!\S)--("
    + "|".join(sorted({*_TAKEN, *_FLAGS} - {"kwargs", "path", "maker"}, key=len, reverse=True))
    + r")(?![\w-])"
)


def named(text: str) -> str:
    """What the command line says of its flags, said of the keywords."""
    return _FLAG.sub(lambda flag: _FLAGS.get(flag[1], flag[1]), text)


@contextmanager
def spoken_of() -> Iterator[None]:
    """Have errors that are raised inside speak of keywords, whatever the user's own code says."""
    try:
        yield
    except UserCodeError:
        raise
    except KernelcountError as error:
        error.args = (named(str(error)), *error.args[1:])
        raise


def shown(value: object) -> str:
    """A value in a few words, whatever its own text is like."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  it is the user's
        text = ""
    short = 0 < len(text) <= _LONGEST and text.isprintable()
    return text if short else f"what is of the type {type(value).__name__}"
