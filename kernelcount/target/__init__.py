"""Find what is to be counted: ``package.module:name`` or ``path/to/file.py:name`` -> a callable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kernelcount.target.building import callable_of
from kernelcount.target.finding import find
from kernelcount.target.frames import user_traceback
from kernelcount.target.importing import import_file, import_module
from kernelcount.target.places import file_named, split

__all__ = ["Loaded", "check", "load", "user_traceback"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A target that can be called.

    `spec` is what the user wrote, `name` the dotted name after the colon, `function` what is
    called, `module` the module of the file. An `nn.Module` stays on the device and in the mode in
    which the user's code left it.
    """

    spec: str
    name: str
    function: Callable[..., Any]
    module: ModuleType


def load(spec: str) -> Loaded:
    """Import the module that `spec` names and find the callable in it.

    `sys.argv` is the module's file from here on: the user's argument parser must not see our
    flags. A file is imported once in a process, however often it is loaded; an `nn.Module` class
    is built on each call, with the `get_init_inputs()` of its file.

    Raises UsageError where `spec` does not lead to a callable, UserCodeError where the user's code
    raises or exits while it is imported or built. KeyboardInterrupt passes through.
    """
    place, name = split(spec)
    file = file_named(place, name)
    module = import_module(place, name) if file is None else import_file(file, place)
    owner, value = find(module, name, place)
    return Loaded(spec, name, callable_of(value, owner, name, module), module)


def check(spec: str) -> None:
    """Refuse what can be told of a spec without importing anything. Raises UsageError."""
    place, name = split(spec)
    file_named(place, name)
