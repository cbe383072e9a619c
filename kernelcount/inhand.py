"""A target that the caller holds in hand: a function of this process, with its arguments.

It is counted as one that a spec names. What it finds its tensors in (its arguments, and modules,
optimizers, closures and globals behind it) is moved to the device before, and put back at the end.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import setitem
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from kernelcount.contents import is_library
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.inputs import Arguments
from kernelcount.model import Capture, Outcome, Unmeasured
from kernelcount.nesting import inside, tensors
from kernelcount.probes import configs
from kernelcount.probes.compiler import trace_unheard
from kernelcount.state import UserState, names_in

if TYPE_CHECKING:
    import torch

_REACH = 10_000  # things looked at behind a function, as in `state`
_TORCHS_OWN = ("_parameters", "_buffers", "_modules")  # of a module, and looked at apart
_NOTHING_THERE = (
    "it launches nothing, and no tensor that it reaches is on a GPU: pass it the tensors as"
    " arguments"
)
_PERHAPS_REMEMBERED = (
    "it launches nothing, and whether its result is only remembered cannot be told: pass it the"
    " tensors as arguments"
)
_STAYED_BEHIND = (
    "the arguments were taken to the GPU, and a tensor of the function's own is on the host: have"
    " it made on its arguments' device, or pass it as an argument"
)
_TWO_DEVICES = "Expected all tensors to be on the same device"  # as torch words it

Function = Callable[..., Any]
Put = Callable[[Any], object]


class InHand:
    """A function and other implementations of it by variant, and what they are called with.

    `arguments` None: they are made by `maker`, or generated. `errors`: what variants raised, by
    name, where it costs that variant alone.
    """

    def __init__(
        self,
        function: Function,
        arguments: Arguments | None = None,
        *,
        others: Mapping[str, Function] | None = None,
        maker: Function | None = None,
    ) -> None:
        self.function, self.maker, self.others = function, maker, dict(others or {})
        self.errors: dict[str, BaseException] = {}
        self._arguments = arguments
        self._carried: Carried | None = None
        self._modes: list[tuple[torch.nn.Module, bool]] = []

    @property
    def has_arguments(self) -> bool:
        """Whether the caller gave the arguments."""
        return self._arguments is not None

    def carry(self, device: str) -> None:
        """Have all that the functions reach on this device of torch's, until `back`."""
        if self._carried is not None:
            return
        given = self._arguments or Arguments()
        roots = (self.function, *self.others.values(), *given.args, *given.kwargs.values())
        self._carried = Carried(roots)
        if device != "cpu":
            self._carried.to(device)
        elif (other := self._carried.elsewhere()) is not None:
            raise UsageError(f"device cpu: a tensor that the function reaches is on {other}")

    def evaluate(self, module: torch.nn.Module) -> None:
        """Put a module in eval mode, until `back`."""
        self._modes += ((m, m.training) for m in module.modules())
        module.eval()

    def here(self, value: Any) -> Any:
        """A function or an argument where it is counted."""
        return value if self._carried is None else self._carried.here(value)

    def arguments(self, *, again: bool) -> Arguments:
        """The arguments where they are counted; `again`: copies of them, at other addresses."""
        given = self._arguments or Arguments()
        args = tuple(map(self.here, given.args))
        kwargs = {name: self.here(value) for name, value in given.kwargs.items()}
        if again:
            args = rebuilt(args, _copied, {})
            kwargs = rebuilt(kwargs, _copied, {})
        return Arguments(args, kwargs)

    def proven(self, outcome: Outcome, called_with: Arguments) -> Outcome:
        """The outcome, where a zero of it is one of a function that had something on a GPU."""
        if not isinstance(outcome, Capture) or outcome.on_cpu or len(outcome.records):
            return outcome
        given = any(True for _ in tensors((called_with.args, called_with.kwargs)))
        made = given and not self.has_arguments
        if not made and (self._carried is None or not self._carried.placed):
            return Unmeasured(outcome.name, _NOTHING_THERE, outcome)
        # Fresh arguments have shown, or paper by the first call, that no result is remembered.
        if not given and outcome.basis == "measured":
            return Unmeasured(outcome.name, _PERHAPS_REMEMBERED, outcome)
        return outcome

    def explained(self, error: BaseException) -> BaseException:
        """What an error is that is none of the caller's: not all could be taken to the device."""
        moved = self._carried is not None and self._carried.moved
        if moved and isinstance(error, RuntimeError) and _TWO_DEVICES in str(error):
            explained = NotMeasuredError(_STAYED_BEHIND)
            explained.__cause__ = error
            return explained
        return error

    def failed(self, name: str, error: BaseException, code: int, *, is_own: bool) -> None:
        """Keep what a variant raised; raise it where it is the caller's own to see.

        `code` is the exit code that it stands for. `is_own`: no other variant is at fault.
        """
        self.errors[name] = error
        if is_own and code != NotMeasuredError.code:
            raise error

    def back(self) -> None:
        """Put everything back where the caller had it."""
        carried, self._carried = self._carried, None
        if carried is not None:
            carried.back()
        for module, training in reversed(self._modes):
            module.training = training
        self._modes.clear()


