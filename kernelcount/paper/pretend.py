"""What the user's code sees of a GPU that is not there.

``device="cuda"``, ``.to("cuda")``, ``.cuda()`` and ``torch.cuda.is_available()`` work, and a tensor
on the stand-in says that it is on ``cuda:0``. PyTorch's own code is told the truth: it asks a
tensor for its device in order to work with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from unittest import mock

from kernelcount.paper import adapter, addresses, autocast, cuda, graphs, streams, threads, waits
from kernelcount.paper.cards import Card
from kernelcount.paper.places import STAND_IN, device_of, is_gpu, is_on, redirected
from kernelcount.paper.scene import Scene
from kernelcount.paper.steps import mapped
from kernelcount.paper.waits import Pinned

# These parts of torch act for the user: to them a tensor on the stand-in is on the GPU.
_FOR_THE_USER = (
    "torch.nn",
    "torch.optim",
    "torch.utils.checkpoint",
    "torch.distributions",
    "torch._higher_order_ops.associative_scan",
)

# What keeps the user's state must know that there is no memory to keep.
_TOLD_THE_TRUTH = ("torch.", "kernelcount.state")


class AGpu:
    """Lets the user's code believe that `card` is there, while it is open and not lifted.

    It is lifted while torch compiles: its compiler looks at the tensor class that is changed here.
    `compiles`: whether the user's code is to be compiled.
    """

    def __init__(self, scene: Scene, card: Card, *, compiles: bool = False) -> None:
        self._scene, self._card, self._compiles = scene, card, compiles
        self._kept = ExitStack()
        self._patches: ExitStack | None = None

    def __enter__(self) -> AGpu:
        import torch

        apart, notice = torch.compiler.disable, self._scene.note_open

        def read(what: str) -> None:
            """Something of torch's looks at the elements of a tensor."""
            self._scene.note_wait("copy to host", what)
            notice(what)

        def cast(what: str) -> None:
            notice(what, waits=False)

        self._kept.enter_context(adapter.cuda_not_started())
        self._answer()
        _replace(self._kept, torch.Tensor, {"__repr__": apart(_representation(read))})
        _replace(self._kept, torch, {"save": apart(_saving(read))})
        started, submitted = map(apart, threads.starting(self._scene))
        _replace(self._kept, threading.Thread, {"start": started})
        _replace(self._kept, ThreadPoolExecutor, {"submit": submitted})
        self._make()
        if not self._compiles:
            self._kept.enter_context(autocast.followed(cast))
        else:
            _replace(self._kept, torch.autocast, _autocast(cast))
        self.put_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
        self._kept.close()

    def _answer(self) -> None:
        """Put what stands in for torch.cuda in its place.

        A compiled function guards on the functions that it calls, so these must stay the same.
        """
        import torch

        constant = torch.compiler.assume_constant_result
        refused = streams.not_compiled(self._scene)
        answers = cuda.answers(self._card, self._scene)
        self._kept.enter_context(adapter.traced_like(answers))
        waiting = streams.waiting(self._scene)
        real = {stand_in: adapter.resolve(f"torch.{name}") for name, stand_in in waiting.items()}
        self._kept.enter_context(adapter.waits_traced(real))
        for rows in (
            answers,
            {name: constant(value) for name, value in cuda.constants(self._card).items()},
            streams.standing_in(self._scene, refused),
            waiting,
            graphs.standing_in(self._scene, refused),
            {} if self._compiles else {"Generator": _generator()},
        ):
            for name, value in rows.items():
                _put(self._kept, name, value)

    def _make(self) -> None:
        """Put what stands in for the makers of tensors in its place.

        A compiled function guards on them, so they stay while torch compiles, and do nothing then.
        """
        import torch

        made = _factories(lambda: self._patches is None)
        real = {stand_in: getattr(torch, name) for name, stand_in in made.items()}
        self._kept.enter_context(adapter.traced_as(real))
        for stand_in in real:
            adapter.never_compiled(stand_in)
        _replace(self._kept, torch, made)

    def put_on(self) -> None:
        """Begin, or go on, to pretend."""
        import torch

        if self._patches is None:
            self._patches = ExitStack()
            methods = _tensor_methods(self._scene.pinned)
            addressed = addresses.of_tensors(self._scene), addresses.of_storages(self._scene)
            for method in (*methods.values(), *addressed):
                adapter.never_compiled(getattr(method, "fget", method))
            _replace(self._patches, torch.Tensor, {**methods, "data_ptr": addressed[0]})
            _replace(self._patches, torch.UntypedStorage, {"data_ptr": addressed[1]})

    def lift(self) -> None:
        """Let everything be as it is."""
        if self._patches is not None:
            self._patches.close()
            self._patches = None


