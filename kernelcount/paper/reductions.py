"""What reductions launch instead of their one kernel, or besides it.

Paths are files of PyTorch below ``aten/src/ATen/native``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelcount.paper.rules import Op

# ReduceOpsUtils.h, make_reduction, gpu_lowp_to_f32: only these are read as they are.
_CAST_INSIDE = (("torch.float16", "torch.float32"), ("torch.bfloat16", "torch.float32"))

SUMS = ("sum", "nansum", "prod", "mean")
"""Reductions of what has the dtype of their result: they are built by make_reduction."""

NORMS = ("linalg_vector_norm", "norm")
VARIANCES = ("std", "std_mean", "var", "var_mean")


def is_cast_first(op: Op) -> bool:
    """Whether a kernel gives what is reduced the dtype of the result before: make_reduction."""
    x, result = op.read[0], op.written[0]
    pair = (str(x.dtype), str(result.dtype))
    return bool(x.numel()) and x.dtype != result.dtype and pair not in _CAST_INSIDE


def of_one_element(op: Op) -> list[bool] | None:
    """The copies that ``all`` and ``any`` of one element are, and whether each is a memcpy.

    It is cast to bool, then copied (ReduceOps.cpp, allany_impl). None for more elements.
    """
    x, result = op.read[0], op.written[0]
    if x.numel() != 1:
        return None
    cast = [] if str(x.dtype) == "torch.bool" else [False]
    return [*cast, str(result.dtype) == "torch.bool"]


def is_of_a_number(op: Op) -> bool:
    """Whether the greatest is looked for along a dimension of what has none.

    It is copied, and its place set to 0: TensorCompare.cpp, minmax_out_impl.
    """
    return len(op.written) > 1 and op.read[0].dim() == 0
