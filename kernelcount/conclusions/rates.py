"""What GPUs were measured to reach, kept in the user's cache folder: no torch is needed to read it.

One JSON file holds an entry for each GPU and version of torch. It is written whole or not at all;
of two processes that keep at once, the later one may drop the entry of the other, which is then
measured again. What is no such file, or is damaged, is neither believed nor written over.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path

import msgspec

from kernelcount.errors import KernelcountError, UnreadableError, UsageError
from kernelcount.model import Rates

PRECISIONS = ("f32", "tf32", "bf16", "f16", "f64")
"""Of matrix products, as `Rates.matmul` names them."""

FIGURES = (
    "copy", "copy_l2", *(f"matmul.{p}" for p in PRECISIONS), "launch_ns", "eager_ns",
    "module_ns", "compiled_ns",
)  # fmt: skip
"""The names of all that is measured."""

VERSION = 1
_NAME = "rates.json"
_LARGEST = 1 << 20  # bytes; an entry takes one or two thousand


class _File(msgspec.Struct):
    kernelcount_rates: int
    rates: list[Rates]


def kept(device: str, torch: str) -> Rates | None:
    """What was kept of the GPU and the version that `model.Environment` names so; None: nothing.

    Nothing is raised: a file that cannot be read or believed holds nothing.
    """
    try:
        there = _load(file())
    except KernelcountError:
        return None
    return next((r for r in there if (r.device, r.torch) == (device, torch)), None)


def keep(rates: Rates) -> Path:
    """Put `rates` in the place of what was kept for the same GPU and torch; the file it is in.

    Raises UnreadableError where the file is not one of ours, UsageError where it cannot be written.
    """
    path = file()
    others = [r for r in _load(path) if (r.device, r.torch) != (rates.device, rates.torch)]
    data = msgspec.json.format(msgspec.json.encode(_File(VERSION, [*others, rates])), indent=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data + b"\n")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return path


def figures(rates: Rates) -> dict[str, float | None]:
    """All figures by name, in the order of `FIGURES`."""
    products = {f"matmul.{precision}": value for precision, value in rates.matmul}
    return {f: products.get(f) if "." in f else getattr(rates, f) for f in FIGURES}


def with_figures(rates: Rates, found: Mapping[str, float]) -> Rates:
    """`rates` with these figures, by name; those that are not there are unknown."""
    products = tuple((p, found[f"matmul.{p}"]) for p in PRECISIONS if f"matmul.{p}" in found)
    return replace(
        rates,
        copy=found.get("copy"),
        copy_l2=found.get("copy_l2"),
        matmul=products,
        launch_ns=found.get("launch_ns"),
        eager_ns=found.get("eager_ns"),
        module_ns=found.get("module_ns"),
        compiled_ns=found.get("compiled_ns"),
    )


def from_plain(value: object) -> Rates:
    """The rates of which this is what `dataclasses.asdict` makes, in JSON or out of it."""
    return msgspec.convert(value, Rates)


def file() -> Path:
    """Where rates are kept, there or not: ``$KERNELCOUNT_CACHE``, else the user's cache folder.

    That is ``$XDG_CACHE_HOME/kernelcount`` or ``~/.cache/kernelcount`` (XDG Base Directory
    Specification, by which a relative path there is ignored), ``~/Library/Caches`` on macOS (Apple,
    File System Programming Guide), and ``%LOCALAPPDATA%`` on Windows. Raises UsageError where none
    of them is known.
    """
    if own := os.environ.get("KERNELCOUNT_CACHE"):
        return _absolute(Path(own)) / _NAME
    asked = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if asked and Path(asked).is_absolute():
        return Path(asked) / "kernelcount" / _NAME
    try:
        home = Path.home()
    except RuntimeError:
        raise UsageError("there is no home folder: KERNELCOUNT_CACHE names another") from None
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return caches / "kernelcount" / _NAME


def _absolute(folder: Path) -> Path:
    try:
        return folder.absolute()
    except OSError:
        raise UsageError(f"KERNELCOUNT_CACHE={folder}: the current folder is gone") from None


def _load(path: Path) -> list[Rates]:
    """All that is kept; nothing where there is no file. Raises UnreadableError for another file."""
    try:
        if not path.exists():
            return []
        # A pipe would be waited for, and a file of gigabytes is none of ours.
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise UnreadableError(_foreign(path))
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("kernelcount_rates")
        if version is None or bytes(version).strip() != str(VERSION).encode():
            raise UnreadableError(_foreign(path))
        there = msgspec.json.decode(data, type=_File).rates
    except (msgspec.DecodeError, RecursionError):
        raise UnreadableError(_foreign(path)) from None
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    if not all(map(_possible, there)):
        raise UnreadableError(_foreign(path))
    return there


def _foreign(path: Path) -> str:
    return f"{path} is damaged, or not of this kernelcount: it is not used; delete or move it"


def _possible(rates: Rates) -> bool:
    """Whether such figures can have been measured: an unknown one is missing, never zero."""
    values = [rates.multiprocessors, *figures(rates).values()]
    return all(value is None or (isfinite(value) and value > 0) for value in values)


def _replace(path: Path, data: bytes) -> None:
    """Write the file beside its place and move it there, so that nobody ever reads half of it."""
    descriptor, beside = tempfile.mkstemp(prefix=f"{_NAME}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        Path(beside).replace(path)
    except OSError:
        with suppress(OSError):
            Path(beside).unlink()
        raise
