"""What a function takes, and whether arguments fit it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kernelcount.errors import UsageError
from kernelcount.inputs.arguments import Arguments

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
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


def name_of(function: Any) -> str:
    """How a function, or the class of a module, is called."""
    from torch import nn

    if isinstance(function, nn.Module):
        return type(_uncompiled(function)).__name__
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def must_be_given(signature: inspect.Signature, given: dict[str, Any]) -> list[inspect.Parameter]:
    """The parameters without a default that are not in `given`."""
    return [
        p
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in VARIABLE and p.name not in given
    ]


def as_called(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """Show how `function` is called: names and markers, without annotations and defaults."""
    bare = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _DOTS)
        for p in signature.parameters.values()
    ]
    return f"{name_of(function)}{inspect.Signature(bare)}"


class _Dots:
    def __repr__(self) -> str:
        return "..."


_DOTS = _Dots()


def check_fit(function: Callable[..., Any], arguments: Arguments) -> None:
    """Refuse arguments, made for another function, that `function` does not take.

    Raises UsageError; nothing where the signature cannot be read.
    """
    if (signature := signature_of(function)) is not None:
        remedy = "an implementation takes what the target takes"
        shown = as_called(function, signature)
        refuse_misfit("the target gets", shown, signature, arguments, remedy)


def refuse_misfit(
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
    places = [p.name for p in parameters if p.kind in POSITIONAL]
    names = {
        p.name for p in parameters if p.kind not in VARIABLE and p.kind is not p.POSITIONAL_ONLY
    }
    count = len(arguments.args)
    filled = set(places[:count])
    missing = [
        p.name if p.kind in POSITIONAL else f"{p.name}=..."
        for p in must_be_given(signature, {})
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
