"""What the user's code sees of a GPU that is not there.

``device="cuda"``, ``.to("cuda")``, ``.cuda()`` and ``torch.cuda.is_available()`` work, and a tensor
on the stand-in says that it is on ``cuda:0``. PyTorch's own code is told the truth: it asks a
tensor for its device in order to work with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from kernelcount.paper import adapter
from kernelcount.paper.cards import Card
from kernelcount.paper.places import STAND_IN, device_of, redirected

# These parts of torch act for the user: to them a tensor on the stand-in is on the GPU.
_FOR_THE_USER = ("torch.nn", "torch.optim", "torch.utils.checkpoint", "torch.distributions")


@contextmanager
def a_gpu(card: Card) -> Iterator[None]:
    """Let the user's code believe that `card` is there."""
    import torch

    with ExitStack() as stack:
        stack.enter_context(adapter.cuda_not_started())
        for name, value in {**_tensor_methods(), **_factories()}.items():
            owner: Any = torch if name in ("tensor", "as_tensor") else torch.Tensor
            stack.enter_context(mock.patch.object(owner, name, value))
        for name, value in _cuda(card).items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        yield


def _tensor_methods() -> dict[str, Any]:
    import torch

    to = torch.Tensor.to

    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Tensor.to, with the stand-in for the GPU; a number is an index of one."""
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = (STAND_IN, *args[1:])
        return to(self, *map(redirected, args), **{k: redirected(v) for k, v in kwargs.items()})

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Tensor.cuda, to the stand-in."""
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

    return {
        "to": moved,
        "cuda": cuda,
        "device": property(device),
        "is_cuda": property(is_cuda),
        "is_meta": property(is_meta),
        "get_device": get_device,
    }


def _is_users() -> bool:
    """Whether the code that asks, two frames up, is the user's."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return not name.startswith("torch.") or name.startswith(_FOR_THE_USER)


def _factories() -> dict[str, Any]:
    """The two that go to C++ before anybody could change their device."""
    import torch

    tensor, as_tensor = torch.tensor, torch.as_tensor

    def made(data: Any, *, device: Any = None, **kwargs: Any) -> Any:
        """torch.tensor, on the stand-in for the GPU."""
        return tensor(data, device=redirected(device), **kwargs)

    def taken(data: Any, dtype: Any = None, device: Any = None) -> Any:
        """torch.as_tensor, on the stand-in for the GPU."""
        return as_tensor(data, dtype=dtype, device=redirected(device))

    return {"tensor": made, "as_tensor": taken}


def _cuda(card: Card) -> dict[str, Callable[..., Any]]:
    """What is asked of torch.cuda most, answered as for one card."""
    import torch

    real = torch.cuda.is_available

    def is_available() -> bool:
        """Whether a GPU is there: yes for the user, the truth for torch's compiler."""
        name = sys._getframe(1).f_globals.get("__name__", "")
        return True if not name.startswith("torch.") else real()

    return {
        "is_available": is_available,
        "synchronize": lambda *_: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: f"NVIDIA {card.name}",
        "get_device_capability": lambda *_: card.capability,
        "get_device_properties": lambda *_: adapter.device_properties(card),
        "manual_seed": lambda *_: None,
        "manual_seed_all": lambda *_: None,
        "empty_cache": lambda: None,
        "is_bf16_supported": lambda *_, **__: card.capability >= (8, 0),
    }
