"""From what a name leads to, to a callable: a module is built by its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kernelcount.errors import UsageError
from kernelcount.target.frames import user_code


def callable_of(value: Any, owner: Any, name: str, module: ModuleType) -> Callable[..., Any]:
    """Return what is to be called for `value`. Raises UsageError where nothing can be."""
    from torch import nn

    called: Callable[..., Any] = value
    if inspect.isclass(value):
        if not issubclass(value, nn.Module):
            raise UsageError(
                f"{name} is a class, but no nn.Module: name a function that makes one and uses it"
            )
        called = _build(value, name, module)
    elif inspect.isclass(owner) and _takes_self(owner, name):
        if not issubclass(owner, nn.Module):
            raise UsageError(
                f"{name} needs a {owner.__name__}: name a function that makes one and calls it"
            )
        outer, _, method = name.rpartition(".")
        called = getattr(_build(owner, outer, module), method)
    elif not callable(value):
        raise UsageError(
            f"{name} is a {type(value).__name__}, which cannot be called: "
            f"name a function or an nn.Module"
        )
    if inspect.iscoroutinefunction(called):
        raise UsageError(
            f"{name} is async, so calling it runs nothing: name a function that awaits it"
        )
    return called


def _takes_self(owner: type, name: str) -> bool:
    """Whether this is a method that needs an instance. A class may also be a mere namespace."""
    raw = inspect.getattr_static(owner, name.rpartition(".")[2], None)
    return inspect.isfunction(raw) and next(iter(inspect.signature(raw).parameters), "") == "self"


def _build(cls: type, name: str, module: ModuleType) -> Any:
    """Make an instance of an `nn.Module` class with its file's `get_init_inputs()`, if any."""
    signature = _signature(cls)
    make = vars(module).get("get_init_inputs")
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if callable(make):
        with user_code("get_init_inputs()", f"while {name} was built"):
            given = make()
        args, kwargs = _init_arguments(given, signature)
    _check_init(name, signature, args, kwargs, given=callable(make))
    with user_code(name, "while it was built"):
        return cls(*args, **kwargs)


def _signature(cls: type) -> inspect.Signature | None:
    try:
        return inspect.signature(cls)
    except (TypeError, ValueError):
        return None


def _init_arguments(
    given: Any, signature: inspect.Signature | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read a list of arguments, a dict of them, or ``[args, kwargs]`` where that fits."""
    if isinstance(given, dict):
        return (), given
    if not isinstance(given, list | tuple):
        raise UsageError(
            f"get_init_inputs() returned a {type(given).__name__}: return a list of arguments"
        )
    match given:
        case [list() | tuple() as args, dict() as kwargs]:
            # A class may also take a list and a dict: both forms are in use.
            if signature is None or _misfit(signature, tuple(args), kwargs) is None:
                return tuple(args), kwargs
    return tuple(given), {}


def _check_init(
    name: str,
    signature: inspect.Signature | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    given: bool,
) -> None:
    problem = None if signature is None else _misfit(signature, args, kwargs)
    if signature is None or problem is None:
        return
    if given:
        takes = ", ".join(signature.parameters)
        raise UsageError(f"get_init_inputs() does not fit {name}({takes}): {problem}")
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in variable
    ]
    raise UsageError(
        f"{name} needs {', '.join(needed)} to be built: define get_init_inputs() in the file,\n"
        f"a function that returns the list of them"
    )


def _misfit(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Why these arguments cannot be passed, or None."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None
