"""Adapter to what torch.compile is set to: its stance, its default backend, its configurations.

torch has no public way to ask for the most of it. Where a torch lacks one of the names that stand
here, that setting is neither asked for nor put back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

from kernelcount.settings import Switch

NAMES = (
    "torch.compiler.config",
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch.fx.experimental._config",
)
"""The modules of torch that hold what its compiler is set to, limits of recompiling among them."""

_IN_PLACE = (list, dict, set)  # they may be changed without being set
_HELD = "user_override"


def switches() -> list[Switch]:
    """How the stance of torch.compile, its backend and its configurations are read and set."""
    return [*stance(), *_backend(), *_configs()]


@contextmanager
def kept() -> Iterator[None]:
    """Put back what torch.compile is set to now, whatever is set meanwhile."""
    before = [(get, put, get()) for get, put in switches()]
    try:
        yield
    finally:
        for get, put, value in before:
            if get() != value:
                put(value)


def stance() -> list[Switch]:
    """How the stance of torch.compile is read and set."""
    try:
        from torch._dynamo import eval_frame

        put = eval_frame._set_stance
        eval_frame._stance  # noqa: B018
    except (ImportError, AttributeError):
        return []
    return [(lambda: eval_frame._stance, put)]


def _backend() -> list[Switch]:
    """The one that compiles where none is named; not every torch has it."""
    from torch import compiler

    get = getattr(compiler, "get_default_backend", None)
    return [] if get is None else [(get, compiler.set_default_backend)]


def _configs() -> list[Switch]:
    found: list[Switch] = []
    for name in NAMES:
        try:
            config = _Config(import_module(name))
            config.read()
        except (ImportError, AttributeError):
            continue
        found.append((config.read, config.put_back))
    return found


class _Config:
    """One of the modules: what has been set in it, read in some microseconds.

    This is asked around every batch of calls that is timed. torch's own copy of a configuration
    takes a millisecond.
    """

    def __init__(self, module: Any) -> None:
        from torch.utils import _config_module

        self._unset = _config_module._UNSET_SENTINEL
        self._module = module
        # An alias is kept where it leads to.
        self._entries = {n: e for n, e in module._config.items() if e.alias is None}
        self._gets = [self._get(entry) for entry in self._entries.values()]

    def _get(self, entry: Any) -> Callable[[], Any]:
        """In torch 2.11 it is set for the process, in later ones for a thread."""
        held = entry.user_override
        return held.get if isinstance(held, ContextVar) else partial(getattr, entry, _HELD)

    def read(self) -> list[Any]:
        """What each entry is set to; lists and the like as copies of their own."""
        values = [get() for get in self._gets]
        for i, entry in enumerate(self._entries.values()):
            if type(values[i]) in _IN_PLACE:
                # Who reads a list sets it to a copy of the default: that is no change.
                own = values[i] != entry.default
                values[i] = copy(values[i]) if own else self._unset
        return values

    def put_back(self, values: list[Any]) -> None:
        """Set again what is set to something else now."""
        now = self.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who changed one that is deprecated was told
            for name, value, other in zip(self._entries, values, now, strict=True):
                if value is self._unset is not other:
                    self._clear(name)
                    # So that the module takes note of the change.
                    setattr(self._module, name, getattr(self._module, name))
                    self._clear(name)
                elif value != other:
                    new = copy(value) if type(value) in _IN_PLACE else value
                    setattr(self._module, name, new)

    def _clear(self, name: str) -> None:
        entry = self._entries[name]
        if isinstance(entry.user_override, ContextVar):
            entry.user_override.set(self._unset)
        else:
            setattr(entry, _HELD, self._unset)
