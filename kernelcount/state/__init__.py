"""The user's state: arguments, gradients, buffers, random numbers and settings as they were.

Each call of the target gets the arguments that the first one got. A tensor that was changed is
found by its version counter, or by its contents where the counter does not see it (a Triton kernel,
``.data``, NumPy), and is put back in place between the calls: addresses stay, for a CUDA graph of
the user's may hold them, and the copying is in no profile.

What the function reaches without being given it (a model in a global, an optimizer in a closure)
may change from call to call, as it would in the user's program; it is put back at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from kernelcount.contents import Contents, told
from kernelcount.nesting import renewed, tensors
from kernelcount.settings import Settings, generators
from kernelcount.state.kept import Gradient, Kept, Room
from kernelcount.state.modules import held, module_of, of_module, once, tables_of
from kernelcount.state.reached import Reached, names_in
from kernelcount.state.structures import KeptModule, KeptOptimizer

if TYPE_CHECKING:
    import torch

__all__ = ["UserState", "held", "module_of", "names_in"]


class UserState:
    """Remembers what the calls may change, and puts it back.

    `mutated` and `module_changed`: whether calls have changed an argument in place, or a parameter
    or buffer of the module that is called. `unrestored`: whether something was changed of which
    there is no copy, for want of memory. No copies are made of tensors whose
    ids are `settled`.
    """

    def __init__(
        self,
        function: Any,
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
        *,
        backward: bool,
        settled: Collection[int] = (),
    ) -> None:
        room = Room(settled)
        reached = Reached(function, arguments)
        given = once(tensors(arguments))
        self._arguments = arguments
        self._at_first = Contents((*arguments[0], *arguments[1].values()))
        self._lends = any(isinstance(value, list | dict | set) for value in self._at_first.known)
        self._lent: Contents | None = None
        self._refilled = self._replaced = False
        inside = _without(once(iter(self._at_first.tensors)), given)
        own = _without(of_module(module_of(function)), given, inside)
        beside = _without(reached.tensors, given, inside, own)
        self._held = Contents(tables_of(module_of(function)))
        self._given = [Kept(t, room, also_in_main_memory=True) for t in given]
        self._inside = [Kept(t, room, also_in_main_memory=True) for t in inside]
        self._own = [Kept(t, room) for t in own]
        self._beside = [Kept(t, room) for t in beside]
        self._gradients = [Gradient(t, room) for t in (*given, *inside, *own) if t.is_leaf]
        self._gradients_beside = [Gradient(t, room) for t in beside if t.is_leaf]
        self._structures: list[KeptModule | KeptOptimizer] = [
            *(KeptModule(m) for m in reached.modules),
            *(KeptOptimizer(o) for o in reached.optimizers),
        ]
        self._backward = backward
        self._settings = _Settings()

    @property
    def mutated(self) -> bool:
        """Whether an argument was changed in place, or what it holds."""
        return self._refilled or any(k.was_changed for k in (*self._given, *self._inside))

    @property
    def module_changed(self) -> bool:
        """Whether a parameter or buffer of the called module was, or is another one."""
        return self._replaced or any(k.was_changed for k in self._own)

    @property
    def unrestored(self) -> bool:
        """Whether something was changed that could not be put back."""
        return any(k.lost for k in (*self._given, *self._inside, *self._own))

    @property
    def touched(self) -> tuple[set[int], set[int]]:
        """The ids of what calls have changed without being given it, and of leaves by gradients.

        Those of arguments are among these.
        """
        gradients = (*self._gradients, *self._gradients_beside)
        return (
            {id(k.tensor) for k in (*self._inside, *self._beside) if k.is_changed},
            {id(g.leaf) for g in gradients if g.is_changed},
        )

    @property
    def settled(self) -> set[int]:
        """The ids of tensors that no call has changed so far, or that are put back before each."""
        alone = (k for k in self._beside if not k.is_changed)
        return {id(k.tensor) for k in (*self._given, *self._inside, *self._own, *alone)}

    @property
    def known(self) -> list[torch.Tensor]:
        """All tensors that the function is given and reaches."""
        return [k.tensor for k in (*self._given, *self._inside, *self._own, *self._beside)]

    @contextlib.contextmanager
    def overlooked(self) -> Iterator[None]:
        """Do not take for changed what is shown meanwhile in the place of the contents."""
        every = (*self._given, *self._inside, *self._own, *self._beside)
        alone = [k for k in every if not k.is_changed]
        try:
            yield
        finally:
            for kept in alone:
                kept.overlook()

    @property
    def reached(self) -> list[torch.Tensor]:
        """What the function may change without being given it, its own module's first."""
        return [k.tensor for k in (*self._own, *self._inside, *self._beside)]

    def before_call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put arguments, buffers and gradients back; the arguments, in containers of their own.

        With `backward`, no tensor that is known holds a gradient afterwards.
        """
        self._put_in_again()
        for kept in (*self._given, *self._inside, *self._own):
            kept.restore()
        for gradient in self._gradients:
            gradient.clear() if self._backward else gradient.restore()
        if self._backward:
            for gradient in self._gradients_beside:
                gradient.clear()
        args, kwargs = renewed(self._arguments)
        if self._lends and not self._refilled:
            self._lent = Contents((*args, *kwargs.values()))
        return args, kwargs

    def contents(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """What the arguments that a call was given hold, each with the name of its place."""
        named = [(f"argument {i}", value) for i, value in enumerate(args, 1)]
        named += [(f"argument {name}", value) for name, value in kwargs.items()]
        return told(named, self._at_first)

    def look_closely(self) -> None:
        """Find what the calls so far have changed behind the version counter's back."""
        self.look_at_contents()
        for kept in (*self._given, *self._inside, *self._own):
            kept.compare()

    def forget_unchanged(self) -> None:
        """Free the copies of what the calls so far have left alone."""
        for kept in (*self._given, *self._inside, *self._own, *self._beside):
            kept.forget_if_unchanged()

    def rewind(self) -> None:
        """Have what it reaches without being given it, too, as it was at first."""
        for structure in self._structures:
            structure.restore()
        for kept in self._beside:
            kept.restore()
        for gradient in self._gradients_beside:
            gradient.restore()

    def restore(self) -> None:
        """Leave everything as the user left it, as far as the device still answers."""
        self._put_in_again()
        for structure in self._structures:
            structure.restore()
        for kept in (*self._given, *self._inside, *self._own, *self._beside):
            kept.compare()
            kept.restore()
        for gradient in (*self._gradients, *self._gradients_beside):
            gradient.restore()
        self._settings.restore()

    def look_at_contents(self) -> None:
        """Note whether the last call has changed what the arguments or the module hold."""
        lent, self._lent = self._lent, None
        if self._at_first.changed() or (lent is not None and lent.changed()):
            self._refilled = True
        if not self._replaced:
            self._replaced = self._held.changed()

    def _put_in_again(self) -> None:
        """Have containers, objects and the module hold what they held at first."""
        lent, self._lent = self._lent, None
        restored = self._at_first.restore()
        self._refilled = self._refilled or restored or (lent is not None and lent.changed())
        self._replaced = self._held.restore() or self._replaced


def _without(found: list[torch.Tensor], *known: list[torch.Tensor]) -> list[torch.Tensor]:
    ids = {id(t) for some in known for t in some}
    return [t for t in found if id(t) not in ids]


class _Settings:
    """Random numbers, torch's global settings, and the current folder."""

    def __init__(self) -> None:
        self._random = [(put, get()) for get, put in generators()]
        self._settings = Settings()

    def restore(self) -> None:
        """Put all back that has changed."""
        for put, state in self._random:
            with contextlib.suppress(RuntimeError):
                put(state)
        self._settings.restore()
