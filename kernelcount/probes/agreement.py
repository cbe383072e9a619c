"""The results of one variant beside the first's: what is random, state, rounding, or wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from kernelcount.memory import is_out_of_memory
from kernelcount.model import Numerics
from kernelcount.probes import reference
from kernelcount.probes.elements import pair
from kernelcount.probes.kept import Results
from kernelcount.probes.nudge import Nudge
from kernelcount.probes.numerics import Found, compare, in_dtypes_of
from kernelcount.probes.randomness import Drawn

_STATE = "two calls of the first variant differ: it keeps state, and nothing compares with it"
_OTHERS = "both draw the same random numbers, and others in float64: rounding is not told apart"
_OUTSIDE = ("count", "shape", "dtype", "device")
"""What may differ beside the numbers themselves."""

_NEVER_RANDOM = ("dtype", "device")
"""What no random number decides, of all that may differ."""


class Caller(Protocol):
    """A variant that can be called again."""

    def results(self, *, reseeded: bool = False) -> tuple[Results, Drawn]:
        """What a call gives, and what it draws of random numbers; other ones if `reseeded`."""

    def reference(self, nudge: Nudge | None = None) -> Results | None:
        """What it gives in float64, where it runs in that."""


def alone(run: Caller, given: tuple[Results, Drawn]) -> Numerics:
    """How far the results of the first variant are from the truth."""
    keys = [key for key, (_, tensor) in given[0].beside.items() if tensor is not None]
    own, exact = given[0].joined(keys), run.reference()
    return reference.judged(compare(own, own), exact and exact.joined(keys), own, own)


def beside(
    base: Caller,
    expected: tuple[Results, Drawn],
    run: Caller,
    *,
    wanted: bool,
    in_its_dtypes: bool = False,
) -> Numerics:
    """The results of one variant beside `expected`, those of the first.

    With `in_its_dtypes`, another dtype is no difference of its own: how far the numbers are apart
    is what counts. `wanted`: how far they are from the truth, also where they agree.
    """
    (first, draws), (got, also) = expected, run.results()
    try:
        return _Comparison(base, run, first, got, in_its_dtypes).come_to(draws, also, wanted=wanted)
    except (NotImplementedError, TypeError, ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        # Of tensors of a kind unknown here.
        reason = f"cannot be compared: {error}".partition("\n")[0]
        return Numerics("unknown", len(got.tensors), notes=(reason,))


class _Comparison:
    def __init__(
        self, base: Caller, run: Caller, first: Results, got: Results, in_its_dtypes: bool
    ) -> None:
        self._base, self._run, self._rough = base, run, in_its_dtypes
        self._called = {key: name for key, (name, _) in first.beside.items()}
        self._alike = False  # that both draw the same random numbers
        both = [key for key in first.beside if key in got.beside]
        self._keys = [k for k in both if any(r.beside[k][1] is not None for r in (first, got))]
        alone = len({*first.beside} ^ {*got.beside})
        self._notes = (f"{alone} gradients or buffers are in one alone",) if alone else ()
        self._pick: Callable[[Results], Results] = lambda results: results
        self._first = self._all(first)
        self._counts = _counts(self._first)
        self._got = in_dtypes_of(self._first, self._all(got)) if in_its_dtypes else self._all(got)

    def _all(self, results: Results) -> Results:
        """With what is beside, called as the first calls it: what it reaches is numbered anew."""
        found = {k: (self._called.get(k, n), t) for k, (n, t) in results.beside.items()}
        return replace(results, beside=found).joined(self._keys)

    def come_to(self, draws: Drawn, also: Drawn, *, wanted: bool) -> Numerics:
        if draws and also and draws.is_as(also):
            self._alike, draws, also = True, Drawn(False), Drawn(False)
        found = compare(self._first, self._got)
        tensors = found.numerics.tensors
        if found.numerics.differs is not None and (draws or also):
            picked = self._without_random(found, draws, also)
            if picked is None:
                return Numerics("random", tensors)
            found = picked
            if found.numerics.differs is None:
                left = found.numerics.tensors
                said = f"{left} of {tensors} tensors do not depend on them, and agree"
                return Numerics("random", tensors, notes=(said,) if left else ())
        if found.numerics.differs is not None and self._has_state():
            return Numerics("unknown", tensors, notes=(_STATE,))
        told = found.numerics
        if found.may_be_rounding or wanted:
            told = self._judged(found, self._got)
        return replace(told, notes=(*told.notes, *self._notes))

    def _without_random(self, found: Found, draws: Drawn, also: Drawn) -> Found | None:
        """The comparison of what depends on no random number; None where all may."""
        differs = found.numerics.differs
        if differs in _NEVER_RANDOM:
            return found
        one = self._steady(self._base, self._first, draws)
        other = self._steady(self._run, self._got, also)
        if one is None or other is None:
            return None
        parts = list(zip(one, other, strict=True))
        if differs in _OUTSIDE or any(len(a) != len(b) for a, b in parts):
            return found
        both = [[i for i, (a, b) in enumerate(zip(*p, strict=True)) if a and b] for p in parts]
        self._pick = lambda results: results.only(*both)
        self._first, self._got = self._pick(self._first), self._pick(self._got)
        return compare(self._first, self._got)

    def _steady(self, run: Caller, results: Results, draws: Drawn) -> list[list[bool]] | None:
        """Which tensors, numbers and other values are the same with other random numbers.

        None where not even how many there are is, or their shapes.
        """
        if not draws:
            return [[True] * len(r) for r in (results.tensors, results.numbers, results.others)]
        other = self._all(run.results(reseeded=True)[0])
        if self._rough:
            other = in_dtypes_of(results, other)
        pairs = [
            (results.tensors, other.tensors),
            (results.numbers, other.numbers),
            (results.others, other.others),
        ]
        if any(len(a) != len(b) for a, b in pairs):
            return None
        if any(a.shape != b.shape for a, b in zip(*pairs[0], strict=True)):
            return None
        steady = [[pair(a, b).equal for a, b in zip(*pairs[0], strict=True)]]
        for values in pairs[1:]:
            alike = [
                compare(Results((), others=(a,)), Results((), others=(b,))).numerics.differs is None
                for a, b in zip(*values, strict=True)
            ]
            steady.append(alike)
        return steady

    def _has_state(self) -> bool:
        """Whether the first variant does not repeat itself.

        In float64, where no two orders of a sum are far apart; else as it is.
        """
        one = self._exact()
        other = None if one is None else self._exact()
        if one is None or other is None:
            one, other = self._first, self._pick(self._all(self._base.results()[0]))
        return compare(one, other).numerics.differs is not None

    def _judged(self, found: Found, got: Results) -> Numerics:
        exact = self._exact()
        if self._alike and exact is not None:
            as_first = compare(self._first, in_dtypes_of(self._first, exact))
            if as_first.numerics.differs is not None:
                notes = (*found.numerics.notes, _OTHERS)
                return replace(found.numerics, notes=notes)
        return reference.judged(found, exact, self._first, got, self._exact)

    def _exact(self, nudge: Nudge | None = None) -> Results | None:
        exact = self._base.reference(nudge)
        if exact is None:
            return None
        whole = self._all(exact) if {*self._keys} <= {*exact.beside} else exact
        return self._pick(whole) if _counts(whole) == self._counts else None


def _counts(results: Results) -> tuple[int, int, int]:
    return len(results.tensors), len(results.numbers), len(results.others)
