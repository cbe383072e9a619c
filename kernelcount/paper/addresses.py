"""Where tensors on the stand-in lie: they have no memory, and say so to torch's own code alone.

To the user's, tensors lie at one place where they share a storage, and apart where they do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from kernelcount.paper import adapter
from kernelcount.paper.places import STAND_IN, is_on
from kernelcount.paper.scene import Scene

# torch's own code, and what keeps the user's state, must know that there is no memory.
_TOLD_THE_TRUTH = ("torch.", "kernelcount.")

MARK = "KERNELCOUNT_TAKES_ADDRESSES"
"""A module that has this name, and true under it, is told the truth as well: on paper each address
is 0. It is for code that gives addresses to kernels of its own, which then can say that there are
none, by NotMeasuredError for one."""

# A storage's own object lies at a multiple of 16 bytes, as malloc has it; CUDA's allocator gives
# memory at multiples of 512 (kMinBlockSize in c10/core/AllocatorConfig.h).
_SPREAD = 512 // 16

_ASKED = (
    "where its tensors lie in memory; told of distinct places for distinct storages, not of those"
    " that a GPU's allocator would use again"
)


def _is_told_the_truth(asking: FrameType) -> bool:
    names = asking.f_globals
    return str(names.get("__name__", "")).startswith(_TOLD_THE_TRUTH) or bool(names.get(MARK))


def of_tensors(scene: Scene) -> Callable[[Any], int]:
    """Tensor.data_ptr, stable as long as the storage lives. Raises what torch's own raises."""
    import torch

    real = torch.Tensor.data_ptr

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def told(tensor: Any, asking: FrameType) -> int:
        address = int(real(tensor))
        if not is_on(tensor) or not tensor.numel() or _is_told_the_truth(asking):
            return address  # 0 without elements, as on a GPU
        scene.told.setdefault(_ASKED)
        start = adapter.unique_id(tensor) * _SPREAD
        return start + int(tensor.storage_offset()) * int(tensor.element_size())

    def data_ptr(self: Any) -> int:
        """Tensor.data_ptr."""
        return told(self, sys._getframe(1))  # type: ignore[no-any-return]

    return data_ptr


def of_storages(scene: Scene) -> Callable[[Any], int]:
    """UntypedStorage.data_ptr, the same way."""
    import torch

    real = torch.UntypedStorage.data_ptr

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def told(storage: Any, asking: FrameType) -> int:
        address = int(real(storage))
        on_gpu = storage.device.type == STAND_IN
        if not on_gpu or not storage.nbytes() or _is_told_the_truth(asking):
            return address
        scene.told.setdefault(_ASKED)
        return adapter.storage_id(storage) * _SPREAD

    def data_ptr(self: Any) -> int:
        """UntypedStorage.data_ptr."""
        return told(self, sys._getframe(1))  # type: ignore[no-any-return]

    return data_ptr
