"""Ways to run the target: eager, compile, another implementation. One row each in `VARIANTS`."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from kernelcount.errors import UsageError

Function = Callable[..., Any]

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""torch.compile's modes, from its documentation."""

_FLAGS: dict[str, tuple[str, Any]] = {
    **{mode: ("mode", mode) for mode in MODES},
    "fullgraph": ("fullgraph", True),
    "dynamic": ("dynamic", True),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the target. `name` is spelt as the user spelt it.

    `kind` names its row in `VARIANTS`; `options` are torch.compile's; `spec` is the other
    implementation's ``module:function``.
    """

    name: str
    kind: str
    options: tuple[tuple[str, Any], ...] = ()
    spec: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of variant: `apply` wraps the function, `during` holds while it is called."""

    summary: str
    apply: Callable[[Function, Variant], Function]
    during: Callable[[], AbstractContextManager[Any]]
    compiles: bool = False


def _as_it_is(function: Function, _: Variant) -> Function:
    return function


def _compiled(function: Function, variant: Variant) -> Function:
    import torch

    compiled: Function = torch.compile(function, **dict(variant.options))
    return compiled


def _force_eager() -> AbstractContextManager[Any]:
    """Eager means eager, also where the function is compiled already or calls something that is."""
    import torch

    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


VARIANTS: dict[str, Kind] = {
    "eager": Kind("plain PyTorch, op by op", _as_it_is, _force_eager),
    "compile": Kind("torch.compile; compile:MODE, fullgraph, dynamic, backend=NAME",
                    _compiled, nullcontext, compiles=True),
    "module:function": Kind("another implementation of the same", _as_it_is, nullcontext),
}  # fmt: skip

DEFAULT = ("eager", "compile")


def parse(text: str) -> Variant:
    """The variant that `text` names. Raises UsageError with the nearest name."""
    head, colon, rest = text.partition(":")
    if head == "eager" and not colon:
        return Variant(text, "eager")
    if head == "compile":
        return Variant(text, "compile", _options(rest.split(",") if colon else [], text))
    if colon and head and rest:
        return Variant(text, "module:function", spec=text)
    near = difflib.get_close_matches(text, VARIANTS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"--variant {text!r} is not eager, compile, compile:OPTION or module:function{hint}"
    )


def parse_all(texts: tuple[str, ...]) -> tuple[Variant, ...]:
    """The variants asked for, or eager and compile. Raises UsageError where one stands twice."""
    if twice := next((t for i, t in enumerate(texts) if t in texts[:i]), None):
        raise UsageError(f"--variant {twice} stands twice")
    return tuple(parse(text) for text in texts or DEFAULT)


def check_backend(variant: Variant) -> None:
    """Raise UsageError where torch knows no backend of the name that `variant` asks for.

    The user's module may register one, so this is for after its import.
    """
    import torch

    name = dict(variant.options).get("backend")
    known = torch.compiler.list_backends(exclude_tags=())
    if name is None or name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    shown = ", ".join(sorted(torch.compiler.list_backends()))  # without those for debugging
    raise UsageError(f"--variant {variant.name}: torch knows no backend {name}, but {shown}{hint}")


def _options(words: list[str], text: str) -> tuple[tuple[str, Any], ...]:
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key == "backend" and equals and value:
            name, setting = "backend", value
        elif word in _FLAGS:
            name, setting = _FLAGS[word]
        else:
            known = [*_FLAGS, "backend=NAME"]
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--variant {text}: {word!r} is not one of {', '.join(known)}{hint}")
        if name in options:
            raise UsageError(f"--variant {text}: {name} is given twice")
        options[name] = setting
    return tuple(options.items())
