"""Whose line of code something happened at: a kernel's, a graph break's, a wait's, by one rule.

It is the innermost frame whose file is the user's. Never the user's are the files of torch, of
Triton, of Python and of kernelcount, but for the scenarios that come with it, and code that lies in
no file or that Inductor wrote. All else is: a library that is installed and calls torch, such as
transformers, counts as the user's code, since its lines are what runs.

What is taken down bears the name of the file as Python has it. `seen_from_here` cuts the names
once, of the outcomes that a report is made of: the user's code may have changed its own folder.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from traceback import FrameSummary
from types import FrameType
from typing import NamedTuple

from kernelcount.model import Beside, Capture, Origin, Outcome, Place, Provenance

_OURS = Path(__file__).parent.parent
_SCENARIOS = _OURS / "_scenarios"  # in the wheel they lie inside of the package
_WHO_CALLS = str(_OURS / "capture") + os.sep  # what calls the user's function
_LIBRARIES = ("torch", "functorch", "triton")  # functorch comes with torch
_LETS_BE = "torch._dynamo.eval_frame"  # whose wrapper calls what is not to be compiled
_GENERATED = "torch._inductor."  # so begin the names of the modules that Inductor writes
# How Dynamo names the part of a function that goes on after a break: torch/_dynamo/resume_execution
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+(?:_\d+)?$")
# What the code calls that Dynamo writes: a graph, and the part that goes on after a break.
_DYNAMOS = ("__compiled_fn_", "__resume_at_")


class Site(NamedTuple):
    """A line of the user's.

    `compiled`: what happened is in code that Inductor wrote, and the line is that which runs it.
    """

    file: str
    line: int
    function: str
    compiled: bool = False


def site(frame: FrameType | None) -> Site | None:
    """The innermost line of the user's from `frame` outwards, as far as the call that is counted.

    None where there is none, as in a backward pass that we started.
    """
    compiled = False
    while frame is not None and not calls_the_user(frame.f_code.co_filename):
        generated = is_generated(frame)
        if not generated and is_users(frame.f_code.co_filename):
            code = frame.f_code
            return Site(code.co_filename, line_of(frame), plain(code.co_name), compiled)
        compiled = compiled or generated
        frame = frame.f_back
    return None


def line_of(frame: FrameType) -> int:
    """The line that a frame is at; of what Dynamo wrote to make ready for a break, the break's.

    Dynamo has an f-string, or what else it had put off, done by code of its own right before the
    instruction at which it stopped. That code bears no line, or the one that the function, or the
    rest of it, begins at (assemble in torch/_dynamo/bytecode_transformation.py).
    """
    code, line = frame.f_code, frame.f_lineno
    unplaced: tuple[int | None, ...] = (None, code.co_firstlineno)
    if line in unplaced and any(name.startswith(_DYNAMOS) for name in code.co_names):
        behind = (at for start, _, at in code.co_lines() if start > frame.f_lasti)
        line = next((at for at in behind if at not in unplaced), line)
    return line or code.co_firstlineno


def first_of_user(frames: Iterable[Place]) -> Place | None:
    """The first of the frames, innermost first, whose file is the user's; None where none is."""
    return next((frame for frame in frames if is_users(frame.file)), None)


def innermost(frames: Sequence[FrameSummary]) -> FrameSummary:
    """The innermost frame whose file is the user's; where none is, the innermost.

    `frames` are those from the outside in, one at the least.
    """
    return next((f for f in reversed(frames) if is_users(f.filename)), frames[-1])


def acting(frame: FrameType | None) -> FrameType | None:
    """The innermost frame from `frame` outwards that is not Python's own library's, nor in no file.

    None where there is none inside of the call that is counted. Dynamo's frame around a function
    that it lets be acts for whoever called that function.
    """
    while frame is not None and not calls_the_user(frame.f_code.co_filename):
        file = frame.f_code.co_filename
        passes_on = frame.f_globals.get("__name__") == _LETS_BE
        if not (passes_on or file.startswith("<") or _is_pythons(Path(file))):
            return frame
        frame = frame.f_back
    return None


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is neither torch's, Triton's, Python's nor ours, nor no file at all."""
    path = Path(file)
    if path.is_relative_to(_SCENARIOS):
        return True
    if file.startswith("<") or is_ours(file):
        return False
    return not any(map(path.is_relative_to, _libraries())) and not _is_pythons(path)


