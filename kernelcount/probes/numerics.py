"""Whether a variant computes the same: its results, and what it changed, beside another's.

Tolerances are those of torch.testing.assert_close by dtype (its documentation has the table); a
unit in the last place (ULP) is the distance of two neighbouring numbers of the dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan
from typing import TYPE_CHECKING, Any

from kernelcount.model import Numerics
from kernelcount.nesting import leaves

if TYPE_CHECKING:
    import torch

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute tolerance: torch.testing.assert_close; any other dtype must be equal."""

_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}

_PIECE = 1 << 24
"""Elements that are compared at once: 128 MB of float64, whatever the size of the whole."""


@dataclass(frozen=True)
class Results:
    """What a call gave and changed, in copies that no later call can change.

    `numbers`: Python's own among what it gave. `shared`: which of the tensors that it gave lie in
    the memory of an argument.
    """

    tensors: tuple[torch.Tensor, ...]
    numbers: tuple[complex, ...] = ()
    shared: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Pair:
    """How two tensors of one shape and dtype differ."""

    equal: bool
    close: bool
    absolute: float
    relative: float
    ulps: int | None
    nan: int
    misplaced: bool


def compare(expected: Sequence[Any], got: Sequence[Any]) -> Numerics:
    """Hold tensors and numbers against those of the first variant, in order.

    Nothing to compare is no pass: the verdict is ``nothing`` then.
    """
    if len(expected) != len(got):
        return Numerics("different", 0, notes=(f"{len(got)} results instead of {len(expected)}",))
    if not expected:
        return Numerics("nothing", 0)
    pairs: list[_Pair] = []
    notes: dict[str, None] = {}
    for one, other in zip(expected, got, strict=True):
        unlike = _unlike(one, other)
        if unlike:
            return Numerics("different", len(expected), notes=(unlike,))
        pairs.append(_pair(one, other))
        notes |= dict.fromkeys(_layout(one, other))
    nan = sum(p.nan for p in pairs)
    if any(p.misplaced for p in pairs):
        notes["NaN or inf in other places"] = None
    elif nan:
        notes[f"{nan} NaN in the same places"] = None
    verdict = "equal" if all(p.equal for p in pairs) else "close"
    if not all(p.close for p in pairs):
        verdict = "different"
    ulps = [p.ulps for p in pairs if p.ulps is not None]
    return Numerics(
        verdict,  # type: ignore[arg-type]
        len(pairs),
        max(p.absolute for p in pairs),
        max(p.relative for p in pairs),
        max(ulps, default=None),
        tuple(notes),
    )


def compare_results(expected: Results, got: Results) -> Numerics:
    """Hold tensors, Python's numbers and who shares memory with an argument against the first's.

    Numbers are held to the tolerance of float32: they may have come out of any tensor.
    """
    found = compare(expected.tensors, got.tensors)
    notes = [*found.notes, *_sharing(expected, got)]
    unlike = [
        f"{other!r} instead of {one!r}"
        for one, other in zip(expected.numbers, got.numbers, strict=False)
        if not _is_near(one, other)
    ]
    if len(expected.numbers) != len(got.numbers):
        unlike.append(f"{len(got.numbers)} numbers instead of {len(expected.numbers)}")
    if unlike:
        return replace(found, verdict="different", notes=(*notes, unlike[0]))
    if expected.numbers and found.verdict == "nothing":
        notes.append(f"no tensor; {len(got.numbers)} of Python's numbers agree")
    return replace(found, notes=tuple(notes))


def _is_near(one: complex, other: complex) -> bool:
    parts = ((one.real, other.real), (one.imag, other.imag))
    relative, absolute = TOLERANCES["float32"]
    return all(
        isclose(a, b, rel_tol=relative, abs_tol=absolute) or (isnan(a) and isnan(b))
        for a, b in parts
    )


def _sharing(expected: Results, got: Results) -> list[str]:
    notes = []
    for i in sorted({*expected.shared, *got.shared}):
        what = f"result {i + 1}" if len(got.tensors) > 1 else "the result"
        shares = f"{what} shares memory with an argument"
        if i in expected.shared and i in got.shared:
            notes.append(shares)
        else:
            notes.append(
                f"{shares} here alone" if i in got.shared else f"{shares} in the first alone"
            )
    return notes


def error(reference: Sequence[torch.Tensor], got: Sequence[torch.Tensor]) -> float | None:
    """The largest distance from the same in float64, relative to the largest number there.

    None where there is nothing to compare, or the two are not of one shape.
    """
    worst: float | None = None
    if len(reference) != len(got):
        return None
    for exact, other in zip(reference, got, strict=True):
        if exact.shape != other.shape:
            return None
        if not _is_inexact(other) or not other.numel():
            continue
        known = exact.isfinite() & other.isfinite()
        away = (exact[known] - other[known].to(exact.dtype)).abs()
        size = exact[known].abs()
        if away.numel():
            found = float(away.max()) / max(float(size.max()), sys.float_info.min)
            worst = found if worst is None else max(worst, found)
    return worst


def with_reference(found: Numerics, base: float | None, own: float | None, dtype: str) -> Numerics:
    """The comparison with how far both are from the truth.

    What differs by more than the dtype's tolerance for each number, where numbers cancel, is still
    right if it is no further from the truth than the first, or within the tolerance of the largest
    number.
    """
    if base is None or own is None:
        return found
    relative = TOLERANCES.get(dtype, (0.0, 0.0))[0]
    placed = "NaN or inf in other places" not in found.notes
    comparable = found.verdict == "different" and found.max_abs is not None and placed
    if comparable and own <= max(base, relative):
        found = replace(found, verdict="close")
    return replace(found, error=own, base_error=base)


