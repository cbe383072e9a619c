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
import functools
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from kernelcount.contents import Contents, is_library, told
from kernelcount.memory import available
from kernelcount.nesting import inside, renewed, tensors
from kernelcount.settings import Settings, generators

if TYPE_CHECKING:
    import torch

_SHARE = 4  # copies take a quarter of the free memory at most: the call needs the rest
_REACH = 10_000  # things looked at behind a function; a program has no more that a call changes


def module_of(function: Any) -> torch.nn.Module | None:
    """The nn.Module that is called, if one is: itself, by a method of its own, or by a partial."""
    import torch

    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", function)
    return owner if isinstance(owner, torch.nn.Module) else None


def held(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor | None]]:
    """Parameters and buffers of a module and of those inside it, by name, None among them."""
    for prefix, inner in module.named_modules():
        for table in _tables_of_one(inner):
            for name, tensor in table.items():
                yield f"{prefix}.{name}" if prefix else name, tensor


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
        room = _Room(settled)
        reached = _Reached(function, arguments)
        given = _once(tensors(arguments))
        self._arguments = arguments
        self._at_first = Contents((*arguments[0], *arguments[1].values()))
        self._lends = any(isinstance(value, list | dict | set) for value in self._at_first.known)
        self._lent: Contents | None = None
        self._refilled = self._replaced = False
        inside = _without(_once(iter(self._at_first.tensors)), given)
        own = _without(_of_module(module_of(function)), given, inside)
        beside = _without(reached.tensors, given, inside, own)
        self._held = Contents(_tables_of(module_of(function)))
        self._given = [_Kept(t, room, also_in_main_memory=True) for t in given]
        self._inside = [_Kept(t, room, also_in_main_memory=True) for t in inside]
        self._own = [_Kept(t, room) for t in own]
        self._beside = [_Kept(t, room) for t in beside]
        self._gradients = [_Gradient(t, room) for t in (*given, *inside, *own) if t.is_leaf]
        self._gradients_beside = [_Gradient(t, room) for t in beside if t.is_leaf]
        self._structures: list[_Module | _Optimizer] = [
            *(_Module(m) for m in reached.modules),
            *(_Optimizer(o) for o in reached.optimizers),
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


# ── one tensor ───────────────────────────────────────────────────────────────────────────────────


class _Room:
    """How much memory the copies may take, on each device."""

    def __init__(self, without: Collection[int] = ()) -> None:
        self._left: dict[str, int] = {}
        self._without = without

    def take(self, tensor: torch.Tensor, *, also_in_main_memory: bool) -> str | None:
        """The device for a copy: the tensor's own, else main memory, else None: no room."""
        import torch

        if id(tensor) in self._without:
            return None
        own = str(tensor.device)
        for device in (own, "cpu") if also_in_main_memory and own != "cpu" else (own,):
            if device not in self._left:
                api = getattr(torch, torch.device(device).type, None)
                measure = getattr(api, "mem_get_info", None)
                free = available() if measure is None else measure(device)[0]
                self._left[device] = int(free) // _SHARE
            if tensor.nbytes <= self._left[device]:
                self._left[device] -= tensor.nbytes
                return device
        return None


class _Kept:
    """One tensor with a copy of its contents, and the storage and strides that it had."""

    def __init__(
        self, tensor: torch.Tensor, room: _Room, *, also_in_main_memory: bool = False
    ) -> None:
        self.tensor = self._tensor = tensor
        self.was_changed = self.lost = self._unseen = False
        self._was_leaf, self._requires_grad = tensor.is_leaf, tensor.requires_grad
        self._copy = _clone(tensor, room, also_in_main_memory)
        self._storage = tensor.untyped_storage() if self._copy is not None else None
        self._layout = _layout(tensor)
        self._version = _version(tensor)

    def restore(self) -> None:
        """Put contents, storage and strides back where they have changed."""
        try:
            self._restore()
        except RuntimeError:  # no memory, a device that has failed, a view that cannot be detached
            self.lost = True

    @property
    def is_changed(self) -> bool:
        """Whether a call has changed it, or may have."""
        return self.was_changed or self._is_changed() or self._is_moved()

    def overlook(self) -> None:
        """Take it as it is now for what it was."""
        self._layout, self._version = _layout(self._tensor), _version(self._tensor)

    def compare(self) -> None:
        """Look whether the contents have changed although the version has not."""
        if self._unseen or self._copy is None or self._version is None:
            return
        same = _version(self._tensor) == self._version and not self._is_moved()
        if same and self._differs():
            self._unseen = self.was_changed = True

    def forget_if_unchanged(self) -> None:
        """Free the copy where no call has changed the tensor."""
        self.compare()
        if not self.is_changed:
            self._copy = self._storage = None

    def _restore(self) -> None:
        import torch

        tensor = self._tensor
        if self._was_leaf and not tensor.is_leaf:
            tensor.detach_()  # or the graph would grow from call to call
        if tensor.is_leaf and tensor.requires_grad != self._requires_grad:
            tensor.requires_grad_(self._requires_grad)
        moved = self._is_moved()
        if not moved and not self._is_changed():
            return
        self.was_changed = True
        if self._copy is None or self._storage is None:
            self.lost = True
        else:
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                if moved:
                    self._move_back(self._storage)
                tensor.copy_(self._copy)
        self._layout, self._version = _layout(tensor), _version(tensor)

    def _is_moved(self) -> bool:
        return _layout(self._tensor) != self._layout

    def _is_changed(self) -> bool:
        if self._version is None:  # an inference tensor does not count its versions
            return self._copy is not None and self._differs()
        return self._unseen or _version(self._tensor) != self._version

    def _differs(self) -> bool:
        """Whether the contents are others than at first, as far as can be told; NaN equals NaN."""
        import torch

        assert self._copy is not None
        try:
            now, then = self._tensor.detach(), self._copy.to(self._tensor.device)
            if torch.equal(now, then):
                return False
            return not bool(((now == then) | (now.isnan() & then.isnan())).all())
        except RuntimeError:  # no memory for it, or a dtype that knows no comparison
            return False

    def _move_back(self, storage: torch.UntypedStorage) -> None:
        """Have the tensor show the storage again that it showed at first."""
        import torch

        tensor = self._tensor
        offset, size, stride, dtype = self._layout[1:]
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        if 0 not in size and storage.nbytes() < (last + 1) * dtype.itemsize:
            storage.resize_((last + 1) * dtype.itemsize)
        empty = torch.empty(0, dtype=dtype, device=storage.device)
        tensor.data = empty.set_(storage, offset, size, stride)


class _Gradient:
    """The ``.grad`` of a leaf."""

    def __init__(self, leaf: torch.Tensor, room: _Room) -> None:
        self.leaf = self._leaf = leaf
        self._gradient, self._was_another = leaf.grad, False
        self._kept = None if leaf.grad is None else _Kept(leaf.grad, room)

    @property
    def is_changed(self) -> bool:
        """Whether a call has changed it, or put another in its place."""
        another = self._was_another or self._leaf.grad is not self._gradient
        return another or (self._kept is not None and self._kept.is_changed)

    def clear(self) -> None:
        """Have none."""
        self._leaf.grad = None

    def restore(self) -> None:
        """Have the one it had, with the contents it had."""
        if self._kept is not None:
            self._kept.restore()
        if self._leaf.is_leaf and self._leaf.grad is not self._gradient:
            self._leaf.grad = self._gradient
            self._was_another = True


def _once(found: Iterator[torch.Tensor]) -> list[torch.Tensor]:
    return list({id(t): t for t in found}.values())


def _without(found: list[torch.Tensor], *known: list[torch.Tensor]) -> list[torch.Tensor]:
    ids = {id(t) for some in known for t in some}
    return [t for t in found if id(t) not in ids]


def _of_module(module: torch.nn.Module | None) -> list[torch.Tensor]:
    return [] if module is None else _once(iter((*module.parameters(), *module.buffers())))


def _tables_of(module: torch.nn.Module | None) -> list[dict[str, Any]]:
    """Where a module and those inside keep their parameters and buffers, None among them."""
    return [t for m in (() if module is None else module.modules()) for t in _tables_of_one(m)]


def _tables_of_one(module: torch.nn.Module) -> list[dict[str, Any]]:
    tables = [vars(module).get(name) for name in ("_parameters", "_buffers")]
    if all(isinstance(table, dict) for table in tables):
        return cast("list[dict[str, Any]]", tables)
    # A scripted module keeps them elsewhere: they can be named, and no other put in their place.
    named = (module.named_parameters(recurse=False), module.named_buffers(recurse=False))
    return [dict(table) for table in named]


def _version(tensor: torch.Tensor) -> int | None:
    """How often it was changed in place; None for an inference tensor, which does not count."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return None


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Where it lies and how: address of the storage, offset, size, strides, dtype; or nothing."""
    try:
        place = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
        return (*place, tuple(tensor.size()), tuple(tensor.stride()), tensor.dtype)
    except (RuntimeError, TypeError):  # sparse, nested, a subclass without any
        return ()


def _clone(tensor: torch.Tensor, room: _Room, also_in_main_memory: bool) -> torch.Tensor | None:
    """A copy with the same strides; None where there is none to be had (memory, meta, sparse)."""
    import torch

    if tensor.device.type == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    try:
        device = room.take(tensor, also_in_main_memory=also_in_main_memory)
        if device is None:
            return None
        with torch.no_grad():
            empty = torch.empty_strided(
                tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device
            )
            return empty.copy_(tensor)
    except (RuntimeError, TypeError):  # elements that share a place: never written in place
        return None


# ── what a function reaches beside its arguments ─────────────────────────────────────────────────


class _Reached:
    """Modules, tensors and optimizers in a function's closures and globals, and behind objects."""

    def __init__(self, function: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        import torch

        self.modules: list[torch.nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        found: list[torch.Tensor] = []
        seen: dict[int, Any] = {}
        waiting = [function, *arguments[0], *arguments[1].values()]
        while waiting and len(seen) < _REACH:
            value = waiting.pop()
            if id(value) in seen or isinstance(value, type):
                continue
            seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, torch.nn.Module):
                self.modules += value.modules()
                found += (*value.parameters(), *value.buffers())
                held = (v for m in value.modules() for v in vars(m).values())
                waiting += (v for v in held if isinstance(v, torch.optim.Optimizer))
            elif isinstance(value, torch.optim.Optimizer):
                self.optimizers.append(value)
                waiting += (p for group in value.param_groups for p in group["params"])
                found += tensors(list(value.state.values()))
            else:
                waiting += _behind(value)
        self.tensors = _once(iter(found))


def _behind(value: Any) -> Iterator[Any]:
    """What is one step behind a value."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        if not is_library(value.__module__):
            yield from _behind_function(value)
    elif isinstance(value, list | tuple | set | frozenset | dict):
        yield from inside(value)
    elif not isinstance(value, ModuleType) and not is_library(type(value).__module__):
        with contextlib.suppress(Exception):  # the user's own attributes may raise anything
            yield from list(vars(value).values())
    with contextlib.suppress(Exception):
        yield getattr(value, "__wrapped__", None)


def _behind_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType) and not is_library(value.__name__):
            yield from (vars(value).get(other) for other in names)


def names_in(code: CodeType) -> set[str]:
    """The names that a function's code and the functions inside it may look up."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


class _Module:
    """One module's mode, and which tensors it holds as parameters and buffers."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._training = module.training
        self._held = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_buffers(recurse=False)),
        }

    def restore(self) -> None:
        """Put both back."""
        module = self._module
        module.training = self._training
        for name, held in self._held.items():
            if getattr(module, name, None) is not held:
                setattr(module, name, held)


class _Optimizer:
    """An optimizer's settings, and which tensors its state holds."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._groups = [dict(group) for group in optimizer.param_groups]
        self._state = {key: dict(state) for key, state in optimizer.state.items()}

    def restore(self) -> None:
        """Put both back."""
        for group, held in zip(self._optimizer.param_groups, self._groups, strict=False):
            group.update(held)
        self._optimizer.state.clear()
        self._optimizer.state.update({key: dict(state) for key, state in self._state.items()})


# ── settings of the process ──────────────────────────────────────────────────────────────────────


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
