"""Dataclasses that are frozen to the last attribute."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import NoReturn, TypeVar

_Class = TypeVar("_Class")


def sealed(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass that says so of every attribute, by FrozenInstanceError.

    With slots, the standard library's raises TypeError for one that is no field (Python 3.10 to
    3.13): what it asks is whether the class is the one of before the slots.
    """

    def fixed(_: object, name: str, __: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def kept(_: object, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    cls.__setattr__ = fixed  # type: ignore[method-assign]
    cls.__delattr__ = kept  # type: ignore[method-assign]
    return cls