@lru_cache(maxsize=1024)
def is_users_own(file: str) -> bool:
    """Whether a file is the user's, and no library's that is installed."""
    own = Path(file).is_relative_to(_SCENARIOS) or not _is_installed(Path(file))
    return own and is_users(file)


@lru_cache(maxsize=1024)
def is_ours(file: str) -> bool:
    """Whether a file is kernelcount's; a scenario stands for the user's."""
    path = Path(file)
    return path.is_relative_to(_OURS) and not path.is_relative_to(_SCENARIOS)


def is_generated(frame: FrameType) -> bool:
    """Whether the code is Inductor's, or was written by it, in files that are nobody's."""
    return str(frame.f_globals.get("__name__", "")).startswith(_GENERATED)


def calls_the_user(file: str) -> bool:
    """Whether it is a file of ours that calls the user's function: nothing further out is of it."""
    return file.startswith(_WHO_CALLS)


def plain(function: str) -> str:
    """The name that the user gave a function, a part of which goes on after a graph break."""
    while (match := _RESUMED.match(function)) is not None:
        function = match[1]
    return function


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    """The folders of torch and of what it is made with; nothing is imported to tell."""
    specs = filter(None, map(find_spec, _LIBRARIES))
    return tuple(folder for s in specs for folder in s.submodule_search_locations or ())


def _is_pythons(path: Path) -> bool:
    return _is_below(path, "stdlib", "platstdlib") and not _is_installed(path)


def _is_installed(path: Path) -> bool:
    """Whether it lies where packages are installed, those of a user or of a distribution too."""
    named = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(named) or _is_below(path, "purelib", "platlib")


def _is_below(path: Path, *names: str) -> bool:
    folders = sysconfig.get_paths()
    return any(path.is_relative_to(folders[name]) for name in names)


def seen_from_here(outcome: Outcome) -> Outcome:
    """The outcome with files relative to the current folder where they are inside of it."""
    if isinstance(outcome, Capture):
        return _capture(outcome, _here())
    return replace(outcome, seen=outcome.seen and _capture(outcome.seen, _here()))


def beside_seen_from_here(beside: Beside) -> Beside:
    """The same of a count on paper beside what was measured."""
    provenance = beside.provenance and _provenance(beside.provenance, _here())
    return replace(beside, outcome=seen_from_here(beside.outcome), provenance=provenance)


def from_here(file: str) -> str:
    """The name of a file relative to the current folder, where it is inside of it."""
    return _cut(file, _here())


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  it may be gone
    except OSError:
        return ""  # no file with a whole name is inside of it


def _capture(capture: Capture, folder: str) -> Capture:
    again, waits = capture.recompilations, capture.syncs
    return replace(
        capture,
        provenance=capture.provenance and _provenance(capture.provenance, folder),
        breaks=capture.breaks
        and tuple(replace(b, file=_cut(b.file, folder)) for b in capture.breaks),
        recompilations=again and tuple(replace(r, file=_cut(r.file, folder)) for r in again),
        syncs=waits and tuple(replace(s, file=s.file and _cut(s.file, folder)) for s in waits),
    )


def _provenance(known: Provenance, folder: str) -> Provenance:
    def origin(of: Origin) -> Origin:
        return replace(of, place=of.place and place(of.place))

    def place(at: Place) -> Place:
        return replace(at, file=_cut(at.file, folder))

    return replace(
        known,
        sources=tuple(
            s and replace(s, origins=tuple(map(origin, s.origins))) for s in known.sources
        ),
        traced=tuple(map(place, known.traced)),
        hidden=tuple(map(place, known.hidden)),
    )


@lru_cache(maxsize=4096)
def _cut(file: str, folder: str) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
