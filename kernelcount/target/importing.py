"""From a place to a module: imported once, as the package module it is or by location."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.target.frames import is_foreign, is_in_torch, user_code
from kernelcount.target.places import of_the_scenarios

_modules: dict[Path, ModuleType] = {}
"""The files imported by path, so that naming a file twice runs it once."""


def import_file(path: Path, shown: str) -> ModuleType:
    """Import the file at a resolved path, once: as the package module it is, or by location."""
    import torch  # noqa: F401  # before the user's folders are on the path

    sys.argv = [str(path)]
    if path not in _modules:
        packaged = (path.parent / "__init__.py").is_file()
        with _importing(shown):
            _modules[path] = _import_in_package(path) if packaged else _import_alone(path)
    return _modules[path]


def import_module(dotted: str, name: str) -> ModuleType:
    """Import a module by name, with the current directory counting as on the import path."""
    import torch  # noqa: F401  # before the user's folders are on the path

    if not all(part.isidentifier() for part in dotted.split(".")):
        raise UsageError(f"{dotted!r} is not a module's name: write path/to/file.py:{name}")
    _append_to_path(Path.cwd())
    local = _local_file(dotted)
    if local is not None and not _is_found_here(dotted):
        return import_file(local.resolve(), dotted)
    sys.argv = [dotted if local is None else str(local)]
    with _importing(dotted, dotted):
        module = importlib.import_module(dotted)
    sys.argv = [getattr(module, "__file__", None) or dotted]
    return module


@contextmanager
def _importing(shown: str, module: str | None = None) -> Iterator[None]:
    """Turn what goes wrong in an import into our errors. `module`: the name asked for, if any."""
    with user_code(shown, "while it was imported"):
        try:
            yield
        except ModuleNotFoundError as error:
            # One that was raised by hand may carry no name: it is the user's own exception then.
            if not error.name:
                raise
            missing, name = _not_installed(error, module, shown), error.name
        else:
            return
    # Triton comes with torch where there is a GPU: elsewhere it is no mistake that it is not there.
    raise (NotMeasuredError if name.partition(".")[0] == "triton" else UsageError)(missing)


def _not_installed(error: ModuleNotFoundError, asked: str | None, shown: str) -> str:
    name = error.name or ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_foreign(f)]
    in_torch = is_in_torch()
    of_user = [f for f in frames if not in_torch(f)]
    if asked is not None and not frames and (asked + ".").startswith(name + "."):
        return (
            f"there is no module {name}: it is neither in {Path.cwd()}\n"
            f"nor installed for {sys.executable}. A file is named as path/to/file.py:NAME"
        )
    file = Path(of_user[-1].filename) if of_user else Path(shown)
    who = f"{file.parent.name}/{file.name}" if file.name == "__init__.py" else file.name
    top = name.partition(".")[0]
    if top != name and top in sys.modules:
        return f"{who} imports {name}, which the {top} installed here does not have"
    if neighbour := of_the_scenarios(name):
        what = "which is a file of kernelcount's scenarios"
        return f"{who} imports {name}, {what}: copy {neighbour} beside it"
    return f"{who} imports {name}, which is not installed here: install it for {sys.executable}"


def _local_file(dotted: str) -> Path | None:
    """Find a module's file in the current directory, a package before a module as in Python."""
    base = Path.cwd().joinpath(*dotted.split("."))
    files = (base / "__init__.py", base.with_suffix(".py"))
    return next((f for f in files if f.is_file()), None)


def _is_found_here(dotted: str) -> bool:
    """Whether an import finds the current directory's module: not where another one shadows it."""
    top = dotted.partition(".")[0]
    here = Path.cwd().resolve()
    origin = _origin(top)
    return origin is None or origin in (here / top / "__init__.py", here / f"{top}.py")


def _import_alone(path: Path) -> ModuleType:
    _append_to_path(path.parent)
    return _execute(_free_name(path.stem, path), path)


def _import_in_package(path: Path) -> ModuleType:
    """Import a package's module by its full name, so that relative imports work."""
    root = path.parent
    while root.name.isidentifier() and (root.parent / "__init__.py").is_file():
        root = root.parent
    _append_to_path(root.parent)
    start = root / "__init__.py"
    package = _execute(_free_name(root.name, start), start)
    if path == start:
        return package
    folders = path.parent.relative_to(root).parts
    parent = ".".join((package.__name__, *folders))
    if path.name == start.name:
        return importlib.import_module(parent)
    importlib.import_module(parent)
    dotted = f"{parent}.{path.stem}"
    if path.stem.isidentifier() and _origin(dotted) == path:
        return importlib.import_module(dotted)
    return _execute(f"{parent}.{_mangled(path.stem, path)}", path)


def _execute(name: str, path: Path) -> ModuleType:
    """Run the file at `path` as the module `name`, unless it is loaded already."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses with string annotations and pickle look the module up by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return sys.modules.get(name, module)


def _free_name(stem: str, path: Path) -> str:
    """`stem`, unless a module of that name is or could be imported from elsewhere."""
    if stem.isidentifier() and stem not in sys.stdlib_module_names:
        origin = _origin(stem)
        if origin == path or (origin is None and stem not in sys.modules):
            return stem
    return _mangled(stem, path)


def _mangled(stem: str, path: Path) -> str:
    # The same in every process, so that a pickle or a cache of one is of use in the next.
    return f"_kernelcount_{re.sub(r'[^0-9A-Za-z]', '_', stem)}_{zlib.crc32(str(path).encode()):08x}"


def _origin(name: str) -> Path | None:
    """Return the file that importing `name` gives; None for nothing and for a namespace package."""
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
        is_namespace = file is None and hasattr(sys.modules[name], "__path__")
        return None if is_namespace else Path(file or "built-in").resolve()
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve()


def _append_to_path(folder: Path) -> None:
    # At the end: siblings can be imported, the standard library and torch cannot be shadowed.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
