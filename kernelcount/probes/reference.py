"""How far results are from the truth: the same function in float64.

What differs from the first variant by more than the tolerance of its dtype may be as right as that:
where numbers cancel, rounding alone does it. How much rounding can do is not guessed but tried: the
function is called in float64 with all numbers moved by a little (`nudge`), and its results move. An
error in units of that movement is a backward error (N. J. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition, section 1.5): how precise arithmetic would have to be to give it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from kernelcount.model import Numerics
from kernelcount.probes.elements import TOLERANCES, beyond, is_inexact, name_of, wide
from kernelcount.probes.kept import Results
from kernelcount.probes.nudge import Nudge
from kernelcount.probes.numerics import Found

if TYPE_CHECKING:
    import torch

NONE = "the function does not run in float64: nothing tells which is nearer to the truth"
"""Said where there is no reference and somebody asked for one."""

ZERO = "in float64 all is zero, and no error is a part of that"
"""Said where a tensor is not zero that is nothing else in float64."""

_TRIALS = 8
"""Half of them move each tensor as a whole, half each element by itself. A number that is small by
chance in a few of them looks as if rounding could not reach it: two trials were too few for the sum
of a million numbers less their mean, eight were not."""

Again = Callable[[Nudge], Results | None]
"""The function in float64, with its numbers moved."""


@dataclass(frozen=True)
class _Far:
    """The elements of one tensor that are beyond the tolerance, in float64, and their movements.

    `moved`: how far each moves at the most, over how far the numbers it comes from were moved.
    """

    truth: torch.Tensor
    first: torch.Tensor
    own: torch.Tensor
    moved: torch.Tensor
    dtype: str


def judged(
    found: Found, exact: Results | None, expected: Results, got: Results, again: Again | None = None
) -> Numerics:
    """The comparison with how far both are from `exact`, which is the same in float64.

    Rounding is excused, element by element: what is in the tolerance of its dtype of the truth, or
    has a backward error in it; or has one in the tolerance of the dtype that the first variant's
    own error betrays (TF32, autocast). Nothing else is. None for `exact`: the function does not run
    in float64.
    """
    numerics = found.numerics
    first, own = (errors(exact, results) if exact else None for results in (expected, got))
    if exact is None or first is None or own is None:
        return replace(numerics, notes=(*numerics.notes, NONE))
    if found.may_be_rounding and all(
        _is_rounding(far) for far in _far(found, exact, expected, got, again)
    ):
        numerics = replace(numerics, verdict="close", differs=None)
    known = [(a, b) for a, b in zip(first, own, strict=True) if a is not None and b is not None]
    if not known:
        return numerics
    base, away = (max(e) for e in zip(*known, strict=True))
    if inf in (base, away):
        numerics = replace(numerics, notes=(*numerics.notes, ZERO))
    return replace(
        numerics,
        error=away if away < inf else None,
        base_error=base if base < inf else None,
    )


def _far(
    found: Found, exact: Results, expected: Results, got: Results, again: Again | None
) -> list[_Far]:
    """What is beyond the tolerance in each tensor, and among Python's numbers.

    Trials end where rounding of the results' own dtypes explains all: further ones only find that
    rounding may do more.
    """
    import torch

    masks = {i: beyond(expected.tensors[i], got.tensors[i]) for i in found.tensors}

    def picked(results: Results) -> list[torch.Tensor]:
        numbers = [torch.tensor([results.numbers[i]], dtype=complex128) for i in found.numbers]
        return [*(wide(results.tensors[i].flatten()[m]) for i, m in masks.items()), *numbers]

    complex128 = torch.complex128
    truth, first, own = picked(exact), picked(expected), picked(got)
    dtypes = [name_of(expected.tensors[i].dtype) for i in masks] + ["float32"] * len(found.numbers)
    rows = zip(truth, first, own, dtypes, strict=True)
    fars = [_Far(a, b, c, torch.zeros_like(a.abs()), d) for a, b, c, d in rows]
    by = max(tolerance(name_of(t.dtype)) for t in (*expected.tensors, torch.ones(())))
    for trial in range(_TRIALS if again else 0):
        if trial > 1 and all(_is_rounding(far, alone=True) for far in fars):
            break
        other = again(Nudge(by, trial)) if again else None
        if other is None or errors(exact, other) is None:
            break
        fars = [_moved(far, new, by) for far, new in zip(fars, picked(other), strict=True)]
    return fars


def _moved(far: _Far, new: torch.Tensor, by: float) -> _Far:
    """With one more trial in which the truth came out otherwise."""
    import torch

    away = ((new - far.truth).abs() / by).nan_to_num(0.0, 0.0, 0.0)
    return replace(far, moved=torch.maximum(far.moved, away))


def _is_rounding(far: _Far, *, alone: bool = False) -> bool:
    """Whether rounding explains how far all these are from the truth.

    What moves least by chance is taken to move as the median of them does. Numbers that are far
    larger do not count: they differ by no more than their own tolerance, and are not among these.
    `alone`: whatever the first variant's precision is.
    """
    import torch

    if not far.truth.numel():
        return False
    size = torch.maximum(far.moved, far.truth.abs())
    size = torch.maximum(size, far.moved.median())
    relative, absolute = tolerance(far.dtype), TOLERANCES.get(far.dtype, (0.0, 0.0))[1]

    def backward(got: torch.Tensor) -> float:
        away = ((got - far.truth).abs() - absolute).clamp(min=0)
        return float((away / size.clamp(min=sys.float_info.min)).max())

    first, own = backward(far.first), backward(far.own)
    if alone:
        return own <= relative
    coarser = sorted(t for t, _ in TOLERANCES.values() if t >= relative)
    return own <= next((t for t in coarser if first <= t), relative)


def tolerance(dtype: str) -> float:
    """Of a dtype, relative; where torch.testing has none, the distance of 1 and its neighbour."""
    import torch

    if dtype in TOLERANCES:
        return TOLERANCES[dtype][0]
    try:
        return float(torch.finfo(getattr(torch, dtype)).eps)
    except TypeError:  # of no floats
        return 0.0


def errors(exact: Results, got: Results) -> list[float | None] | None:
    """Of each tensor the largest distance from the same in float64, over the largest number there.

    Infinite where that is zero, and the distance is not. None for a tensor that holds no floats or
    nothing finite, and for all where there are not as many, or not of the same shapes.
    """
    pairs = list(zip(exact.tensors, got.tensors, strict=False))
    alike = all(one.shape == other.shape for one, other in pairs)
    lengths = len(exact.tensors) == len(got.tensors), len(exact.numbers) == len(got.numbers)
    return [_error(one, other) for one, other in pairs] if alike and all(lengths) else None


def _error(exact: torch.Tensor, got: torch.Tensor) -> float | None:
    if not is_inexact(got):
        return None
    truth, own = wide(exact), wide(got)
    known = truth.isfinite() & own.isfinite()
    away = (truth[known] - own[known]).abs()
    if not away.numel():
        return None
    most, size = float(away.max()), float(truth[known].abs().max())
    return most / size if size else inf if most else 0.0