class Carried:
    """Tensors that some values reach, moved to a device together, and put back.

    Where one of them is on an accelerator already, the caller has placed them, and none is moved.
    `placed`: whether any is on the device.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.placed = False
        self._reached = _Reached(roots)
        self._moved: dict[int, tuple[Any, Any]] = {}
        self._undo: list[Callable[[], object]] = []
        self._device: str | None = None

    def to(self, device: str) -> None:
        """Move all, unless the caller has."""
        reached = self._reached
        self.placed = self.elsewhere() is not None
        if self.placed or not reached.tensors:
            return
        self._device, self.placed = device, True
        for put, value in reached.places:
            if (moved := self.here(value)) is not value:
                self._undo.append(partial(put, value))
                put(moved)
        for module in reached.modules:
            self._move_module(module)
        for optimizer in reached.optimizers:
            self._move_optimizer(optimizer)

    @property
    def moved(self) -> bool:
        """Whether they were moved here."""
        return self._device is not None

    def elsewhere(self) -> torch.device | None:
        """The device of a tensor that is not on the host; None where there is none."""
        devices = (t.device for t in self._reached.tensors)
        return next((device for device in devices if device.type != "cpu"), None)

    def here(self, value: Any) -> Any:
        """The same where it is counted: tensors moved, also inside of containers and partials."""
        return value if self._device is None else rebuilt(value, self._tensor, {})

    def back(self) -> None:
        """Put all back, the last first."""
        while self._undo:
            self._undo.pop()()
        self._moved.clear()
        self._device = None

    def _move_module(self, module: torch.nn.Module) -> None:
        for table in (module._parameters, module._buffers):
            for name, tensor in list(table.items()):
                if tensor is not None and (moved := self._tensor(tensor)) is not tensor:
                    self._undo.append(partial(setitem, table, name, tensor))
                    table[name] = moved

    def _move_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Have it step what was moved. Its counts of steps stay on the host, as torch has them."""
        for group in optimizer.param_groups:
            params, before = group["params"], list(group["params"])
            self._undo.append(partial(setitem, params, slice(None), before))
            params[:] = [self._tensor(p) for p in before]
        state = dict(optimizer.state)
        moved = {
            self.here(p): {k: v if k == "step" else self.here(v) for k, v in held.items()}
            for p, held in state.items()
        }
        self._undo.append(partial(_refill, optimizer.state, state))
        _refill(optimizer.state, moved)

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type != "cpu":
            return tensor
        if id(tensor) not in self._moved:
            # The tensor is kept with what it became, so that its id stays its own.
            self._moved[id(tensor)] = (tensor, _on(tensor, str(self._device)))
        moved: torch.Tensor = self._moved[id(tensor)][1]
        return moved


def named(function: Function) -> str:
    """A function as ``module:name``, a module by its class, a partial by what it calls."""
    while isinstance(function, partial):
        function = function.func
    inner = getattr(function, "_orig_mod", function)  # torch.compile's wrapper of a module
    owner = inner if hasattr(inner, "__name__") else type(inner)
    return f"{getattr(owner, '__module__', None) or 'builtins'}:{owner.__name__}"


