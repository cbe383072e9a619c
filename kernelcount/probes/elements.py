"""How two tensors of one shape and dtype differ, element by element.

Tolerances are those of torch.testing.assert_close by dtype (its documentation has the table); a
unit in the last place (ULP) is the distance of two neighbouring numbers of the dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

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

PIECE = 1 << 24
"""Elements that are compared at once: 128 MB of float64, whatever the size of the whole."""

_EXACT = 2.0**53  # every integer up to it is a float64


@dataclass(frozen=True)
class Pair:
    """How two tensors of one shape and dtype differ.

    `relative`: to the first one's number in the same place; None where one is zero and the other's
    is not: no part of zero is known.
    """

    equal: bool
    close: bool
    absolute: float
    relative: float | None
    ulps: int | None
    nan: int
    misplaced: bool


def name_of(dtype: torch.dtype) -> str:
    """A dtype without torch's name before it."""
    return str(dtype).removeprefix("torch.")


def is_inexact(tensor: torch.Tensor) -> bool:
    """Whether its numbers are rounded."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def pair(one: torch.Tensor, other: torch.Tensor) -> Pair:
    """How two tensors differ, found out piece by piece: both may fill the memory but for little."""
    pairs = [_of_piece(*piece) for piece in _pieces(one, other)]
    ulps = [p.ulps for p in pairs if p.ulps is not None]
    return Pair(
        all(p.equal for p in pairs),
        all(p.close for p in pairs),
        max(p.absolute for p in pairs),
        largest(p.relative for p in pairs),
        max(ulps, default=None),
        sum(p.nan for p in pairs),
        any(p.misplaced for p in pairs),
    )


def largest(values: Iterable[float | None]) -> float | None:
    """The largest of some; None where one of them is not known, or there is none."""
    known = list(values)
    found = [v for v in known if v is not None]
    return max(found, default=None) if len(found) == len(known) else None


def _pieces(one: torch.Tensor, other: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Views of at most `PIECE` elements; halves of the longest dimension."""
    if one.numel() <= PIECE:
        yield one, other
        return
    longest = max(range(one.dim()), key=lambda dim: one.shape[dim])
    for halves in zip(one.chunk(2, longest), other.chunk(2, longest), strict=True):
        yield from _pieces(*halves)


def beyond(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where finite numbers are further apart than the tolerance of their dtype; flat."""
    import torch

    parts = zip(one.flatten().split(PIECE), other.flatten().split(PIECE), strict=True)
    return torch.cat([_finite(a, b) & ~_near(a, b, name_of(one.dtype)) for a, b in parts])


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """The same in float64, or complex128."""
    import torch

    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _finite(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return wide(one).isfinite() & wide(other).isfinite()


def _near(one: torch.Tensor, other: torch.Tensor, dtype: str) -> torch.Tensor:
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    first = wide(one)
    return (first - wide(other)).abs() <= absolute + relative * first.abs()


def _of_piece(one: torch.Tensor, other: torch.Tensor) -> Pair:
    if not is_inexact(one):
        return _of_integers(one, other)
    same = one == other if name_of(one.dtype) in TOLERANCES else wide(one) == wide(other)
    if bool(same.all()):
        return Pair(True, True, 0.0, 0.0, 0 if one.is_floating_point() else None, 0, False)
    nan = _both_nan(one, other)
    if bool((same | nan).all()):
        return Pair(True, True, 0.0, 0.0, 0, int(nan.sum()), False)
    return _of_floats(one, other, same, nan)


def _of_floats(
    one: torch.Tensor, other: torch.Tensor, same: torch.Tensor, nan: torch.Tensor
) -> Pair:
    finite = _finite(one, other)
    misplaced = not bool((finite | same | nan).all())
    first, second = wide(one)[finite], wide(other)[finite]
    away = (first - second).abs()
    close = bool(_near(one, other, name_of(one.dtype))[finite].all()) and not misplaced
    return Pair(
        False,
        close,
        float(away.max()) if away.numel() else 0.0,
        _relative(away, first.abs()),
        _ulps(one, other, finite),
        int(nan.sum()),
        misplaced,
    )


def _of_integers(one: torch.Tensor, other: torch.Tensor) -> Pair:
    import torch

    unlike = one != other
    if not bool(unlike.any()):
        return Pair(True, True, 0.0, 0.0, None, 0, False)
    first, second = one[unlike], other[unlike]
    rough = (first.to(torch.float64) - second.to(torch.float64)).abs()
    # Past 2**53 float64 has no room for the last digits; 64 bits have, where numbers are near.
    exact = (first.to(torch.int64) - second.to(torch.int64)).abs().to(torch.float64)
    away = torch.where(rough < _EXACT, exact, rough)
    size = first.to(torch.float64).abs()
    return Pair(False, False, float(away.max()), _relative(away, size), None, 0, False)


def _relative(away: torch.Tensor, size: torch.Tensor) -> float | None:
    """The largest of distances over sizes; None where one is over zero, or past all floats."""
    some = away > 0
    found = float((away[some] / size[some]).max()) if bool(some.any()) else 0.0
    return found if isfinite(found) else None


def _both_nan(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where both are NaN; of complex numbers, in the same part, with the other part near."""
    import torch

    if not one.is_complex():
        return wide(one).isnan() & wide(other).isnan()
    relative, absolute = TOLERANCES[name_of(one.dtype)]
    parts = [torch.view_as_real(wide(t)) for t in (one, other)]
    alike = torch.isclose(*parts, rtol=relative, atol=absolute, equal_nan=True).all(-1)
    return alike & one.isnan()


def _ulps(one: torch.Tensor, other: torch.Tensor, finite: torch.Tensor) -> int | None:
    """The largest number of steps between neighbours; None for a dtype that has none.

    Floats of one sign are in the order of their bits read as integers (IEEE 754).
    """
    import torch

    name = _INTEGERS.get(one.element_size())
    if not one.is_floating_point() or name is None or not bool(finite.any()):
        return None
    first, second = (_steps(t, getattr(torch, name))[finite] for t in (one, other))
    return int((first - second).abs().max())


def _steps(tensor: torch.Tensor, integer: torch.dtype) -> torch.Tensor:
    """Integers in the order of the floats, zero for zero of either sign."""
    import torch

    bits = tensor.contiguous().view(integer)
    magnitude = (bits & torch.iinfo(integer).max).to(torch.int64)
    return torch.where(bits < 0, -magnitude, magnitude)
