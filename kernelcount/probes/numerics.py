"""Whether a variant computes the same: its results, and what it changed, beside another's.

Tolerances are those of torch.testing.assert_close by dtype (its documentation has the table); a
unit in the last place (ULP) is the distance of two neighbouring numbers of the dtype.
"""

from __future__ import annotations

import reprlib
from collections import deque
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


_NOTHING = "no tensor is returned or changed"
_CONSUMED = "what it yields is not kept, and so not compared"
_PLAIN = (bool, str, bytes, type(None))


@dataclass(frozen=True)
class Results:
    """What a call gave and changed, in copies that no later call can change.

    `names` says of each tensor what it is: a result, or an argument afterwards. `numbers`: Python's
    own among what it gave, and `others` what else there is of its plain values. `shared`: which of
    the tensors that it gave lie in the memory of an argument. `consumed`: it gave an iterator,
    which was followed to its end without keeping anything.
    """

    tensors: tuple[torch.Tensor, ...]
    numbers: tuple[complex, ...] = ()
    shared: tuple[int, ...] = ()
    others: tuple[bool | str | bytes | None, ...] = ()
    names: tuple[str, ...] = ()
    consumed: bool = False

    def name(self, position: int) -> str:
        """What the tensor at `position` is called where something is said of it."""
        if position < len(self.names):
            return self.names[position]
        return f"result {position + 1}" if len(self.tensors) > 1 else "the result"


@dataclass(frozen=True)
class Found:
    """How results compare. `tensors` and `numbers`: positions of those beyond their tolerance.

    They are given only where nothing else differs, and all of these are floats: then it may be
    rounding, and `reference` can tell.
    """

    numerics: Numerics
    tensors: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def may_be_rounding(self) -> bool:
        """Whether all that differs may be rounding."""
        return bool(self.tensors or self.numbers)


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


def compare(expected: Results, got: Results) -> Found:
    """Hold all that a variant gave against what the first gave, in order.

    Numbers of Python's are held to the tolerance of float32: they may have come out of any tensor.
    Nothing to compare is no pass: the verdict is ``nothing`` then.
    """
    found = _tensors(expected, got)
    numerics = found.numerics
    notes = [*numerics.notes, *_sharing(expected, got)]
    if unlike := _unlike(expected, got):
        said = replace(numerics, verdict="different", notes=(*notes, unlike))
        return Found(replace(said, differs=numerics.differs or "numbers"))
    far = _far(expected.numbers, got.numbers)
    if far:
        one, other = expected.numbers[far[0]], got.numbers[far[0]]
        notes.append(f"{other!r} instead of {one!r}")
        rounded = found.may_be_rounding or numerics.differs is None
        rounded = rounded and not any(isinstance(got.numbers[i], int) for i in far)
        differs = numerics.differs or "numbers"
        numerics = replace(numerics, verdict="different", notes=tuple(notes), differs=differs)
        return Found(numerics, found.tensors, far) if rounded else Found(numerics)
    if expected.numbers and numerics.verdict == "nothing":
        notes.append(f"{_so_many(len(got.numbers), 'number')} of Python's agree")
    return replace(found, numerics=replace(numerics, notes=tuple(notes)))


def _tensors(expected: Results, got: Results) -> Found:
    """The same of the tensors alone."""
    before, after = len(expected.tensors), len(got.tensors)
    if before != after:
        said = f"{_so_many(after, 'tensor')} instead of {before or 'none'}"
        return Found(Numerics("different", 0, notes=(said,), differs="count"))
    if not before:
        return Found(Numerics("nothing", 0, notes=(_CONSUMED if got.consumed else _NOTHING,)))
    pairs: list[_Pair] = []
    notes: dict[str, None] = {}
    for i, (one, other) in enumerate(zip(expected.tensors, got.tensors, strict=True)):
        for what in ("shape", "dtype", "device"):
            first, second = getattr(one, what), getattr(other, what)
            if first != second:
                said = f"{got.name(i)}: {what} {_plain(second)} instead of {_plain(first)}"
                return Found(Numerics("different", before, notes=(said,), differs=what))
        pairs.append(_pair(one, other))
        notes |= dict.fromkeys(f"{got.name(i)}: {x}" for x in _layout(one, other))
    return _of_pairs(pairs, notes, got)


