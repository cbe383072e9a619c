"""Calls of the target: on a device, by a variant, as the user asked for them."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from kernelcount.devices import Device
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.inputs import Arguments
from kernelcount.model import Environment, Note, Target
from kernelcount.nesting import tensors
from kernelcount.probes import configs
from kernelcount.state import UserState
from kernelcount.variants import VARIANTS, Variant

Progress = Callable[[str], None]

_LAZY = (GeneratorType, map, filter, zip)


@dataclass(frozen=True)
class Subject:
    """What is counted: the target with its arguments, on a device.

    `remake` makes the arguments anew from another seed: other values at other addresses. `seconds`:
    how long times may be taken, 0 for none; `reference`: whether results are held against the same
    in float64; `cold`: whether calls are timed with arguments in turn that no cache holds;
    `explain`: whether more may be done than a plain run does, to tell why.
    """

    target: Target
    arguments: Arguments
    remake: Callable[[int], Arguments]
    device: Device
    environment: Environment
    seed: int = 0
    backward: bool = False
    no_grad: bool = False
    seconds: float = 0.0
    reference: bool = False
    cold: bool = False
    explain: bool = False
    notes: tuple[Note, ...] = ()
    fresh: list[Arguments] = field(default_factory=list)
    """Further sets of arguments that were made, kept so that no address of theirs comes back."""


@dataclass(frozen=True)
class Way:
    """A variant with what it runs: the function as the user wrote it, and what is called."""

    variant: Variant
    function: Callable[..., Any]
    call: Callable[..., Any]


def way(variant: Variant, function: Callable[..., Any]) -> Way:
    """The way to run `function` that the variant is: compiled, for one."""
    return Way(variant, function, VARIANTS[variant.kind].apply(function, variant))


Given = tuple[tuple[Any, ...], dict[str, Any]]


class Invocation:
    """Calls of the target as the user asked for them, backward included."""

    def __init__(self, function: Callable[..., Any], subject: Subject) -> None:
        self.function, self.subject = function, subject
        self._process = os.getpid()
        self._seeds: dict[tuple[object, ...], Any] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it once, consume what it yields, and go backward where that was asked for.

        Gives what the call gave. Raises whatever the user's code raises.
        """
        import torch

        with torch.no_grad() if self.subject.no_grad else nullcontext():
            result = self.function(*args, **kwargs)
            if os.getpid() != self._process:
                os._exit(0)  # a child that the function forked has come back into our code
            if isinstance(result, _LAZY):
                # Without a backward pass each part may be freed before the next is made. On paper
                # there is nothing to free, and what is made belongs to what must be written.
                kept = self.subject.backward or self.subject.device.kind == "paper"
                result = list(result) if kept else deque(result, maxlen=0)
            elif inspect.isawaitable(result) or inspect.isasyncgen(result):
                raise _runs_nothing(result)
        if self.subject.backward:
            self.go_back(result)
        return result

    def of(self, function: Callable[..., Any]) -> Invocation:
        """The same calls of another function."""
        other = Invocation(function, self.subject)
        other._seeds = self._seeds
        return other

    def go_back(self, result: Any) -> None:
        """Go backward from what the call gave.

        Raises NotMeasuredError where nothing of it requires grad.
        """
        import torch

        outputs = [t for t in tensors(result) if t.requires_grad]
        if not outputs:
            raise NotMeasuredError("--backward: nothing that the function returns requires grad")
        torch.autograd.backward(outputs, [self._ones(t) for t in outputs])

    @property
    def seeds(self) -> list[Any]:
        """The gradients with which calls so far went backward."""
        return list(self._seeds.values())

    def _ones(self, output: Any) -> Any:
        """Ones like the output, made in the warm-up, so that no profile holds their making."""
        import torch

        key = (output.shape, output.dtype, output.device, output.stride())
        if key not in self._seeds:
            self._seeds[key] = torch.ones_like(output)
        return self._seeds[key]


def _runs_nothing(result: Any) -> UsageError:
    if inspect.iscoroutine(result):
        result.close()  # or Python would warn that it was never awaited
    kind = type(result).__name__.replace("_", " ")
    return UsageError(
        f"the function returns a {kind}, which runs nothing by itself: name a function that runs it"
    )


@contextmanager
def calling(
    subject: Subject, way: Way, prepared: AbstractContextManager[Any] | None = None
) -> Iterator[tuple[Invocation, UserState]]:
    """What holds while a variant is called; the user's state is put back at its end.

    `prepared`: in place of what the device asks for.
    """
    given = (subject.arguments.args, subject.arguments.kwargs)
    with ExitStack() as stack:
        stack.enter_context(configs.kept())
        stack.enter_context(prepared or subject.device.prepare())
        state = UserState(way.function, given, backward=subject.backward)
        stack.callback(state.restore)
        stack.enter_context(VARIANTS[way.variant.kind].during())
        yield Invocation(way.call, subject), state
