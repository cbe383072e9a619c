"""What the user's code sees of a GPU that is not there.

``device="cuda"``, ``.to("cuda")``, ``.cuda()`` and ``torch.cuda.is_available()`` work, and a tensor
on the stand-in says that it is on ``cuda:0``. PyTorch's own code is told the truth: it asks a
tensor for its device in order to work with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from kernelcount.paper import adapter
from kernelcount.paper.cards import Card, device_properties
from kernelcount.paper.places import STAND_IN, device_of, is_gpu, redirected

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
    `compiles`: whether the user's code is to be compiled. Then ``torch.tensor`` is left alone,
    since a compiled function guards on it. `notice` is told of what runs on a GPU uncounted, and
    `seed` of each seed for the GPU's random numbers.
    """

    def __init__(
        self,
        card: Card,
        notice: Callable[[str], None],
        *,
        compiles: bool,
        seed: Callable[[int], None],
    ) -> None:
        self._card, self._notice, self._compiles = card, notice, compiles
        self._seed = seed
        self._kept = ExitStack()
        self._patches: ExitStack | None = None

    def __enter__(self) -> AGpu:
        import torch

        self._kept.enter_context(adapter.cuda_not_started())
        # A compiled function guards on the functions that it calls, so these must stay the same.
        _replace(self._kept, torch.cuda, _cuda(self._card, self._seed))
        shown = torch.compiler.disable(_representation(self._notice))
        _replace(self._kept, torch.Tensor, {"__repr__": shown})
        if not self._compiles:
            _replace(self._kept, torch, _factories())
            _replace(self._kept, torch.autocast, _autocast(self._notice))
        self.put_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
        self._kept.close()

    def put_on(self) -> None:
        """Begin, or go on, to pretend."""
        import torch

        if self._patches is None:
            self._patches = ExitStack()
            _replace(self._patches, torch.Tensor, _tensor_methods())

    def lift(self) -> None:
        """Let everything be as it is."""
        if self._patches is not None:
            self._patches.close()
            self._patches = None


def _replace(stack: ExitStack, owner: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        stack.enter_context(mock.patch.object(owner, name, value))


def _tensor_methods() -> dict[str, Any]:
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
    methods = {"to": moved, "cuda": cuda, "get_device": get_device}
    return {**methods, **{name: property(getter) for name, getter in told.items()}}


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
        """autocast.__enter__; without CUDA torch leaves it off, and no cast is seen."""
        if self.device == "cuda":
            notice("casts of autocast")
        return enter(self)

    return {"__enter__": entered}


def _factories() -> dict[str, Any]:
    """Those that go to C++ before anybody could change their device."""
    import torch

    tensor, as_tensor = torch.tensor, torch.as_tensor

    def made(data: Any, *, device: Any = None, **kwargs: Any) -> Any:
        """torch.tensor; for the GPU it is made on the host and copied, as it is there."""
        if not is_gpu(device):
            return tensor(data, device=device, **kwargs)
        wanted = kwargs.pop("requires_grad", False)
        return tensor(data, **kwargs).to(STAND_IN).requires_grad_(wanted)

    def taken(data: Any, dtype: Any = None, device: Any = None) -> Any:
        """torch.as_tensor, the same way."""
        if not is_gpu(device):
            return as_tensor(data, dtype=dtype, device=device)
        return as_tensor(data, dtype=dtype).to(STAND_IN)

    return {"tensor": made, "as_tensor": taken}


def _cuda(card: Card, seed: Callable[[int], None]) -> dict[str, Callable[..., Any]]:
    """What is asked of torch.cuda most, answered as for one card."""
    import torch

    real = torch.cuda.is_available

    def is_available() -> bool:
        """Whether a GPU is there: yes for the user, also in a trace; the truth for torch itself."""
        name = sys._getframe(1).f_globals.get("__name__", "")
        of_torch = name.startswith("torch.") and not name.startswith("torch._dynamo.variables")
        return real() if of_torch else True

    return {
        "is_available": torch.compiler.assume_constant_result(is_available),
        "synchronize": lambda *_: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: f"NVIDIA {card.name}",
        "get_device_capability": lambda *_: card.capability,
        "get_device_properties": lambda *_: device_properties(card),
        "manual_seed": seed,
        "manual_seed_all": seed,
        "empty_cache": lambda: None,
        "is_bf16_supported": lambda *_, **__: card.capability >= (8, 0),
    }