def _of_pairs(pairs: Sequence[_Pair], notes: dict[str, None], got: Results) -> Found:
    """What the comparisons of all tensors come to."""
    nan = sum(p.nan for p in pairs)
    misplaced = [i for i, p in enumerate(pairs) if p.misplaced]
    far = [i for i, p in enumerate(pairs) if not p.close]
    for i in misplaced:
        notes[f"{got.name(i)}: NaN or inf in other places"] = None
    if far and far != misplaced and len(pairs) > 1:
        notes[f"beyond the tolerance: {', '.join(got.name(i) for i in far)}"] = None
    if nan and not misplaced:
        notes[f"{nan} NaN in the same places"] = None
    ulps = [p.ulps for p in pairs if p.ulps is not None]
    numerics = Numerics(
        "different" if far else "equal" if all(p.equal for p in pairs) else "close",
        len(pairs),
        max(p.absolute for p in pairs),
        max(p.relative for p in pairs),
        max(ulps, default=None),
        tuple(notes),
        differs=("placement" if misplaced else "values") if far else None,
    )
    floats = all(is_inexact(got.tensors[i]) for i in far)
    return Found(numerics, tuple(far) if floats and not misplaced else ())


def _unlike(expected: Results, got: Results) -> str:
    """The first difference among what is neither tensor nor number; empty where there is none."""
    if len(expected.numbers) != len(got.numbers):
        before = len(expected.numbers) or "none"
        return f"{_so_many(len(got.numbers), 'number')} instead of {before}"
    if len(expected.others) != len(got.others):
        return f"{_so_many(len(got.others), 'plain value')} instead of {len(expected.others)}"
    pairs = zip(expected.others, got.others, strict=True)
    unlike = next(((a, b) for a, b in pairs if type(a) is not type(b) or a != b), None)
    return f"{reprlib.repr(unlike[1])} instead of {reprlib.repr(unlike[0])}" if unlike else ""


def _far(expected: Sequence[complex], got: Sequence[complex]) -> tuple[int, ...]:
    """Positions of the numbers that are not near their counterparts."""
    pairs = enumerate(zip(expected, got, strict=True))
    return tuple(i for i, (one, other) in pairs if not _is_near(one, other))


def _so_many(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}" if count < 2 else f"{count} {noun}s"  # noqa: PLR2004


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
        shares = f"{got.name(i)} shares memory with an argument"
        if i in expected.shared and i in got.shared:
            notes.append(shares)
        else:
            notes.append(
                f"{shares} here alone" if i in got.shared else f"{shares} in the first alone"
            )
    return notes


def in_dtypes_of(expected: Results, got: Results) -> Results:
    """The same results in the dtypes of the others, so that their numbers can be compared."""
    if len(expected.tensors) != len(got.tensors):
        return got
    pairs = zip(expected.tensors, got.tensors, strict=True)
    return replace(got, tensors=tuple(other.to(one.dtype) for one, other in pairs))


def kept(result: Any, given: Any, changed: Iterable[tuple[str, torch.Tensor]] = ()) -> Results:
    """What a call gave, being `given` its arguments, and the tensors that it has `changed`.

    Those come with what they are called.
    """
    import torch

    found = list(leaves(result))
    gave = [leaf for leaf in found if isinstance(leaf, torch.Tensor)]
    names = [f"result {i + 1}" for i in range(len(gave))] if len(gave) > 1 else ["the result"]
    others = list(changed)
    theirs = {_place(leaf) for leaf in leaves(given) if isinstance(leaf, torch.Tensor)} - {None}
    return Results(
        tuple(map(_copy, [*gave, *(tensor for _, tensor in others)])),
        tuple(n for n in found if isinstance(n, int | float | complex) and type(n) is not bool),
        tuple(i for i, t in enumerate(gave) if _place(t) in theirs),
        tuple(n for n in found if type(n) in _PLAIN),
        (*names[: len(gave)], *(name for name, _ in others)),
        consumed=any(isinstance(leaf, deque) for leaf in found),
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

    nan = (one.isnan() & other.isnan()) if is_inexact(one) else torch.zeros((), dtype=torch.bool)
    same = one == other
    if bool(same.all()):
        return _Pair(True, True, 0.0, 0.0, 0 if one.is_floating_point() else None, 0, False)
    if bool((same | nan).all()):
        return _Pair(True, True, 0.0, 0.0, 0, int(nan.sum()), False)
    if not is_inexact(one):
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


def is_inexact(tensor: torch.Tensor) -> bool:
    """Whether its numbers are rounded."""
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
