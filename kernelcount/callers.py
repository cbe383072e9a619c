"""Whose line of code something happened at: the user's innermost frame."""

from __future__ import annotations

import os
import re
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

_OURS = Path(__file__).parent
_WHO_CALLS = "kernelcount.capture"  # the module that calls the user's function: all above is ours
_LIBRARIES = ("torch", "triton")
_GENERATED = "torch._inductor."  # so begin the names of the modules that Inductor writes
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+(?:_\d+)?$")  # what follows a break
_SCENARIOS = "kernelcount._scenarios"


class Site(NamedTuple):
    """A line of the user's; `file` relative to the current folder where it lies below it.

    `compiled`: what happened is in code that Inductor wrote, and the line is that which runs it.
    """

    file: str
    line: int
    function: str
    compiled: bool = False


def site(frame: FrameType | None) -> Site | None:
    """The innermost frame from `frame` outwards that is the user's.

    Where the user's function stands in an installed package, the innermost one of a package other
    than torch; None where there is neither, as in a backward pass that we started.
    """
    installed: FrameType | None = None
    compiled = False
    while frame is not None and frame.f_globals.get("__name__") != _WHO_CALLS:
        if not _is_librarys(frame):
            if is_users(frame.f_code.co_filename):
                return _site(frame, compiled)
            if installed is None and not _is_standard(frame.f_code.co_filename):
                installed = frame
        compiled = compiled or _name(frame).startswith(_GENERATED)
        frame = frame.f_back
    return None if installed is None else _site(installed, compiled)


@lru_cache(maxsize=1024)
def is_users(file: str) -> bool:
    """Whether a file is neither Python's, nor an installed package's, nor ours."""
    path = Path(file)
    if path.is_relative_to(_OURS):
        return path.is_relative_to(_OURS / "_scenarios")
    return not _is_standard(file) and not _is_installed(file)


def _site(frame: FrameType, compiled: bool) -> Site:
    code = frame.f_code
    line = frame.f_lineno or code.co_firstlineno  # what Dynamo writes may stand at no line
    function = _RESUMED.sub(r"\1", code.co_name)
    return Site(_shown(code.co_filename), line, function, compiled)


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _shown(file: str) -> str:
    try:
        return str(Path(file).relative_to(os.getcwd()))  # noqa: PTH109  it may be gone
    except (ValueError, OSError):
        return file


def is_ours(frame: FrameType) -> bool:
    """Whether the code is kernelcount's; a scenario stands for the user's."""
    name = _name(frame)
    return name.partition(".")[0] == "kernelcount" and not name.startswith(_SCENARIOS)


def _is_librarys(frame: FrameType) -> bool:
    """Whether the code is torch's, Triton's or ours; Inductor's bears a name of torch's."""
    return _name(frame).partition(".")[0] in _LIBRARIES or is_ours(frame)


def _is_standard(file: str) -> bool:
    if file.startswith("<"):
        return True
    return _is_below(file, "stdlib", "platstdlib") and not _is_installed(file)


def _is_installed(file: str) -> bool:
    """Whether it lies where packages are installed, those of a user or of a distribution too."""
    named = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return bool(named) or _is_below(file, "purelib", "platlib")


def _is_below(file: str, *names: str) -> bool:
    folders = sysconfig.get_paths()
    return any(Path(file).is_relative_to(folders[name]) for name in names)
