"""What can only be said of several variants of one target in one process: times, taken in turn.

It comes after all of them are counted. Whatever fails here costs no count.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from kernelcount import noise
from kernelcount.capture import WARM_UPS, Invocation, Progress, Subject, Way, profiled
from kernelcount.memory import is_out_of_memory
from kernelcount.model import NO_TIME, Capture, Note, Numerics, Outcome, Timing, Work
from kernelcount.nesting import tensors
from kernelcount.probes import numerics, randomness, timing
from kernelcount.probes.compiler import stance_kept
from kernelcount.state import UserState, module_of
from kernelcount.variants import VARIANTS

_MOST_SETS = 1000
"""Of arguments that are rotated: more would take longer to make than to time, and where so many fit
into the cache it is launching that takes the time."""


PROFILED = 5
"""Profiled calls of which the median is a kernel's time. Of single calls on an H200, 95 of 100
pairs differ by less than 7 % at the worst (see render.figures)."""


def measure(
    subject: Subject,
    counted: Sequence[tuple[Way, Capture]],
    progress: Progress,
    scratch: str | None = None,
) -> list[Capture]:
    """The captures with the time of a call, and the memory it takes, where these can be measured.

    Traces are put below the folder `scratch`; None: where temporary files go.
    Raises whatever the user's code raises, with their state put back.
    """
    with ExitStack() as stack:
        stack.enter_context(stance_kept())
        stack.enter_context(subject.device.prepare())
        runs = [Running(way, subject, stack) for way, _ in counted]
        progress("comparing the results")
        compared = _compared(runs, wanted=subject.reference)
        candidates = [run.candidate() for run in runs]
        progress("timing")
        timing.in_turn(candidates, subject.device, subject.seconds)
        disturbed = subject.device.disturbed()
        progress("profiling, for the times")
        captures = _with_median_times(subject, runs, candidates, [c for _, c in counted], scratch)
    names = tuple(c.name for c in candidates)
    served = _served_by_cache(subject, candidates)
    return [
        replace(
            capture,
            peak_memory=run.peak_memory,
            numerics=found,
            timing=Timing(tuple(c.samples), c.batch, names),
            notes=(*capture.notes, *served, *disturbed, *_imprecise(c)),
        )
        for capture, run, c, found in zip(captures, runs, candidates, compared, strict=True)
    ]


def _with_median_times(
    subject: Subject,
    runs: Sequence[Running],
    candidates: Sequence[timing.Candidate],
    steady: Sequence[Capture],
    scratch: str | None,
) -> list[Capture]:
    """The captures, each record with the median of its times in several profiled calls, in turn.

    They come after the time pass, and each after a turn of unprofiled calls: the GPU's clock, which
    falls while it waits for a compile, is up then. As many as `subject.seconds` have room for. On
    the CPU an operation's time is that of a single call: nobody compares it.
    """
    if subject.device.kind == "cpu":
        return list(steady)
    until = monotonic() + subject.seconds
    took = sum(median(c.samples) for c in candidates) / 1e9
    seen: list[list[array[int]]] = [[] for _ in runs]
    with TemporaryDirectory(prefix="kernelcount-", dir=scratch) as folder:
        for _ in range(PROFILED):
            if monotonic() + took > until:
                break
            for run, candidate, capture, times in zip(runs, candidates, steady, seen, strict=True):
                timing.turn(candidate, subject.device)
                found = run.profiled(Path(folder))
                # Where streams overlap the order may change: such a call is left out.
                if isinstance(found, Capture) and _order(found) == _order(capture):
                    times.append(found.records.duration_ns)
    return [_at_median(capture, times) for capture, times in zip(steady, seen, strict=True)]


def _at_median(capture: Capture, others: Sequence[array[int]]) -> Capture:
    if not others:
        return capture
    times = array("q", map(_median, zip(*others, strict=True)))
    return replace(capture, records=replace(capture.records, duration_ns=times))


def _order(capture: Capture) -> list[Work]:
    records = capture.records
    return [records.works[w] for w in records.work]


def _median(times: Sequence[int]) -> int:
    known = [t for t in times if t != NO_TIME]
    return round(median(known)) if known else NO_TIME


class Running:
    """One variant, ready to be called again and again.

    `also` holds while it is called, beside what its kind asks for.
    """

    def __init__(
        self,
        way: Way,
        subject: Subject,
        stack: ExitStack,
        also: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        given = (subject.arguments.args, subject.arguments.kwargs)
        self.name, self._subject = way.variant.name, subject
        self._kind, self._also = VARIANTS[way.variant.kind], also
        self._state = UserState(way.function, given, backward=subject.backward)
        stack.callback(self._state.restore)
        self._function = way.function
        self._invocation = Invocation(way.call, subject)
        # What was compiled may have been dropped since, and the caches of both are cold.
        self.peak_memory: int | None = None
        started = monotonic()
        with self.during():
            for call in range(1, WARM_UPS + 1):
                self._invocation(*self._state.before_call())
                if call == 1:
                    self._state.look_closely()
                if monotonic() - started > subject.seconds:
                    break
        subject.device.synchronize()
        self._state.forget_unchanged()
        self._state.before_call()  # the next one is to begin with what this one was given

    @contextmanager
    def during(self) -> Iterator[None]:
        """What holds while it is called."""
        with self._kind.during(), self._also():
            yield

    def results(self) -> tuple[numerics.Results, bool]:
        """Copies of what a call gives and changes, and whether it draws random numbers.

        Each call begins with the same random numbers. Gradients count where it goes backward.
        """
        args, kwargs = self._state.before_call()
        results: list[Any] = []
        with randomness.fixed(self._subject.seed) as drawn, self.during():
            self.peak_memory = self._subject.device.peak_memory(
                lambda: results.append(self._invocation(args, kwargs))
            )
            draws = drawn()
        given = list(tensors((args, kwargs)))
        changed = list(given) if self._state.mutated else []
        if self._subject.backward:
            changed += [t.grad for t in given if t.is_leaf and t.grad is not None]
        return numerics.kept(results, given, changed), draws

    def profiled(self, scratch: Path) -> Outcome:
        """What one call launches, by the profiler."""
        args, kwargs = self._state.before_call()
        with self.during():
            call = partial(self._invocation, args, kwargs)
            return profiled(self._subject, self.name, scratch, call)

    def reference(self) -> list[Any] | None:
        """What a call gives and changes in float64; None where the function does not run in it."""
        import torch

        args, kwargs = numerics.doubled(self._state.before_call())
        function: Any = self._function
        try:
            if (module := module_of(function)) is not None:
                if function is not module:
                    return None
                function = copy.deepcopy(module).to(torch.float64)
            with randomness.fixed(self._subject.seed), self.during():
                result = Invocation(function, self._subject)(args, kwargs)
        except Exception:  # noqa: BLE001  the user's code was not written for this dtype
            return None
        found = [*tensors(result)]
        return [*found, *tensors((args, kwargs))] if self._state.mutated else found

    def candidate(self) -> timing.Candidate:
        """The variant to be timed; call by call where a call changes what it is given."""
        if self._subject.backward or self._state.mutated or self._state.module_changed:
            return timing.Candidate(self.name, [self._on_renewed], self.during, self._renew)
        sets = [self._state.before_call(), *self._more()]
        calls = [partial(self._invocation, *given) for given in sets]
        return timing.Candidate(self.name, calls, self.during)

    def _more(self) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Further arguments, twice what the cache holds at once, where that is asked."""
        subject, cache, size = self._subject, self._subject.device.l2(), _bytes(self._subject)
        if not subject.cold or cache is None or not size:
            return
        for i in range(min(_MOST_SETS, 2 * cache // size)):
            more = subject.remake(subject.seed + 1 + i)
            yield more.args, more.kwargs

    def _renew(self) -> None:
        self._arguments = self._state.before_call()

    def _on_renewed(self) -> object:
        return self._invocation(*self._arguments)


def _compared(runs: Sequence[Running], *, wanted: bool) -> list[Numerics | None]:
    """The results of each beside those of the first, which has none itself. Also takes memory.

    How far they are from the truth is found out where they differ, or where that is `wanted`.
    Raises what the user's code raises, but for lack of memory: that may be for the copies' sake.
    """
    try:
        expected = runs[0].results()
        rest = [beside(runs[0], expected, run, wanted=wanted) for run in runs[1:]]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = "no memory to keep the results of two variants"
        rest = [Numerics("unknown", 0, notes=(reason,)) for _ in runs[1:]]
    return [None, *rest]


def beside(
    base: Running,
    expected: tuple[numerics.Results, bool],
    run: Running,
    *,
    wanted: bool,
    in_its_dtypes: bool = False,
) -> Numerics:
    """The results of one variant beside `expected`, those of the first.

    With `in_its_dtypes`, another dtype is no difference of its own: how far the numbers are apart
    is what counts.
    """
    (first, draws), (got, also) = expected, run.results()
    if in_its_dtypes:
        got = numerics.in_dtypes_of(first, got)
    try:
        found = numerics.compare_results(first, got)
        if found.verdict == "different" and (draws or also):
            return Numerics("random", found.tensors)
        if found.verdict == "different" or wanted:
            return _with_reference(base, first, got, found)
    except (NotImplementedError, TypeError) as error:  # of tensors of a kind unknown here
        reason = f"cannot be compared: {error}".partition("\n")[0]
        return Numerics("unknown", len(got.tensors), notes=(reason,))
    return found


def _with_reference(
    base: Running, expected: numerics.Results, got: numerics.Results, found: Numerics
) -> Numerics:
    exact = base.reference()
    if exact is None:
        return found
    first, own = (numerics.error(exact, results.tensors) for results in (expected, got))
    dtypes = {str(t.dtype).removeprefix("torch.") for t in got.tensors}
    return numerics.with_reference(found, first, own, dtypes.pop() if len(dtypes) == 1 else "")


def _bytes(subject: Subject) -> int:
    given = tensors((subject.arguments.args, subject.arguments.kwargs))
    return sum({t.untyped_storage().data_ptr(): t.nbytes for t in given}.values())


def _served_by_cache(subject: Subject, candidates: Sequence[timing.Candidate]) -> list[Note]:
    """Say where the arrays fit into the cache: such times are not those of the GPU's memory."""
    cache, size = subject.device.l2(), _bytes(subject)
    size *= max(len(c.calls) for c in candidates)
    if cache is None or not 0 < size < cache:
        return []
    detail = f"the inputs fit into the L2 cache ({cache >> 20} MB): --cold keeps them out of it"
    return [Note("served-by-l2", detail)]


def _imprecise(candidate: timing.Candidate) -> list[Note]:
    width = noise.half_width(candidate.samples)
    if width is not None and width <= noise.PRECISION:
        return []
    detail = f"the time of a call is not known to ±{noise.PRECISION:.0%}: --seconds gives it more"
    return [Note("imprecise", detail)]
