"""Find what is to be counted: ``package.module:name`` or ``path/to/file.py:name`` -> a callable."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelcount import scenarios
from kernelcount.errors import NotMeasuredError, UsageError, UserCodeError

_PACKAGE = Path(__file__).resolve().parent
_MAKERS = ("make_inputs", "get_inputs", "get_init_inputs")
_SHOWN = 5  # names in a message
_MISSING = object()

_modules: dict[Path, ModuleType] = {}
"""The files imported by path, so that naming a file twice runs it once."""


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
    place, name = _split(spec)
    file = _file_named(place, name)
    module = _import_module(place, name) if file is None else _import_file(file, place)
    owner, value = _find(module, name, place)
    return Loaded(spec, name, _callable(value, owner, name, module), module)


def check(spec: str) -> None:
    """Refuse what can be told of a spec without importing anything. Raises UsageError."""
    place, name = _split(spec)
    _file_named(place, name)


def user_traceback(error: BaseException) -> str:
    """Return the traceback of `error` with the user's frames alone, without a final newline.

    Frames of kernelcount, of importlib and of torch are left out, in chained exceptions too. Where
    nothing of the user's would stay, torch's frames are shown. The last line is always the
    exception; a SyntaxError shows its file, line and caret.
    """
    whole = traceback.TracebackException.from_exception(error)
    chain = _chain(whole)
    in_torch = _is_in_torch()
    of_user = any(_is_foreign(f) and not in_torch(f) for e in chain for f in e.stack)
    for link in chain:
        kept = [f for f in link.stack if _is_foreign(f) and not (of_user and in_torch(f))]
        link.stack = traceback.StackSummary.from_list(kept)
        if not kept:
            # The formatter writes a heading above an empty stack, but not where there is none.
            link.stack = None  # type: ignore[assignment]
    return "".join(whole.format()).rstrip("\n")


def _chain(error: traceback.TracebackException) -> list[traceback.TracebackException]:
    """`error` and all that is shown with it: what it was raised from, or holds as a group."""
    links: list[traceback.TracebackException] = []
    waiting = [error]
    while waiting:
        link = waiting.pop()
        links.append(link)
        context = None if link.__suppress_context__ else link.__context__
        inner = [link.__cause__, context, *(getattr(link, "exceptions", None) or ())]
        waiting += [e for e in inner if e is not None]
    return links


def _is_foreign(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is neither ours nor the import machinery's."""
    if frame.filename.startswith("<frozen importlib"):
        return False
    path = Path(frame.filename)
    # The scenarios are installed inside the package, yet they stand for the user's code.
    ours = path.is_relative_to(_PACKAGE) and not path.is_relative_to(_PACKAGE / "_scenarios")
    return not ours and not path.is_relative_to(Path(importlib.__file__).parent)


def _is_in_torch() -> Callable[[traceback.FrameSummary], bool]:
    torch = sys.modules.get("torch")
    home = getattr(torch, "__file__", None)
    if home is None:
        return lambda _: False
    folder = Path(home).parent
    return lambda frame: Path(frame.filename).is_relative_to(folder)


