"""What a spec says: a file or a module, and a name in it."""

from __future__ import annotations

import ast
import difflib
from contextlib import suppress
from pathlib import Path

from kernelcount import scenarios
from kernelcount.errors import NotMeasuredError, UsageError

MAKERS = ("make_inputs", "get_inputs", "get_init_inputs")
_SHOWN = 5  # names in a message


def split(spec: str) -> tuple[str, str]:
    """The place and the dotted name of a spec. Raises UsageError that says how to write one."""
    place, colon, name = spec.rpartition(":")
    if not colon or "/" in name or name.endswith(".py"):
        place, name = spec, ""
    if not place:
        raise UsageError(f"{spec!r} names no module: write path/to/file.py:{name or 'NAME'}")
    if not name:
        place = place.rstrip(":")
        names = _functions_in(Path(place))
        has = f" (it has {listed(names)})" if names else ""
        write = f"{place}:{names[0] if names else 'NAME'}"
        raise UsageError(f"{spec} does not say which function: write {write}{has}")
    if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
        raise UsageError(f"{name!r} is not a name: write path/to/file.py:NAME or module:NAME")
    return place, name


def _functions_in(path: Path) -> list[str]:
    """Name the functions and classes of a file, without running it; none if unreadable."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    defined = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [n for n in defined if not n.startswith("_") and n not in MAKERS]


def file_named(place: str, name: str) -> Path | None:
    """Return the file that `place` is, or None where it is a module's name."""
    path = Path(place)
    if "/" not in place and path.suffix != ".py":
        return None
    if path.suffix == ".py" and path.is_file():
        return path.resolve()
    if path.suffix == ".py":
        stems = [p.name for p in sorted(path.parent.glob("*.py"))]
        near = difflib.get_close_matches(path.name, stems, n=1)
        hint = (
            f": did you mean {path.with_name(near[0])}?" if near else f" (looked in {Path.cwd()})"
        )
        if path.parent.name == "scenarios" and (own := of_the_scenarios(path.stem)):
            hint = f" here: the one that comes with kernelcount is {own}"
        raise UsageError(f"there is no file {place}{hint}")
    if path.is_dir():
        raise UsageError(
            f"{place} is a folder: name a file in it, as {place.rstrip('/')}/FILE.py:{name}"
        )
    if path.with_name(path.name + ".py").is_file():
        raise UsageError(f"there is no file {place}: write {place}.py:{name}")
    raise UsageError(f"{place} is not a Python file: write path/to/file.py:{name}")


def of_the_scenarios(name: str) -> Path | None:
    """The file of that name among the scenarios, which a copy of another one of them needs."""
    with suppress(NotMeasuredError):
        path = scenarios.folder() / f"{name}.py"
        return path if path.is_file() else None
    return None


def listed(names: list[str]) -> str:
    """The first few names, in words."""
    return ", ".join(names if len(names) <= _SHOWN else [*names[:_SHOWN], "..."])
