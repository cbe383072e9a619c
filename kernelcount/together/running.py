"""One variant, ready to be called again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from kernelcount.capture import WARM_UPS, Invocation, Subject, Way, profiled
from kernelcount.memory import is_out_of_memory
from kernelcount.model import Outcome
from kernelcount.nesting import tensors
from kernelcount.probes import configs, randomness, timing
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
        subject, cache, size = self._subject, self._subject.device.l2(), bytes_given(self._subject)
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


def bytes_given(subject: Subject) -> int:
    """What the arguments of a call hold, each storage once."""
    given = tensors((subject.arguments.args, subject.arguments.kwargs))
    return sum({t.untyped_storage().data_ptr(): t.nbytes for t in given}.values())
