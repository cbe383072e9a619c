"""Whether a variant computes the same: its results, and what it changed, beside another's.

Tolerances are those of torch.testing.assert_close by dtype (its documentation has the table); a
unit in the last place (ULP) is the distance of two neighbouring numbers of the dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kernelcount.model import Numerics

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


def kept(values: Iterator[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of tensors, with their strides, that no later call can change."""
    return [_copy(t) for t in values]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    tensor = tensor.detach()
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