def doubled(value: Any) -> Any:
    """The same nesting with float64 for every float, complex128 for every complex number."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().clone()
        if value.is_complex():
            return value.to(torch.complex128)
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(map(doubled, value))
    if type(value) is dict:
        return {key: doubled(item) for key, item in value.items()}
    return value


def kept(result: Any, given: Any, changed: Iterable[torch.Tensor] = ()) -> Results:
    """What a call gave, being `given` its arguments, and the tensors that it has `changed`."""
    import torch

    found = list(leaves(result))
    gave = [leaf for leaf in found if isinstance(leaf, torch.Tensor)]
    theirs = {_place(leaf) for leaf in leaves(given) if isinstance(leaf, torch.Tensor)} - {None}
    return Results(
        tuple(map(_copy, [*gave, *changed])),
        tuple(n for n in found if isinstance(n, int | float | complex) and type(n) is not bool),
        tuple(i for i, t in enumerate(gave) if _place(t) in theirs),
    )


def _place(tensor: torch.Tensor) -> int | None:
    """Where its memory is; None for what has none of its own, such as a sparse tensor."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):
        return None


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor.to_dense().clone()
    copy = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return copy.copy_(tensor)


def _unlike(one: torch.Tensor, other: torch.Tensor) -> str | None:
    for what in ("shape", "dtype", "device"):
        first, second = getattr(one, what), getattr(other, what)
        if first != second:
            return f"{what} {_plain(second)} instead of {_plain(first)}"
    return None


def _layout(one: torch.Tensor, other: torch.Tensor) -> list[str]:
    strides = [
        tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1) for t in (one, other)
    ]
    if strides[0] == strides[1]:
        return []
    return [f"strides {tuple(other.stride())} instead of {tuple(one.stride())}"]


def _plain(value: Any) -> str:
    return str(tuple(value) if isinstance(value, tuple) else value).removeprefix("torch.")


def _pair(one: torch.Tensor, other: torch.Tensor) -> _Pair:
    """How two tensors differ, found out piece by piece: both may fill the memory but for little."""
    pairs = [_of_piece(*piece) for piece in _pieces(one, other)]
    ulps = [p.ulps for p in pairs if p.ulps is not None]
    return _Pair(
        all(p.equal for p in pairs),
        all(p.close for p in pairs),
        max(p.absolute for p in pairs),
        max(p.relative for p in pairs),
        max(ulps, default=None),
        sum(p.nan for p in pairs),
        any(p.misplaced for p in pairs),
    )


def _pieces(one: torch.Tensor, other: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Views of at most `_PIECE` elements; halves of the longest dimension."""
    if one.numel() <= _PIECE:
        yield one, other
        return
    longest = max(range(one.dim()), key=lambda dim: one.shape[dim])
    for halves in zip(one.chunk(2, longest), other.chunk(2, longest), strict=True):
        yield from _pieces(*halves)


def _of_piece(one: torch.Tensor, other: torch.Tensor) -> _Pair:
    import torch

    nan = (one.isnan() & other.isnan()) if _is_inexact(one) else torch.zeros((), dtype=torch.bool)
    same = one == other
    if bool(same.all()):
        return _Pair(True, True, 0.0, 0.0, 0 if one.is_floating_point() else None, 0, False)
    if bool((same | nan).all()):
        return _Pair(True, True, 0.0, 0.0, 0, int(nan.sum()), False)
    if not _is_inexact(one):
        first, second = one.to(torch.float64), other.to(torch.float64)
        return _Pair(False, False, float((first - second).abs().max()), 1.0, None, 0, False)
    finite = one.isfinite() & other.isfinite()
    misplaced = not bool((finite | same | nan).all())
    wide = torch.complex128 if one.is_complex() else torch.float64
    first, second = one[finite].to(wide), other[finite].to(wide)
    away = (first - second).abs()
    relative, absolute = TOLERANCES.get(_plain(one.dtype), (0.0, 0.0))
    close = bool((away <= absolute + relative * first.abs()).all()) and not misplaced
    size = first.abs().clamp(min=torch.finfo(wide).tiny)
    return _Pair(
        False,
        close,
        float(away.max()) if away.numel() else 0.0,
        float((away / size).max()) if away.numel() else 0.0,
        _ulps(one[finite], other[finite]),
        int(nan.sum()),
        misplaced,
    )


def _is_inexact(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _ulps(one: torch.Tensor, other: torch.Tensor) -> int | None:
    """The largest number of steps between neighbours; None for a dtype that has none.

    Floats of one sign are in the order of their bits read as integers (IEEE 754).
    """
    import torch

    name = _INTEGERS.get(one.element_size())
    if not one.is_floating_point() or name is None or not one.numel():
        return None
    first, second = (_steps(t, getattr(torch, name)) for t in (one, other))
    return int((first - second).abs().max())


def _steps(tensor: torch.Tensor, integer: torch.dtype) -> torch.Tensor:
    """Integers in the order of the floats, zero for zero of either sign."""
    import torch

    bits = tensor.contiguous().view(integer)
    magnitude = (bits & torch.iinfo(integer).max).to(torch.int64)
    return torch.where(bits < 0, -magnitude, magnitude)