def _put(stack: ExitStack, name: str, value: Any) -> None:
    """Replace torch's attribute of this dotted name, also where its package has it."""
    import torch

    *modules, attribute = name.split(".")
    owner: Any = torch
    for module in ["", *modules]:
        owner = getattr(owner, module, None) if module else owner
        # A name that this torch does not have is not asked for either.
        if owner is not None and (owner is not torch or not modules) and hasattr(owner, attribute):
            _replace(stack, owner, {attribute: value})


def _replace(stack: ExitStack, owner: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        stack.enter_context(mock.patch.object(owner, name, value))


def _tensor_methods(pinned: Pinned) -> dict[str, Any]:
    import torch

    to = torch.Tensor.to

    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Tensor.to, with the stand-in for the GPU; a number is an index of one."""
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = (STAND_IN, *args[1:])
        return to(self, *map(redirected, args), **{k: redirected(v) for k, v in kwargs.items()})

    def cuda(self: Any, _: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Tensor.cuda, to the stand-in."""
        kwargs.pop("device", None)
        return to(self, STAND_IN, non_blocking=non_blocking, **kwargs)

    def device(self: Any) -> Any:
        """Tensor.device: the GPU for the stand-in, but for torch's own code."""
        real = device_of(self)
        return torch.device("cuda:0") if real.type == STAND_IN and _is_users() else real

    def is_cuda(self: Any) -> bool:
        """Tensor.is_cuda, as `device` has it."""
        return bool(device_of(self).type in (("cuda", STAND_IN) if _is_users() else ("cuda",)))

    def is_meta(self: Any) -> bool:
        """Tensor.is_meta: hidden from the user's code."""
        return bool(device_of(self).type == "meta" and not _is_users())

    def get_device(self: Any) -> int:
        """Tensor.get_device: 0 for the GPU, -1 for the CPU."""
        return 0 if device_of(self).type in ("cuda", STAND_IN) else -1

    told = {"device": device, "is_cuda": is_cuda, "is_meta": is_meta}
    methods = {"to": moved, "cuda": cuda, "get_device": get_device, **_more_methods(to, pinned)}
    return {**methods, **{name: property(getter) for name, getter in told.items()}}


def _more_methods(to: Callable[..., Any], pinned: Pinned) -> dict[str, Any]:
    import torch

    form = torch.Tensor.__format__

    def record_stream(self: Any, _: Any) -> None:
        """Tensor.record_stream: nothing is freed on paper."""

    def pin_memory(self: Any, *_: Any) -> Any:
        """Tensor.pin_memory: another place of the host's memory."""
        made = self.clone()
        pinned.note(made)
        return made

    def formatted(self: Any, spec: str) -> str:
        """Tensor.__format__: a number for a tensor without dimensions."""
        plain = is_on(self) and self.dim() == 0
        return format(self.item(), spec) if plain else str(form(self, spec))

    return {
        "new_tensor": _making_anew(),
        "__setitem__": _putting(),
        "__format__": formatted,
        "record_stream": record_stream,
        "pin_memory": pin_memory,
        "type": _typing(to),
    }


def _typing(to: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    kind = torch.Tensor.type

    def typed(self: Any, wanted: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Tensor.type, with CUDA's types, which a tensor on the stand-in has."""
        if wanted is None:
            name = str(kind(self))
            return name.replace(f"torch.{STAND_IN}.", "torch.cuda.") if is_on(self) else name
        if isinstance(wanted, str) and wanted.startswith("torch.cuda."):
            wanted = getattr(torch.cuda, wanted.rpartition(".")[2], wanted)
        if getattr(wanted, "__module__", "") == "torch.cuda":
            return to(self, STAND_IN, wanted.dtype)
        return kind(self, wanted, *args, **kwargs)

    return typed


def _making_anew() -> Callable[..., Any]:
    import torch

    anew = torch.Tensor.new_tensor

    def made_anew(self: Any, data: Any, **kwargs: Any) -> Any:
        """Tensor.new_tensor: made on the host and copied, as torch.tensor does."""
        if not (is_on(self) if kwargs.get("device") is None else is_gpu(kwargs["device"])):
            return anew(self, data, **kwargs)
        options = {"dtype": self.dtype, "device": STAND_IN, **kwargs}
        return torch.tensor(data, **{k: redirected(v) for k, v in options.items()})

    return made_anew


def _putting() -> Callable[..., None]:
    import torch

    put = torch.Tensor.__setitem__

    def put_in(self: Any, index: Any, value: Any) -> None:
        """Tensor.__setitem__: a number is put on the host first, as for CUDA (indexing.cpp)."""
        if is_on(self) and isinstance(value, bool | int | float | complex):
            number = torch.tensor(value, dtype=self.dtype, device="cpu")
            waits.of_numbers(lambda: put(self, index, number))
        else:
            put(self, index, value)

    return put_in


def _is_users() -> bool:
    """Whether the code that asks, two frames up, is the user's."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return not name.startswith(_TOLD_THE_TRUTH) or name.startswith(_FOR_THE_USER)


def _representation(notice: Callable[[str], None]) -> Callable[..., str]:
    import torch

    real = torch.Tensor.__repr__

    def representation(self: Any, **kwargs: Any) -> str:
        """Tensor.__repr__, which runs ops on a GPU tensor to find how to print it."""
        if device_of(self).type != STAND_IN:
            return str(real(self, **kwargs))
        notice("Tensor.__repr__")
        return f"tensor(..., device='cuda:0', size={tuple(self.shape)}, dtype={self.dtype})"

    return representation


def _autocast(notice: Callable[[str], None]) -> dict[str, Any]:
    import torch

    enter = torch.autocast.__enter__

    def entered(self: Any) -> Any:
        """autocast.__enter__; no cast is seen on the stand-in."""
        result = enter(self)
        if self.device == "cuda" and torch.is_autocast_enabled("cuda"):
            notice("casts of autocast")
        return result

    return {"__enter__": entered}


def _saving(notice: Callable[[str], None]) -> Callable[..., Any]:
    import torch

    save = torch.save

    def saved(*args: Any, **kwargs: Any) -> Any:
        """torch.save, which copies a GPU's tensors to the host first."""
        notice("torch.save")
        return save(*args, **kwargs)

    return saved


def _generator() -> type:
    import torch

    class Generator(torch.Generator):  # type: ignore[misc]
        """torch.Generator; the CPU's for every device."""

        def __new__(cls, device: Any = "cpu") -> Generator:
            made: Generator = super().__new__(cls, device="cpu")
            made.asked = torch.device(device)
            return made

        @property
        def device(self) -> Any:
            """The device that was asked for."""
            return self.asked

    return Generator


def _factories(is_lifted: Callable[[], bool]) -> dict[str, Any]:
    """Those that go to C++ before anybody could change their device.

    `is_lifted`: whether torch's own are meant just now.
    """

    def is_wanted(device: Any) -> bool:
        return not is_lifted() and is_gpu(adapter.default_device() if device is None else device)

    return {"tensor": _making(is_wanted), "as_tensor": _taking(is_wanted)}


def _making(is_wanted: Callable[[Any], bool]) -> Callable[..., Any]:
    import torch

    tensor = torch.tensor

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def on_gpu(data: Any, requires_grad: bool, **kwargs: Any) -> Any:
        data = mapped(data, lambda v: v.item() if is_on(v) and v.dim() == 0 else v)
        host = tensor(data, device="cpu", **kwargs)
        if isinstance(data, torch.Tensor):
            return host.to(STAND_IN).requires_grad_(requires_grad)
        return waits.of_numbers(lambda: host.to(STAND_IN).requires_grad_(requires_grad))

    def made(data: Any, *, device: Any = None, requires_grad: bool = False, **kwargs: Any) -> Any:
        """torch.tensor; for the GPU it is made on the host and copied, as it is there."""
        if is_wanted(device):
            return on_gpu(data, requires_grad, **kwargs)
        return tensor(data, device=device, requires_grad=requires_grad, **kwargs)

    return made


def _taking(is_wanted: Callable[[Any], bool]) -> Callable[..., Any]:
    import torch

    as_tensor = torch.as_tensor

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def on_gpu(data: Any, dtype: Any) -> Any:
        if not isinstance(data, torch.Tensor):
            host = as_tensor(data, dtype=dtype, device="cpu")
            # An array's memory is the user's, and could be pinned.
            own = hasattr(data, "__array_interface__")
            return host.to(STAND_IN) if own else waits.of_numbers(lambda: host.to(STAND_IN))
        return data.to(STAND_IN, data.dtype if dtype is None else dtype)

    def taken(data: Any, dtype: Any = None, device: Any = None) -> Any:
        """torch.as_tensor, the same way."""
        if is_wanted(device):
            return on_gpu(data, dtype)
        return as_tensor(data, dtype=dtype, device=device)

    return taken
