"""What can only be said of several variants of one target in one process: times, taken in turn.

It comes after all of them are counted. Whatever fails here costs no count.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from kernelcount import noise, rates, verdict
from kernelcount.capture import WARM_UPS, Invocation, Progress, Subject, Way, profiled
from kernelcount.devices import DEVICES
from kernelcount.memory import is_out_of_memory
from kernelcount.model import (
    NO_TIME,
    NOT_TIMED,
    Capture,
    LaunchCosts,
    Note,
    Numerics,
    Outcome,
    Timing,
    Work,
)
from kernelcount.nesting import tensors
from kernelcount.probes import configs, launching, randomness, timing
from kernelcount.probes.agreement import alone, beside
from kernelcount.probes.doubles import in_float64
from kernelcount.probes.kept import Results, kept
from kernelcount.probes.nudge import Nudge
from kernelcount.probes.widened import widened
from kernelcount.settings import OwnSettings
from kernelcount.state import UserState, held, module_of
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
    explain: Callable[[BaseException], str],
    scratch: str | None = None,
) -> list[Capture]:
    """The captures with the time of a call, and the memory it takes, where these can be measured.

    A variant that raises meanwhile costs its own times and results, not those of the others; a
    note has what `explain` words of it. Traces are put below the folder `scratch`; None: where
    temporary files go. Raises what goes wrong beside the variants' calls; their state is put back.
    """
    captures = [capture for _, capture in counted]
    timed: dict[int, Timed] = {}
    with ExitStack() as stack:
        stack.enter_context(configs.kept())
        stack.enter_context(subject.device.prepare())

        def failed(i: int, error: BaseException) -> None:
            if isinstance(error, KeyboardInterrupt):
                raise error
            if i in timed:
                timed.pop(i).run.put_back()
            note = Note(NOT_TIMED, f"not timed: {explain(error)}")
            captures[i] = replace(captures[i], notes=(*captures[i].notes, note))

        for i, (way, capture) in enumerate(counted):
            try:
                timed[i] = Timed(Running(way, subject, stack), capture)
            except BaseException as error:  # noqa: BLE001  whatever user code raises costs its times
                failed(i, error)
        progress("comparing the results")
        compared = _compared(timed, failed, wanted=subject.reference)
        progress("timing")
        _in_turn(timed, failed, subject)
        disturbed = subject.device.disturbed()
        progress("profiling, for the times")
        _take_median_times(subject, timed, failed, scratch)
        costs = _launching(subject, list(timed.values()))
    names = tuple(t.candidate.name for t in timed.values())
    served = _served_by_cache(subject, [t.candidate for t in timed.values()])
    for i, t in timed.items():
        captures[i] = replace(
            t.capture,
            peak_memory=t.run.peak_memory,
            numerics=compared.get(i),
            timing=Timing(tuple(t.candidate.samples), t.candidate.batch, names, costs),
            notes=(*t.capture.notes, *served, *disturbed, *_imprecise(t.candidate, timed.values())),
        )
    return captures


class Timed:
    """A variant that takes its turns, with what was counted of it."""

    def __init__(self, run: Running, capture: Capture) -> None:
        self.run, self.capture = run, capture
        run.draws_as_it_says = not (run.compiles or _is_compiled(capture))
        self.candidate = run.candidate()


def _is_compiled(capture: Capture) -> bool:
    """Whether code of torch.compile's ran, which has a random number generator of its own."""
    generated = (r.activity == "generated" or r.name[:7] == "triton_" for r in capture.rows())
    return capture.breaks is not None or any(generated)


Failed = Callable[[int, BaseException], None]
"""Takes the position of a variant that raised, and what: it is left out from then on."""


def _in_turn(timed: dict[int, Timed], failed: Failed, subject: Subject) -> None:
    """Time those that do not raise; where one does, the others once more without it."""
    while timed:
        candidates = {i: t.candidate for i, t in timed.items()}
        try:
            seconds = subject.seconds * timing.shares(len(candidates))
            timing.in_turn(list(candidates.values()), subject.device, seconds)
        except BaseException as error:
            i = next((i for i, c in candidates.items() if c.failed is error), None)
            if i is None:
                raise
            failed(i, error)
            for candidate in candidates.values():
                candidate.samples.clear()
        else:
            return


