"""How far results are from the truth: the same function in float64.

What differs from the first variant by more than the tolerance of its dtype may be as right as that:
where numbers cancel, rounding alone does it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelcount.model import Numerics
from kernelcount.probes.numerics import TOLERANCES, Found, Results, is_inexact

if TYPE_CHECKING:
    import torch

NONE = "the function does not run in float64: nothing tells which is nearer to the truth"
"""Said where there is no reference and somebody asked for one."""


def judged(found: Found, exact: Results | None, expected: Results, got: Results) -> Numerics:
    """The comparison with how far both are from `exact`, which is the same in float64.

    Rounding is excused, tensor by tensor: what is no further from the truth than the first is, or
    within the tolerance of its dtype for the largest number. Nothing else is. None for `exact`:
    the function does not run in float64.
    """
    numerics = found.numerics
    first, own = (errors(exact, results) if exact else None for results in (expected, got))
    if exact is None or first is None or own is None:
        return replace(numerics, notes=(*numerics.notes, NONE))
    dtypes = [str(t.dtype).removeprefix("torch.") for t in got.tensors]
    excused = found.may_be_rounding and all(
        _is_no_worse(first[i], own[i], dtypes[i]) for i in found.tensors
    )
    for i in found.numbers:
        truth = exact.numbers[i]
        excused = excused and abs(got.numbers[i] - truth) <= abs(expected.numbers[i] - truth)
    if excused:
        numerics = replace(numerics, verdict="close", differs=None)
    known = [(a, b) for a, b in zip(first, own, strict=True) if a is not None and b is not None]
    if not known:
        return numerics
    return replace(numerics, error=max(b for _, b in known), base_error=max(a for a, _ in known))


def _is_no_worse(first: float | None, own: float | None, dtype: str) -> bool:
    if first is None or own is None:
        return False
    relative, _ = TOLERANCES.get(dtype, (0.0, 0.0))
    return own <= max(first, relative)


def errors(exact: Results, got: Results) -> list[float | None] | None:
    """Of each tensor the largest distance from the same in float64, over the largest number there.

    None for a tensor that holds no floats or nothing finite, and for all where there are not as
    many, or not of the same shapes.
    """
    pairs = list(zip(exact.tensors, got.tensors, strict=False))
    alike = all(one.shape == other.shape for one, other in pairs)
    lengths = len(exact.tensors) == len(got.tensors), len(exact.numbers) == len(got.numbers)
    return [_error(one, other) for one, other in pairs] if alike and all(lengths) else None


def _error(exact: torch.Tensor, got: torch.Tensor) -> float | None:
    if not is_inexact(got):
        return None
    known = exact.isfinite() & got.isfinite()
    away = (exact[known] - got[known].to(exact.dtype)).abs()
    if not away.numel():
        return None
    return float(away.max()) / max(float(exact[known].abs().max()), sys.float_info.min)


def doubled(value: Any) -> Any:
    """The same nesting with float64 for every float, complex128 for every complex number."""
    import torch

    if isinstance(value, torch.Tensor):
        own = value.detach().clone()
        if own.is_complex():
            own = own.to(torch.complex128)
        elif own.is_floating_point():
            own = own.to(torch.float64)
        return own.requires_grad_(value.requires_grad and value.is_leaf)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(map(doubled, value))
    if type(value) is dict:
        return {key: doubled(item) for key, item in value.items()}
    return value
