"""Whether a variant computes the same: its results, and what it changed, beside another's."""

from __future__ import annotations

import enum
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan
from types import ModuleType
from typing import Any

from kernelcount.contents import Entry
from kernelcount.model import Numerics
from kernelcount.nesting import Keys
from kernelcount.probes.elements import TOLERANCES, Pair, is_inexact, largest, pair
from kernelcount.probes.kept import Results

_NOTHING = "no tensor is returned or changed"
_MOST_NAMED = 3  # of many tensors that are in one alone
_CONSUMED = "what it yields is not kept, and so not compared"


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


def compare(expected: Results, got: Results) -> Found:
    """Hold all that a variant gave against what the first gave, in order.

    Numbers of Python's are held to the tolerance of float32: they may have come out of any tensor.
    Nothing to compare is no pass: the verdict is ``nothing`` then.
    """
    found = _tensors(expected, got)
    numerics = found.numerics
    notes = [*numerics.notes, *_sharing(expected, got), *_untold(expected, got)]
    notes += _other_form(expected.form, got.form)
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
        said = _alone(expected, got) or _fewer(before, after, "tensor")
        return Found(Numerics("different", 0, notes=(said,), differs="count"))
    if not before:
        return Found(Numerics("nothing", 0, notes=(_CONSUMED if got.consumed else _NOTHING,)))
    pairs: list[Pair] = []
    notes: dict[str, None] = {}
    for i, (one, other) in enumerate(zip(expected.tensors, got.tensors, strict=True)):
        for what in ("shape", "dtype", "device"):
            first, second = getattr(one, what), getattr(other, what)
            if first != second:
                said = f"{got.name(i)}: {what} {_plain(second)} instead of {_plain(first)}"
                return Found(Numerics("different", before, notes=(said,), differs=what))
        pairs.append(pair(one, other))
        notes |= dict.fromkeys(f"{got.name(i)}: {x}" for x in _layout(expected, got, i))
    return _of_pairs(pairs, notes, got)


def _alone(expected: Results, got: Results) -> str:
    """What a call was to change, or put somewhere, that is there in one alone."""
    first, second = (
        dict.fromkeys(
            [n for n in r.names if n.endswith(" afterwards") or n.startswith("the gradient")]
            + [other.place for other in r.others if isinstance(other, Entry)]
        )
        for r in (expected, got)
    )
    here = [f"{name}: here alone" for name in second if name not in first]
    there = [f"{name}: in the first alone" for name in first if name not in second]
    return "; ".join((*here, *there)[:_MOST_NAMED])


def _of_pairs(pairs: Sequence[Pair], notes: dict[str, None], got: Results) -> Found:
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
        largest(p.relative for p in pairs),
        max(ulps, default=None),
        tuple(notes),
        differs=("placement" if misplaced else "values") if far else None,
    )
    floats = all(is_inexact(got.tensors[i]) for i in far)
    return Found(numerics, tuple(far) if floats and not misplaced else ())


def _unlike(expected: Results, got: Results) -> str:
    """The first difference among what is no tensor, but for numbers that may be rounded."""
    for what, noun in (("numbers", "number"), ("others", "plain value")):
        before, after = len(getattr(expected, what)), len(getattr(got, what))
        if before != after:
            return _alone(expected, got) or _fewer(before, after, noun)
    kinds = zip(expected.numbers, got.numbers, strict=True)
    unlike = next(((a, b) for a, b in kinds if type(a) is not type(b)), None)
    pairs = zip(expected.others, got.others, strict=True)
    unlike = unlike or next(((a, b) for a, b in pairs if _same(a, b) is False), None)
    return _instead(*unlike) if unlike else ""


def _instead(one: Any, other: Any) -> str:
    if not (isinstance(one, Entry) and isinstance(other, Entry)):
        return f"{_shown(other)} instead of {_shown(one)}"
    if one.place != other.place:
        return f"{other.place} instead of {one.place}"
    return f"{one.place}: {_told(other)} instead of {_told(one)}"


def _told(entry: Entry) -> str:
    return f"{entry.kind} of {entry.what}" if entry.holds else reprlib.repr(entry.what)


def _shown(value: Any) -> str:
    return f"keys {_shown(value.keys)}" if isinstance(value, Keys) else reprlib.repr(value)


def _same(one: Any, other: Any) -> bool | None:
    """Whether two values are equal and of one type; None: cannot tell."""
    import torch

    if type(one) is not type(other):
        return False
    names = enum.Enum | type | ModuleType | torch.dtype | torch.layout | torch.memory_format
    names |= type(None) | type(...) | type(NotImplemented)
    if isinstance(one, names):  # there is one of each
        return one is other
    if getattr(type(one), "__eq__") is getattr(object, "__eq__"):  # noqa: B009
        return None
    try:
        if one is other:  # it may have changed meanwhile, unless it is one that never does
            hash(one)
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001  a comparison of the user's own, or one that is no yes or no
        return None


def _untold(expected: Results, got: Results) -> list[str]:
    """Values that were not compared, by their type."""
    if len(expected.others) != len(got.others):
        return []
    pairs = zip(expected.others, got.others, strict=True)
    kinds = [type(b).__qualname__ for a, b in pairs if _same(a, b) is None]
    return [
        f"{_so_many(kinds.count(kind), 'value')} of type {kind} cannot be compared"
        for kind in dict.fromkeys(kinds)
    ]


def _other_form(one: Any, other: Any) -> list[str]:
    """The first container among what is given that is another, or that the other has not."""
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if one == other or one is None or other is None:
            continue
        if one[1] is None and other[1] is None:
            continue  # no containers: they are compared themselves
        if one[0] != other[0]:
            return [f"{other[0]} instead of {one[0]}"]
        waiting += reversed(list(zip(one[1] or (), other[1] or (), strict=False)))
    return []


def _far(expected: Sequence[complex], got: Sequence[complex]) -> tuple[int, ...]:
    """Positions of the numbers that are not near their counterparts."""
    pairs = enumerate(zip(expected, got, strict=True))
    return tuple(i for i, (one, other) in pairs if not _is_near(one, other))


def _so_many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _fewer(before: int, after: int, noun: str) -> str:
    """That there are not as many as in the first."""
    if not after:
        return f"{_so_many(before, noun)} in the first and none here"
    return f"{_so_many(after, noun)} instead of {before or 'none'}"


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
    for one, other in sorted({*expected.alike} ^ {*got.alike}):
        where = "here alone" if (one, other) in got.alike else "in the first alone"
        notes.append(f"{got.name(other)} shares memory with {got.name(one)} {where}")
    return notes


def in_dtypes_of(expected: Results, got: Results) -> Results:
    """The same results in the dtypes of the others, so that their numbers can be compared."""
    if len(expected.tensors) != len(got.tensors):
        return got
    pairs = zip(expected.tensors, got.tensors, strict=True)
    return replace(got, tensors=tuple(other.to(one.dtype) for one, other in pairs))


def _layout(expected: Results, got: Results, i: int) -> list[str]:
    """What is told of a tensor beside its numbers, where that is another."""
    one, other = expected.tensors[i], got.tensors[i]
    notes = []
    strides = [
        tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1) for t in (one, other)
    ]
    if strides[0] != strides[1]:
        notes.append(f"strides {tuple(other.stride())} instead of {tuple(one.stride())}")
    if expected.kind(i) != got.kind(i):
        notes.append(f"{got.kind(i)} instead of {expected.kind(i)}")
    return notes


def _plain(value: Any) -> str:
    return str(tuple(value) if isinstance(value, tuple) else value).removeprefix("torch.")
