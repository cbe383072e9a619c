"""Which torch device plays the GPU, and which tensors are on it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kernelcount.errors import NotMeasuredError

STAND_IN = "meta"
"""The device that plays the GPU: its tensors have shapes, strides and autograd, and no memory."""


def is_on(value: Any, kind: str = STAND_IN) -> bool:
    """Whether a value is a tensor on this kind of device, whatever the user's code is told."""
    import torch

    return isinstance(value, torch.Tensor) and device_of(value).type == kind


def refuse_layouts(values: Iterable[Any]) -> None:
    """Raises NotMeasuredError where a tensor is not laid out by strides: sparse, nested."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
            name = str(value.layout).removeprefix("torch.")
            raise NotMeasuredError(f"tensors with layout {name} are not counted on paper")


def device_of(tensor: Any) -> Any:
    """The torch device of a tensor, whatever the user's code is told."""
    return tensor.fake_device if hasattr(tensor, "fake_device") else _getter()(tensor)


@lru_cache(maxsize=1)
def _getter() -> Any:
    import torch

    # The attribute of the class above torch.Tensor: there it stays torch's own.
    base: Any = torch.Tensor.__mro__[1]
    return base.device.__get__


def is_gpu(device: Any) -> bool:
    """Whether a device, as the user names it, is the GPU; a number is an index of one."""
    if isinstance(device, int):
        return not isinstance(device, bool)
    return str(device).partition(":")[0] in ("cuda", STAND_IN)


def redirected(value: Any) -> Any:
    """A device that is asked for -> the one that plays it; anything else as it is."""
    import torch

    if isinstance(value, torch.device):
        return torch.device(STAND_IN) if value.type == "cuda" else value
    return STAND_IN if isinstance(value, str) and value.partition(":")[0] == "cuda" else value
