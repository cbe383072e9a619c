"""What kernels that go over a row more than once may read from GPU memory again.

The bytes of an op are those that it must read, each once. A kernel that works on a row a second
time finds it in a cache only where the rows that are at work at once fit in there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from kernelcount.paper.cards import Card
from kernelcount.paper.rules import Op, argument

# What of the L2 cache rows have at hand: an H200 (60 MB) reads those of layer_norm, rms_norm,
# softmax and log_softmax again for 0 to 10 % up to 17 MB at once, for 37 % and more from 26 MB on,
# and all of them from 69 MB on (docs/ncu.md).
_AT_HAND = 0.25

_THREADS = 2048
"""Of a multiprocessor, at most: CUDA C++ Programming Guide, technical specifications, 8.0, 9.0."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A kernel with one row to a block of so many threads, which reads it so many times."""

    threads: int
    times: int


# cuda/layer_norm_kernel.cu, vectorized_layer_norm_kernel_impl; cuda/SoftMax.cu,
# cunn_SoftMaxForward, and cunn_SoftMaxBackward, which reads the gradient again and the result once.
_NORM, _SOFTMAX, _GRADIENT = _Rows(128, 2), _Rows(1024, 3), _Rows(1024, 2)
# cuda/SoftMax.cu: up to this many elements a warp keeps a row in its registers, and up to this
# many bytes a block keeps it in shared memory.
_IN_REGISTERS, _IN_SHARED = 1024, 48 << 10


_SOFTMAXES = {
    **dict.fromkeys(("_softmax", "_log_softmax"), (_SOFTMAX, 1)),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), (_GRADIENT, 2)),
}
"""Their kernels, and at which place of their arguments the dimension stands."""


def again(op: Op, card: Card) -> int:
    """Bytes that the op may read from GPU memory beyond those that it must read, at most."""
    known = _rows(op)
    if known is None or not op.read:
        return 0
    rows, width = known
    given: Any = op.read[0]
    length = width * given.element_size()
    at_once = min(int(given.numel()) // width, card.multiprocessors * (_THREADS // rows.threads))
    if at_once * length <= _AT_HAND * card.l2:
        return 0
    return (rows.times - 1) * int(given.numel()) * int(given.element_size())


def _rows(op: Op) -> tuple[_Rows, int] | None:
    """The kernel that goes over rows of so many elements; None for any other."""
    if op.name in ("native_layer_norm", "_fused_rms_norm"):
        width = prod(map(int, argument(op, 1, "normalized_shape", ())))
        # A width that its vectors do not divide takes two kernels, of which each reads the row.
        return (_NORM, width) if width and width % 4 == 0 else None
    if op.name in _SOFTMAXES:
        kernel, place = _SOFTMAXES[op.name]
        given: Any = op.read[0]
        last = argument(op, place, "dim", -1) in (-1, given.dim() - 1)
        width = int(given.shape[-1]) if last and given.dim() else 0
        kept = width <= _IN_REGISTERS or width * given.element_size() <= _IN_SHARED
        return None if kept else (kernel, width)
    return None