@contextmanager
def _user_code(what: str, doing: str) -> Iterator[None]:
    """Turn what the user's code raises into a UserCodeError. `doing` follows "sys.exit()"."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise UserCodeError(f"{what} called sys.exit({code}) {doing}") from error
    except BaseException as error:  # pytest's skip and the like are no Exception
        raise UserCodeError(user_traceback(error)) from error


# ── from the spec to a module ────────────────────────────────────────────────────────────────────


def _split(spec: str) -> tuple[str, str]:
    place, colon, name = spec.rpartition(":")
    if not colon or "/" in name or name.endswith(".py"):
        place, name = spec, ""
    if not place:
        raise UsageError(f"{spec!r} names no module: write path/to/file.py:{name or 'NAME'}")
    if not name:
        place = place.rstrip(":")
        names = _functions_in(Path(place))
        has = f" (it has {_listed(names)})" if names else ""
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
    return [n for n in defined if not n.startswith("_") and n not in _MAKERS]


def _file_named(place: str, name: str) -> Path | None:
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
        if path.parent.name == "scenarios" and (own := _of_the_scenarios(path.stem)):
            hint = f" here: the one that comes with kernelcount is {own}"
        raise UsageError(f"there is no file {place}{hint}")
    if path.is_dir():
        raise UsageError(
            f"{place} is a folder: name a file in it, as {place.rstrip('/')}/FILE.py:{name}"
        )
    if path.with_name(path.name + ".py").is_file():
        raise UsageError(f"there is no file {place}: write {place}.py:{name}")
    raise UsageError(f"{place} is not a Python file: write path/to/file.py:{name}")


@contextmanager
def _importing(shown: str, module: str | None = None) -> Iterator[None]:
    """Turn what goes wrong in an import into our errors. `module`: the name asked for, if any."""
    with _user_code(shown, "while it was imported"):
        try:
            yield
        except ModuleNotFoundError as error:
            # One that was raised by hand may carry no name: it is the user's own exception then.
            if not error.name:
                raise
            missing = _not_installed(error, module, shown)
        else:
            return
    raise UsageError(missing)


def _not_installed(error: ModuleNotFoundError, asked: str | None, shown: str) -> str:
    name = error.name or ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_foreign(f)]
    in_torch = _is_in_torch()
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
    if neighbour := _of_the_scenarios(name):
        what = "which is a file of kernelcount's scenarios"
        return f"{who} imports {name}, {what}: copy {neighbour} beside it"
    return f"{who} imports {name}, which is not installed here: install it for {sys.executable}"


def _of_the_scenarios(name: str) -> Path | None:
    """The file of that name among the scenarios, which a copy of another one of them needs."""
    with suppress(NotMeasuredError):
        path = scenarios.folder() / f"{name}.py"
        return path if path.is_file() else None
    return None


def _import_file(path: Path, shown: str) -> ModuleType:
    """Import the file at a resolved path, once: as the package module it is, or by location."""
    import torch  # noqa: F401  # before the user's folders are on the path

    sys.argv = [str(path)]
    if path not in _modules:
        packaged = (path.parent / "__init__.py").is_file()
        with _importing(shown):
            _modules[path] = _import_in_package(path) if packaged else _import_alone(path)
    return _modules[path]


def _import_module(dotted: str, name: str) -> ModuleType:
    """Import a module by name, with the current directory counting as on the import path."""
    import torch  # noqa: F401  # before the user's folders are on the path

    if not all(part.isidentifier() for part in dotted.split(".")):
        raise UsageError(f"{dotted!r} is not a module's name: write path/to/file.py:{name}")
    _append_to_path(Path.cwd())
    local = _local_file(dotted)
    if local is not None and not _is_found_here(dotted):
        return _import_file(local.resolve(), dotted)
    sys.argv = [dotted if local is None else str(local)]
    with _importing(dotted, dotted):
        module = importlib.import_module(dotted)
    sys.argv = [getattr(module, "__file__", None) or dotted]
    return module


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


# ── from the module to a callable ────────────────────────────────────────────────────────────────


def _find(module: ModuleType, name: str, place: str) -> tuple[Any, Any]:
    """Return the object in which a dotted name was found, and the object that it leads to."""
    owner: Any = module
    value: Any = module
    parts = name.split(".")
    for i, part in enumerate(parts):
        owner = value
        # A module may compute its attributes, and what computes them is the user's code.
        with _user_code(place, f"while {name} was looked up"):
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
    own = [n for n in own if n not in _MAKERS] or [n for n in public if n not in _MAKERS]
    if not own:
        return f"{where} has no {part}, and nothing else that can be called"
    return f"{where} has no {part}. It has {_listed(own)}"


def _listed(names: list[str]) -> str:
    return ", ".join(names if len(names) <= _SHOWN else [*names[:_SHOWN], "..."])


def _attributes(owner: Any) -> dict[str, Any]:
    return dict(vars(owner)) if hasattr(owner, "__dict__") else {}


def _callable(value: Any, owner: Any, name: str, module: ModuleType) -> Callable[..., Any]:
    """Return what is to be called for `value`. Raises UsageError where nothing can be."""
    from torch import nn

    called: Callable[..., Any] = value
    if inspect.isclass(value):
        if not issubclass(value, nn.Module):
            raise UsageError(
                f"{name} is a class, but no nn.Module: name a function that makes one and uses it"
            )
        called = _build(value, name, module)
    elif inspect.isclass(owner) and _takes_self(owner, name):
        if not issubclass(owner, nn.Module):
            raise UsageError(
                f"{name} needs a {owner.__name__}: name a function that makes one and calls it"
            )
        outer, _, method = name.rpartition(".")
        called = getattr(_build(owner, outer, module), method)
    elif not callable(value):
        raise UsageError(
            f"{name} is a {type(value).__name__}, which cannot be called: "
            f"name a function or an nn.Module"
        )
    if inspect.iscoroutinefunction(called):
        raise UsageError(
            f"{name} is async, so calling it runs nothing: name a function that awaits it"
        )
    return called


def _takes_self(owner: type, name: str) -> bool:
    """Whether this is a method that needs an instance. A class may also be a mere namespace."""
    raw = inspect.getattr_static(owner, name.rpartition(".")[2], None)
    return inspect.isfunction(raw) and next(iter(inspect.signature(raw).parameters), "") == "self"


def _build(cls: type, name: str, module: ModuleType) -> Any:
    """Make an instance of an `nn.Module` class with its file's `get_init_inputs()`, if any."""
    signature = _signature(cls)
    make = vars(module).get("get_init_inputs")
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if callable(make):
        with _user_code("get_init_inputs()", f"while {name} was built"):
            given = make()
        args, kwargs = _init_arguments(given, signature)
    _check_init(name, signature, args, kwargs, given=callable(make))
    with _user_code(name, "while it was built"):
        return cls(*args, **kwargs)


def _signature(cls: type) -> inspect.Signature | None:
    try:
        return inspect.signature(cls)
    except (TypeError, ValueError):
        return None


def _init_arguments(
    given: Any, signature: inspect.Signature | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read a list of arguments, a dict of them, or ``[args, kwargs]`` where that fits."""
    if isinstance(given, dict):
        return (), given
    if not isinstance(given, list | tuple):
        raise UsageError(
            f"get_init_inputs() returned a {type(given).__name__}: return a list of arguments"
        )
    match given:
        case [list() | tuple() as args, dict() as kwargs]:
            # A class may also take a list and a dict: both forms are in use.
            if signature is None or _misfit(signature, tuple(args), kwargs) is None:
                return tuple(args), kwargs
    return tuple(given), {}


def _check_init(
    name: str,
    signature: inspect.Signature | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    given: bool,
) -> None:
    problem = None if signature is None else _misfit(signature, args, kwargs)
    if signature is None or problem is None:
        return
    if given:
        takes = ", ".join(signature.parameters)
        raise UsageError(f"get_init_inputs() does not fit {name}({takes}): {problem}")
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in variable
    ]
    raise UsageError(
        f"{name} needs {', '.join(needed)} to be built: define get_init_inputs() in the file,\n"
        f"a function that returns the list of them"
    )


def _misfit(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Why these arguments cannot be passed, or None."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None
