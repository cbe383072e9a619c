"""From a module to what a dotted name leads to."""

from __future__ import annotations

import difflib
from types import ModuleType
from typing import Any

from kernelcount.errors import UsageError
from kernelcount.target.frames import user_code
from kernelcount.target.places import MAKERS, listed

_MISSING = object()


def find(module: ModuleType, name: str, place: str) -> tuple[Any, Any]:
    """Return the object in which a dotted name was found, and the object that it leads to."""
    owner: Any = module
    value: Any = module
    parts = name.split(".")
    for i, part in enumerate(parts):
        owner = value
        # A module may compute its attributes, and what computes them is the user's code.
        with user_code(place, f"while {name} was looked up"):
            value = getattr(owner, part, _MISSING)
        if value is _MISSING:
            raise UsageError(
                _no_such_name(owner, module, part, ":".join((place, ".".join(parts[:i]))))
            )
    return owner, value


def _no_such_name(owner: Any, module: ModuleType, part: str, where: str) -> str:
    where = where.rstrip(":")
    public = {n: v for n, v in _attributes(owner).items() if not n.startswith("_") and callable(v)}
    by_lower = {n.lower(): n for n in public}
    near = difflib.get_close_matches(part.lower(), by_lower, n=3)
    if near:
        names = " or ".join(by_lower[n] for n in near)
        return f"{where} has no {part}: did you mean {names}?"
    home = module.__name__
    own = [
        n
        for n, v in public.items()
        if getattr(v, "__module__", None) == home or owner is not module
    ]
    own = [n for n in own if n not in MAKERS] or [n for n in public if n not in MAKERS]
    if not own:
        return f"{where} has no {part}, and nothing else that can be called"
    return f"{where} has no {part}. It has {listed(own)}"


def _attributes(owner: Any) -> dict[str, Any]:
    return dict(vars(owner)) if hasattr(owner, "__dict__") else {}