def rebuilt(value: Any, change: Callable[[Any], Any], done: dict[int, Any]) -> Any:
    """`value` with its tensors changed, in new containers where one of them holds any.

    Optimizers and modules stay what they are. A partial is one with other arguments.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, partial):
        func = rebuilt(value.func, change, done)
        args = rebuilt(value.args, change, done)
        keywords = rebuilt(value.keywords, change, done)
        same = func is value.func and args is value.args and keywords is value.keywords
        return value if same else type(value)(func, *args, **keywords)
    if type(value) is list:
        done[id(value)] = value
        new = [rebuilt(v, change, done) for v in value]
        done[id(value)] = value if all(a is b for a, b in zip(new, value, strict=True)) else new
    elif type(value) is dict:
        done[id(value)] = value
        table = {k: rebuilt(v, change, done) for k, v in value.items()}
        done[id(value)] = value if all(table[k] is v for k, v in value.items()) else table
    elif isinstance(value, tuple):
        parts = [rebuilt(v, change, done) for v in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        made = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        done[id(value)] = value if same else made
    else:
        return value
    return done[id(value)]


def _on(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """A tensor on the device: a parameter stays one, a leaf a leaf, with the gradient it has."""
    import torch

    if not tensor.is_leaf:
        return tensor.to(device)
    # A plain copy of a leaf would send its gradient to where it came from.
    moved = tensor.detach().to(device)
    if isinstance(tensor, torch.nn.Parameter):
        moved = torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
    else:
        moved.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        moved.grad = tensor.grad.detach().to(device)
    return moved


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """The same values at another address."""
    copy = tensor.detach().clone()
    return copy.requires_grad_(tensor.requires_grad) if tensor.is_leaf else copy


# ── what is behind a function, and where it hangs ────────────────────────────────────────────────


class _Reached:
    """What values reach: tensors, modules, optimizers, and the places that hold tensors.

    A place is how another value is put there, with the value that it holds.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.places: list[tuple[Put, Any]] = []
        self.tensors: list[torch.Tensor] = []
        self.modules: list[torch.nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        seen: dict[int, Any] = {}
        waiting: list[tuple[Put | None, Any]] = [(None, root) for root in roots]
        while waiting and len(seen) < _REACH:
            put, value = waiting.pop()
            if not self._take(put, value) and id(value) not in seen:
                seen[id(value)] = value
                waiting += self._behind(value)

    def _take(self, put: Put | None, value: Any) -> bool:
        """Note a place; whether nothing is behind the value."""
        import torch

        is_tensor = isinstance(value, torch.Tensor)
        if is_tensor:
            self.tensors.append(value)
        # What cannot be changed in place is put in another's.
        if put is not None and (is_tensor or isinstance(value, tuple | partial)):
            self.places.append((put, value))
        return is_tensor or isinstance(value, type)

    def _behind(self, value: Any) -> Iterator[tuple[Put | None, Any]]:
        import torch

        if isinstance(value, torch.nn.Module):
            own = list(value.modules())
            self.modules += own
            self.tensors += (*value.parameters(), *value.buffers())
            for m in own:
                if not is_library(type(m).__module__):
                    yield None, m.forward
                    yield from _of_table(vars(m), [k for k in vars(m) if k not in _TORCHS_OWN])
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers.append(value)
            self.tensors += (p for group in value.param_groups for p in group["params"])
        else:
            yield from _places(value)


def _places(value: Any) -> Iterator[tuple[Put | None, Any]]:
    """What is one step behind a value, each with how another is put in its place."""
    if isinstance(value, MethodType):
        yield from ((None, value.__self__), (None, value.__func__))
    elif isinstance(value, partial):
        yield from ((None, v) for v in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, FunctionType):
        if not is_library(value.__module__):
            yield from _of_function(value)
    elif isinstance(value, MutableMapping):
        yield from _of_table(value, list(value))
    elif isinstance(value, list):
        yield from ((partial(setitem, value, i), v) for i, v in enumerate(value))
    elif isinstance(value, tuple | set | frozenset):
        yield from ((None, v) for v in inside(value))
    elif not isinstance(value, ModuleType) and not is_library(type(value).__module__):
        with suppress(Exception):  # the user's own attributes may raise anything
            table = vars(value)
            yield from _of_table(table, list(table))
    with suppress(Exception):
        yield None, getattr(value, "__wrapped__", None)


def _of_table(table: MutableMapping[Any, Any], keys: Sequence[Any]) -> Iterator[tuple[Put, Any]]:
    return ((partial(setitem, table, key), table[key]) for key in keys if key in table)


def _of_function(function: FunctionType) -> Iterator[tuple[Put | None, Any]]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield partial(_fill, cell), cell.cell_contents
    if function.__defaults__:
        yield partial(setattr, function, "__defaults__"), function.__defaults__
    yield from _of_table(function.__kwdefaults__ or {}, list(function.__kwdefaults__ or {}))
    names = sorted(names_in(function.__code__))
    yield from _of_table(function.__globals__, names)
    for name in names:
        module = function.__globals__.get(name)
        if isinstance(module, ModuleType) and not is_library(module.__name__):
            yield from _of_table(vars(module), names)


def _fill(cell: CellType, value: Any) -> None:
    cell.cell_contents = value


def _refill(table: Any, held: Mapping[Any, Any]) -> None:
    table.clear()
    table.update(held)


# ── the process ──────────────────────────────────────────────────────────────────────────────────

_counting = threading.Lock()
_owner: int | None = None


@contextmanager
def as_it_was() -> Iterator[None]:
    """Leave the caller's process as it was, also after an error; one count at a time.

    Random numbers, torch's settings and those of its compiler, warning filters and the import
    path are put back. What torch.compile has compiled is forgotten, before and after: it compiles
    anew at the next call, and no count of ours is among the recompiles that it allows. The trace of
    what is compiled is kept from the logs.

    Raises UsageError inside of a call that is being counted.
    """
    global _owner  # noqa: PLW0603  who counts is one for the process, as is torch's profiler
    if _owner == threading.get_ident():
        raise UsageError("this call is being counted already: count the inner function by itself")
    with _counting:
        _owner = threading.get_ident()
        try:
            with _kept():
                yield
        finally:
            _owner = None


@contextmanager
def _kept() -> Iterator[None]:
    import torch

    path = list(sys.path)
    with warnings.catch_warnings(), configs.kept(), trace_unheard():
        # What torch's compiler warns of in torch's own code is not for a caller's -W error.
        warnings.filterwarnings("ignore", module=r"torch\b")
        state = UserState(None, ((), {}), backward=False)
        try:
            yield
        finally:
            state.restore()
            sys.path[:] = path
            torch.compiler.reset()
