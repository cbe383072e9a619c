"""Adapter to torch's dispatcher: which matrix products and convolutions a call makes in float32.

What autocast turns into another dtype is seen as what it has become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kernelcount.nesting import tensors

FAMILIES: Mapping[str, frozenset[str]] = {
    "matmul": frozenset({"mm", "addmm", "bmm", "baddbmm", "addbmm", "matmul", "linear", "einsum"}),
    "convolution": frozenset(
        {
            "convolution", "_convolution", "cudnn_convolution", "cudnn_convolution_transpose",
            "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
            "conv_transpose3d", "convolution_backward",
        }
    ),
}  # fmt: skip
"""By the switch of torch's that lets them use TF32: ops as the dispatcher and traces name them.

A product with a vector (mv, addmv, dot) is none: it waits for memory, not for arithmetic.
"""


def in_float32(call: Callable[[], object]) -> frozenset[str]:
    """The families of which `call` makes at least one product in float32.

    Raises whatever the call raises.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found: set[str] = set()

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = str(func).split(".")[1:2]
            family = next((f for f, ops in FAMILIES.items() if ops.intersection(name)), None)
            if family and any(t.dtype is torch.float32 for t in tensors(args)):
                found.add(family)
            return func(*args, **(kwargs or {}))

    with Watch():
        call()
    return frozenset(found)