def _take_median_times(
    subject: Subject, timed: dict[int, Timed], failed: Failed, scratch: str | None
) -> None:
    """Give each record the median of its times in several profiled calls, in turn.

    They come after the time pass, and each after a turn of unprofiled calls: the GPU's clock, which
    falls while it waits for a compile, is up then. As many as `subject.seconds` have room for. On
    the CPU an operation's time is that of a single call: nobody compares it.
    """
    if subject.device.kind == "cpu":
        return
    until = monotonic() + subject.seconds * timing.shares(len(timed))
    took = sum(median(t.candidate.samples) for t in timed.values()) / 1e9
    seen: dict[int, list[array[int]]] = {i: [] for i in timed}
    with TemporaryDirectory(prefix="kernelcount-", dir=scratch) as folder:
        for _ in range(PROFILED):
            if monotonic() + took > until:
                break
            for i, t in list(timed.items()):
                try:
                    timing.turn(t.candidate, subject.device)
                    found = t.run.profiled(Path(folder))
                except BaseException as error:  # noqa: BLE001  whatever user code raises
                    failed(i, error)
                    continue
                # Where streams overlap the order may change: such a call is left out.
                if isinstance(found, Capture) and _order(found) == _order(t.capture):
                    seen[i].append(found.records.duration_ns)
    for i, t in timed.items():
        t.capture = _at_median(t.capture, seen[i])


def _launching(subject: Subject, timed: Sequence[Timed]) -> LaunchCosts | None:
    """What launching costs here, where the GPU is idle for the most of a call and nobody knows."""
    where = subject.environment
    if subject.device.kind == "cpu":
        return None
    idle = [t for t in timed if t.capture.busy_ns < verdict.MOST * median(t.candidate.samples)]
    compiling = any(t.run.compiles for t in idle)
    known = rates.kept(where.device or "", where.torch or "")
    if not idle or (known and known.eager_ns and (known.compiled_ns or not compiling)):
        return None
    given = tensors((subject.arguments.args, subject.arguments.kwargs))
    places = (str(t.device) for t in given if t.device.type != "cpu")
    kind = subject.device.kind
    return _launch_costs(kind, next(places, kind), compiling=compiling)


