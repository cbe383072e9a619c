"""The files that hold budgets: which they are, and what is in them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from kernelcount.budgets import nodes
from kernelcount.budgets.budget import Budget, Reader
from kernelcount.budgets.nodes import Mapping, Node, Scalar
from kernelcount.errors import UsageError

FOLDER = "scenarios"
SUFFIXES = (".yaml", ".yml")


def find(paths: Sequence[Path]) -> list[Path]:
    """The files that may hold budgets: those named, and those in the folders named.

    By default those under ``scenarios/`` and those in the current folder. Raises UsageError for a
    path that there is not.
    """
    if not paths:
        found = _in_folder(Path(FOLDER)) if Path(FOLDER).is_dir() else []
        here = [p for p in sorted(Path().iterdir()) if p.suffix in SUFFIXES and p.is_file()]
        return [*found, *here]
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += _in_folder(path)
        elif path.exists():
            files.append(path)
        else:
            raise UsageError(f"there is no file or folder {path}{_near(path)}")
    return list(dict.fromkeys(files))


def _near(path: Path) -> str:
    folder = path.parent
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {folder / near[0]}?" if near else ""


def _in_folder(folder: Path) -> list[Path]:
    every = sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    return [p for p in every if not any(x[0] == "." for x in p.relative_to(folder).parts)]


def load(paths: Sequence[Path]) -> tuple[Budget, ...]:
    """The budgets in these files and folders; see `find`.

    In a folder, a YAML file that names neither a target nor a budget is another program's, and
    passed over. Raises UsageError with what is wrong in each of the files.
    """
    named = {p for p in paths if not p.is_dir()}
    budgets: list[Budget] = []
    problems: list[str] = []
    for path in find(paths):
        try:
            budgets += read(path, named=path in named)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    if not budgets:
        where = ", ".join(map(str, paths)) or f"{FOLDER}/ and the current folder"
        raise UsageError(
            f"there is no budget in {where}: docs/budgets.md shows what one looks like"
        )
    return tuple(budgets)


def read(path: Path, *, named: bool = True) -> list[Budget]:
    """The budgets of one file: a document, a list of them, or several. Raises UsageError.

    A file that is not `named` may be another program's: then there is none in it.
    """
    try:
        found = _nodes(path)
    except UsageError:
        if named or _looks_like_one(path):
            raise
        return []
    if not named and not any(_is_one(n) for n in found):
        return []
    if not found:
        raise UsageError(f"{path}:1:1: the file is empty: no budget is in it")
    return [Reader(path).budget(node) for node in found]


def is_anothers(path: Path) -> bool:
    """Whether a YAML file is another program's: something is in it, and nothing of a budget."""
    try:
        found = _nodes(path)
    except UsageError:
        return not _looks_like_one(path)
    return bool(found) and not any(_is_one(n) for n in found)


def _nodes(path: Path) -> list[Node]:
    """What may be budgets in a file. Raises UsageError for what cannot be read."""
    found: list[Node] = []
    for document in nodes.read(path, str(path)):
        found += document.items if isinstance(document, nodes.Sequence) else [document]
    return [n for n in found if not (isinstance(n, Scalar) and n.is_null)]


def _is_one(node: Node) -> bool:
    return isinstance(node, Mapping) and bool({"target", "budget"} & set(node.items))


def _looks_like_one(path: Path) -> bool:
    """Whether a file that is no YAML was to be a budget; one that cannot be opened may be."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return re.search(r"^[\s-]*(target|budget)\s*:", text, re.MULTILINE) is not None
