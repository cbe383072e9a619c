"""Whose line it is: of the frames of a stack, the innermost that is neither torch's nor ours.

A library that calls torch, such as transformers, counts as the user's: its lines are what runs.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from kernelcount.model import Place

_PLUMBING = ("torch", "triton", "kernelcount")
_SCENARIOS = "_scenarios"  # in the wheel they lie inside of the package


def first_of_user(frames: Iterable[Place]) -> Place | None:
    """The first of the frames, innermost first, whose file is the user's; None where none is."""
    return next((frame for frame in frames if is_users(frame.file)), None)


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is neither torch's, nor Python's own, nor ours, nor no file at all."""
    if file.startswith("<"):
        return False
    path = Path(file)
    ours = Path(__file__).parent
    if path.is_relative_to(ours / _SCENARIOS):
        return True
    folders = _packages()
    if any(path.is_relative_to(folder) for folder in folders):
        return False
    names = sysconfig.get_paths()
    inside = [n for n in ("purelib", "platlib") if path.is_relative_to(names[n])]
    own = any(path.is_relative_to(names[n]) for n in ("stdlib", "platstdlib"))
    return bool(inside) or not own


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """The folders of torch, of what it is made with, and ours; nothing is imported to tell."""
    folders = []
    for name in _PLUMBING:
        spec = find_spec(name)
        folders += list(spec.submodule_search_locations or ()) if spec else []
    return tuple(folders)