@cache
def _launch_costs(kind: str, name: str, *, compiling: bool) -> LaunchCosts | None:
    """The same, measured once in a process."""
    return launching.costs(DEVICES[kind], name, compiling=compiling)


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
        self.compiles = self._kind.compiles
        self._settings = OwnSettings(*configs.switches())
        self._state = UserState(way.function, given, backward=subject.backward)
        stack.callback(self._state.restore)
        self._function = way.function
        self._invocation = Invocation(way.call, subject)
        self.peak_memory: int | None = None
        self.draws_as_it_says = False  # known once it is known that no compiled code runs
        self.raised: BaseException | None = None  # by a call whose results were to be kept
        module = module_of(way.function)
        own = [] if module is None else list(held(module))
        self._held = dict.fromkeys(name for name, _ in own)
        self._names = {id(tensor): name for name, tensor in own if tensor is not None}
        self.tells: tuple[set[Any], set[Any]] = (set(), set())  # keys, as `_beside` has them
        self.tells_arguments = self.tells_module = False
        self._warm_up()

    def _warm_up(self) -> None:
        """Call it, a few times or as long as times may be taken, and find out what that changes."""
        # What was compiled may have been dropped since, and the caches of both are cold.
        started = monotonic()
        try:
            with self.during():
                for call in range(1, WARM_UPS + 1):
                    self._invocation(*self._state.before_call())
                    if call == 1:
                        self._state.look_closely()
                    if monotonic() - started > self._subject.seconds:
                        break
        except BaseException:
            self.put_back()
            raise
        self._subject.device.synchronize()
        self._state.forget_unchanged()
        self._state.before_call()  # the next one is to begin with what this one was given

    @contextmanager
    def during(self) -> Iterator[None]:
        """What holds while it is called, with the settings that its own calls have left."""
        with self._kind.during(), self._also(), self._settings.held():
            yield

    def results(self, *, reseeded: bool = False) -> tuple[Results, randomness.Drawn]:
        """Copies of what a call gives and changes, and what it draws of random numbers.

        Each call begins with the same random numbers, or, `reseeded`, with others. Gradients count
        where it goes backward.
        """
        args, kwargs = self._state.before_call()
        results: list[Any] = []
        with self._left_as_it_was():
            with randomness.fixed(self._subject.seed ^ reseeded) as drawn, self.during():
                try:
                    self.peak_memory = self._subject.device.peak_memory(
                        lambda: results.append(self._invocation(args, kwargs))
                    )
                except BaseException as error:
                    self.raised = error
                    raise
                draws = drawn()
            if not self.draws_as_it_says:
                draws = randomness.Drawn(draws.any)
            self._state.look_at_contents()
            changed = self._changed(args, kwargs)
            return kept(results, (args, kwargs), changed, self._beside()), draws

    @contextmanager
    def _left_as_it_was(self) -> Iterator[UserState]:
        """Put back what a call changes, also what it is not given, for the calls of all variants.

        So they all begin alike. Gives what there is to be changed.
        """
        import torch

        given = (self._subject.arguments.args, self._subject.arguments.kwargs)
        now = UserState(self._function, given, backward=False, settled=self._state.settled)
        place = getattr(getattr(self._function, "__func__", self._function), "__globals__", {})
        named = {n: v for n, v in list(place.items()) if isinstance(v, torch.Tensor)}
        try:
            yield now
        finally:
            place.update(named)  # another tensor may have been put there, one in float64 even
            now.restore()
            self.put_back()

    def put_back(self) -> None:
        """Have the next call, be it another variant's, begin with what this one's began with."""
        with suppress(RuntimeError):  # of a device that has failed
            self._state.before_call()

    def rewind(self) -> None:
        """Have what it reaches without being given it, too, as it was before its first call."""
        with suppress(RuntimeError):  # of a device that has failed
            self._state.rewind()

    @property
    def changes_arguments(self) -> bool:
        """Whether a call, or one of another variant, changes what it is given."""
        return self.tells_arguments or self._state.mutated

    @property
    def changes_module(self) -> bool:
        """Whether a call changes parameters or buffers of the module, or one of another does."""
        return self.tells_module or self._state.module_changed

    @property
    def touches(self) -> tuple[set[Any], set[Any]]:
        """Of what its calls change without being given it the keys: of values, and of gradients."""
        values, gradients = self._state.touched
        return {self._names.get(i, i) for i in values}, {self._names.get(i, i) for i in gradients}

    @property
    def _tells_gradients(self) -> bool:
        given = tensors((self._subject.arguments.args, self._subject.arguments.kwargs))
        return any(id(tensor) in self.tells[1] for tensor in given)

    def _beside(self) -> dict[Any, tuple[str, Any]]:
        """Gradients of what it reaches without being given it, and what became of its own module.

        By name, so that modules of two variants compare; of another's parameters, by themselves.
        """
        module = module_of(self._function)
        own: dict[str, Any] = {}
        if module is not None:
            own = {**self._held, **dict(held(module))}  # None for what has been taken out
        names = self._names
        found: dict[Any, tuple[str, Any]] = {}
        values, gradients = self.tells
        if self.changes_module:
            found = {(n, "value"): (f"{n} afterwards", t) for n, t in own.items()}
        for i, tensor in enumerate(self._state.reached, 1):
            name = names.get(id(tensor))
            called = name or f"tensor {i} that is reached"
            key = name or id(tensor)
            if key in values:
                found[key, "value"] = (f"{called} afterwards", tensor)
            wants = self._subject.backward and tensor.is_leaf and tensor.requires_grad
            if wants or key in gradients:
                found[key, "gradient"] = (f"the gradient of {called}", tensor.grad)
        return found

    def _changed(self, *given: Any) -> Iterator[tuple[str, Any]]:
        """The arguments that a call may have changed, and their gradients, each with its name."""
        if self.changes_arguments:
            yield from self._state.contents(*given)
        wanted = self._subject.backward or self._tells_gradients
        for i, tensor in enumerate(tensors(given), 1):
            if wanted and tensor.is_leaf and tensor.grad is not None:
                yield f"the gradient of argument {i}", tensor.grad

    def profiled(self, scratch: Path) -> Outcome:
        """What one call launches, by the profiler."""
        args, kwargs = self._state.before_call()
        with self._turn():
            call = partial(self._invocation, args, kwargs)
            return profiled(self._subject, self.name, scratch, call)

    def reference(self, nudge: Nudge | None = None) -> Results | None:
        """What a call gives and changes in float64; None where the function does not run in it.

        `nudge` moves what it is given, what it reaches, and what it makes of that.
        """
        import torch

        args, kwargs = self._state.before_call()
        try:
            with (
                self._left_as_it_was() as now,
                self._state.overlooked(),
                in_float64(now.known, nudge) as shown,
                randomness.fixed(self._subject.seed),
                self.during(),
                torch.compiler.set_stance("force_eager"),
                nudge.operations() if nudge else nullcontext(),
                widened(shown),
            ):
                result = Invocation(self._function, self._subject)(args, kwargs)
                return kept(result, (), self._changed(args, kwargs), self._beside())
        except Exception as error:
            if is_out_of_memory(error):
                raise
            return None

    def candidate(self) -> timing.Candidate:
        """The variant to be timed; call by call where a call changes what it is given."""
        if self._subject.backward or self._state.mutated or self._state.module_changed:
            return timing.Candidate(self.name, [self._on_renewed], self._turn, self._renew)
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

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """What holds while it is timed; the others find the arguments as they were."""
        try:
            with self.during():
                yield
        finally:
            self.put_back()

    def _renew(self) -> None:
        self._arguments = self._state.before_call()

    def _on_renewed(self) -> object:
        return self._invocation(*self._arguments)


def _compared(
    timed: dict[int, Timed], failed: Failed, *, wanted: bool
) -> dict[int, Numerics | None]:
    """The results of each beside those of the first, which has none itself. Also takes memory.

    How far they are from the truth is found out where they differ, or where that is `wanted`. Where
    memory is lacking, that may be for the copies' sake, and whatever else goes wrong in copying and
    comparing is none of the variants' doing: they can be timed all the same.
    """
    found: dict[int, Numerics | None] = {}
    runs = [t.run for t in timed.values()]
    for run in runs:  # what one changes is compared with what the others leave alone
        run.tells_arguments = any(r.changes_arguments for r in runs)
        run.tells_module = any(r.changes_module for r in runs)
    touched = [run.touches for run in runs]
    for run in runs:
        run.tells = set().union(*(v for v, _ in touched)), set().union(*(g for _, g in touched))
    for run in reversed(runs):  # each begins with what the first call of all began with
        run.rewind()
    expected: tuple[Running, tuple[Results, randomness.Drawn]] | None = None
    without = "the first variant has no results"
    for i, t in list(timed.items()):
        try:
            if i == 0:
                expected = t.run, t.run.results()
                found[i] = alone(*expected) if wanted else None
            elif expected is None:
                t.run.results()  # for the memory that it takes
                found[i] = Numerics("unknown", 0, notes=(without,))
            else:
                found[i] = beside(*expected, t.run, wanted=wanted)
        except BaseException as error:  # noqa: BLE001  whatever user code raises costs its times
            users = any(run.raised is error for run in runs) or not isinstance(error, Exception)
            if users and not is_out_of_memory(error):
                failed(i, error)
                continue
            reason = _incomparable(error)
            found[i] = Numerics("unknown", 0, notes=(reason,)) if i else None
            without = without if i else reason
    return found


def _incomparable(error: BaseException) -> str:
    """Why results are not compared: what copies or compares them here has failed."""
    if is_out_of_memory(error):
        return "no memory to keep the results of two variants"
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    return f"cannot be compared: {said}"


def _bytes(subject: Subject) -> int:
    given = tensors((subject.arguments.args, subject.arguments.kwargs))
    return sum({t.untyped_storage().data_ptr(): t.nbytes for t in given}.values())


def _served_by_cache(subject: Subject, candidates: Sequence[timing.Candidate]) -> list[Note]:
    """Say where the arrays fit into the cache: such times are not those of the GPU's memory."""
    cache, size = subject.device.l2(), _bytes(subject)
    if cache is None and subject.cold:
        return [Note("not-cold", "--cold: how much the cache of this device holds is not known")]
    size *= max(len(c.calls) for c in candidates)
    if cache is None or not 0 < size < cache:
        return []
    detail = f"the inputs fit into the L2 cache ({cache >> 20} MB): --cold keeps them out of it"
    return [Note("served-by-l2", detail)]


def _imprecise(candidate: timing.Candidate, turns: Iterable[Timed]) -> list[Note]:
    """Say where a time is not as precise as it was to be, and how much longer would do."""
    width = noise.half_width(candidate.samples)
    if width is not None and width <= noise.PRECISION:
        return []
    taken = len(candidate.samples)
    if taken >= noise.FEWEST:
        detail = (
            f"the time of a call is not known to ±{noise.PRECISION:.0%}: --seconds gives it more"
        )
        return [Note("imprecise", detail)]
    times = "once" if taken == 1 else f"{taken} times"
    candidates = [t.candidate for t in turns]
    enough = ceil(timing.enough(candidates) / timing.shares(len(candidates)))
    detail = f"timed {times}, too seldom to tell which is faster: --seconds {enough} is enough"
    return [Note("imprecise", detail)]
