"""What an op of several kernels hands on from one to the next, through GPU memory.

What it is given and gives is `traffic`'s; here stand the arrays in between, and what a later kernel
reads or writes again. Where torch's source does not say what these are, nobody knows what the op
moves beyond what it must. Paths are files of PyTorch below ``aten/src/ATen/native``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING

from kernelcount.paper import reductions
from kernelcount.paper.footprint import bytes_together
from kernelcount.paper.places import is_on
from kernelcount.paper.rules import COPIES, Cost, Op, argument, at_any_size, mask_count

if TYPE_CHECKING:
    from torch import Tensor

Moved = tuple[int, int]
"""Bytes that are read and that are written."""

_NOTHING: Moved = (0, 0)

# Products and attention, which cuBLAS, cuDNN and flash attention do in one pass over operands and
# results, how many kernels that ever takes: what split-K adds up in between is not modelled. And
# those that go over lists of tensors, as many at once as a launch takes (cuda/ForeachFunctors.cuh,
# cuda/fused_adam_utils.cuh, cuda/FusedSgdKernel.cu, cuda/FusedAdagradKernel.cu), and inputs one by
# one (cuda/Shape.cu, TensorShape.cpp).
_ONE_PASS = frozenset(
    {
        "_addmm_activation", "_cslt_sparse_mm", "_efficient_attention_forward",
        "_flash_attention_forward", "_fused_adagrad_", "_fused_adam_", "_fused_adamw_",
        "_fused_sgd_", "_grouped_mm", "_int_mm", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
        "_scaled_grouped_mm", "_scaled_mm", "addbmm", "addmm", "addmv", "baddbmm", "bmm", "cat",
        "cudnn_convolution", "dot", "mm", "mv", "repeat", "stack", "vdot",
    }
)  # fmt: skip

# Where it is slow, it is one op for each tensor (ForeachUtils.h); a norm is of parts first.
_NOT_BY_ONE = frozenset({"_foreach_max", "_foreach_norm", "_foreach_powsum"})


def is_one_pass(name: str, cost: Cost) -> bool:
    """Whether an op of this name, without in-place underscore or not, hands nothing on."""
    if cost.exact and cost.kernels + cost.copies <= 1:
        return True
    if name.startswith("_foreach_"):
        return name.removesuffix("_") not in _NOT_BY_ONE
    return name in _ONE_PASS or name.removesuffix("_") in _ONE_PASS


def handed_on(op: Op, cost: Cost) -> Moved | None:
    """Bytes that the op moves between its kernels; None where that is not known.

    `op` with the tensors of the GPU alone; `cost`: what it launches.
    """
    if op.name in COPIES:
        return _copy(op, cost)
    if op.name in _STAGES:
        return _STAGES[op.name](op)
    if op.name.removesuffix("_") == "convolution":
        return _convolution(op)
    # Beyond 32 bits the op is worked on in parts, and moves the same.
    if is_one_pass(op.name, cost) or is_one_pass(op.name, at_any_size(op)):
        return _NOTHING
    return None


def _size(tensor: Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _and_back(made: int) -> Moved:
    """An array of so many bytes that is written and then read."""
    return made, made


def _made_contiguous(tensors: Iterable[Tensor]) -> Moved:
    """Copies of those that are not contiguous."""
    return _and_back(sum(_size(t) for t in tensors if not t.is_contiguous()))


def _plus(*parts: Moved) -> Moved:
    return sum(r for r, _ in parts), sum(w for _, w in parts)


# ── by op ────────────────────────────────────────────────────────────────────────────────────────


def _convolution(op: Op) -> Moved | None:
    """A bias is added by another kernel, or by the same: Convolution.cpp.

    In compiled code one that Inductor writes adds it: torch/_inductor/kernel/conv.py.
    """
    alone = argument(op, 2, "bias") is None or not is_on(op.read[0])
    return _NOTHING if alone else None


def _loss(op: Op) -> Moved:
    """The losses of all elements, which are then summed up: Loss.cpp."""
    times = at_any_size(op).kernels - 1
    return _and_back(times * _together(op) * int(op.written[0].element_size()))


def _binary_loss(op: Op) -> Moved:
    """The same, weighted in between; the result is copied once more (cuda/Loss.cu)."""
    size = int(op.written[0].element_size())
    losses = _together(op) * size
    weighted = _NOTHING if argument(op, 2, "weight") is None else _and_back(losses)
    if not argument(op, 3, "reduction", 1):
        return weighted
    return _plus(weighted, _and_back(losses), _and_back(size))


def _together(op: Op) -> int:
    """Elements of the operands as they broadcast."""
    import torch

    return prod(torch.broadcast_shapes(*(t.shape for t in op.read)))


def _softmax(op: Op) -> Moved:
    return _made_contiguous(op.read)


def _softmax_gradient(op: Op) -> Moved | None:
    """The gradient by the result, which is then read with the result once more: cuda/SoftMax.cu."""
    grad, result = op.read[:2]
    if not (grad.is_contiguous() and result.is_contiguous()):
        return None
    return _plus(_and_back(_size(grad)), (_size(result), 0))


def _cast(op: Op) -> Moved:
    """What is of another dtype than the sum is cast to it first: ReduceOps.cpp."""
    result = op.written[0]
    cast = reductions.is_cast_first(op)
    return _and_back(int(op.read[0].numel()) * int(result.element_size())) if cast else _NOTHING


def _power(op: Op) -> Moved:
    """A base that is a number is written to the GPU: Pow.cpp."""
    written = at_any_size(op).kernels > 1
    return _and_back(int(op.written[0].element_size())) if written else _NOTHING


def _ldexp(op: Op) -> Moved:
    """2, and its powers, by which the other is multiplied: BinaryOps.cpp."""
    size = int(op.written[0].element_size())
    return _and_back((1 + int(op.read[-1].numel())) * size)


def _zeroed_weight(op: Op) -> Moved:
    """The weight of all rows is set to 0 before: cuda/NLLLoss.cu."""
    return (0, _size(op.written[-1])) if at_any_size(op).kernels > 1 else _NOTHING


def _chosen(op: Op) -> Moved | None:
    """Numbers from the host are copied first. What is cast is not known."""
    cost = at_any_size(op)
    if not cost.exact or cost.kernels > 1:
        return None
    return _and_back(cost.copies * int(op.written[0].element_size()))


def _cumulative(op: Op) -> Moved:
    """Of another dtype, or not contiguous, it is copied first, and may then be copied again."""
    x, made = op.read[0], op.written[0]
    if x.dtype != made.dtype:
        return _and_back(_size(made))
    return _made_contiguous([x])


def _norm(op: Op) -> Moved | None:
    """Where a row is not one kernel's, the moments are worked out first: read, and all once more.

    cuda/layer_norm_kernel.cu.
    """
    if not at_any_size(op).exact:
        return None
    x, kept = op.read[0], op.written[1:]
    alone = at_any_size(op).kernels == (1 if x.is_contiguous() else 2)
    again = _NOTHING if alone else (_size(x) + bytes_together(kept), 0)
    return _plus(_made_contiguous([x]), again)


def _groups(op: Op) -> Moved | None:
    """The moments of each group; with weight or bias, a factor and a summand for each channel.

    cuda/group_norm_kernel.cu.
    """
    x, kept = op.read[0], op.written[1:]
    if not x.is_contiguous():
        return None
    moments = bytes_together(kept)
    again = (_size(x) + moments, 0)
    if at_any_size(op).kernels == 2:  # noqa: PLR2004  the moments and the elements
        return again
    channels = int(argument(op, 3, "N")) * int(argument(op, 4, "C"))
    return _plus(again, _and_back(2 * channels * (moments // max(1, sum(map(_count, kept))))))


def _count(tensor: Tensor) -> int:
    return int(tensor.numel())


def _batches(op: Op) -> Moved | None:
    """The statistics, their inverse, and all once more: cuda/Normalization.cu."""
    if not at_any_size(op).exact:
        return None
    kept = bytes_together(op.written[1:])
    return _size(op.read[0]) + 2 * kept, kept


def _roll(op: Op) -> Moved:
    """One dimension after the other."""
    more = max(0, len(argument(op, 2, "dims", ()) or (0,)) - 1)
    return _plus(_made_contiguous(op.read[:1]), _and_back(more * _size(op.read[0])))


def _equal(op: Op) -> Moved:
    """What is equal, whether all of it is, and that for the host."""
    cost = at_any_size(op)
    return _plus(_and_back(int(op.read[0].numel())), (1, 1)) if cost.kernels > 1 else _NOTHING


def _pad(op: Op) -> Moved:
    """All is filled, and then written over inside."""
    return (0, _inside(op)) if max(op.args[1], default=0) > 0 else _NOTHING


def _inside(op: Op) -> int:
    x, pads = op.read[0], list(map(int, op.args[1]))
    sizes = list(map(int, x.shape))
    for i, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        sizes[-1 - i] += min(before, 0) + min(after, 0)
    return prod(sizes) * int(x.element_size())


def _isinf(op: Op) -> Moved | None:
    """What is without its sign, of floating-point numbers."""
    x = op.read[0]
    if x.is_complex():
        return None
    return _and_back(_size(x)) if x.is_floating_point() else _NOTHING


def _masked_fill(op: Op) -> Moved:
    """A copy, of which all is read and written again: cuda/IndexKernel.cu."""
    return _and_back(_size(op.written[0]))


def _embedding(op: Op) -> Moved:
    return _made_contiguous(op.read[1:2]) if op.read[1].dim() > 1 else _NOTHING


def _index(op: Op) -> Moved | None:
    """Indices that come from the host are copied first. What masks take is not known."""
    given = [t for t in argument(op, 1, "indices") if t is not None]
    cost = at_any_size(op)
    if cost.kernels + cost.copies == 1 and cost.exact:
        return _NOTHING
    if mask_count(given) or not cost.exact:
        return None
    return _and_back(sum(_size(t) for t in given if is_on(t, "cpu")))


def _put_into_a_copy(op: Op) -> Moved | None:
    """It is counted whole, see `traffic`."""
    return _NOTHING if at_any_size(op).exact else None


def _zeroed(op: Op) -> Moved:
    """All is zeroed, and the gradient copied to its place: TensorShape.cpp."""
    return 0, _size(op.read[0])


def _unfolded(op: Op) -> Moved:
    """All is zeroed, and added to by the gradients of its windows: cuda/UnfoldBackwardKernel.cu."""
    return _and_back(_size(op.written[0]))


def _copied_into(op: Op) -> Moved:
    """A copy of all, and what is put copied to its place: TensorShape.cpp."""
    return 0, _size(op.read[1]) if len(op.read) > 1 else 0


def _copy(op: Op, cost: Cost) -> Moved:
    """To or from the host, what is not alike is made so on the GPU first: cuda/Copy.cu."""
    if not (cost.kernels and cost.copies):
        return _NOTHING
    # From the host it comes as it is there; to the host it goes as it is here.
    source = op.args[1] if op.name == "copy_" else op.args[0]
    return _and_back(_size(source))


_STAGES: dict[str, Callable[[Op], Moved | None]] = {
    **dict.fromkeys(("mse_loss", "smooth_l1_loss", "huber_loss"), _loss),
    "binary_cross_entropy": _binary_loss,
    **dict.fromkeys(("_softmax", "_log_softmax", "_log_softmax_backward_data"), _softmax),
    "_softmax_backward_data": _softmax_gradient,
    **dict.fromkeys(reductions.SUMS, _cast),
    **dict.fromkeys(("pow", "pow_"), _power),
    **dict.fromkeys(("ldexp", "ldexp_"), _ldexp),
    "nll_loss_forward": _zeroed_weight,
    "where": _chosen,
    **dict.fromkeys(("cumsum", "cumprod"), _cumulative),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), _norm),
    "native_group_norm": _groups,
    "native_batch_norm": _batches,
    "roll": _roll,
    "equal": _equal,
    "constant_pad_nd": _pad,
    "isinf": _isinf,
    "masked_fill": _masked_fill,
    "embedding": _embedding,
    **dict.fromkeys(("index", "index_put_", "_index_put_impl_"), _index),
    **dict.fromkeys(("index_put", "index_add", "scatter", "scatter_add"), _put_into_a_copy),
    **dict.fromkeys(("slice_backward", "select_backward", "diagonal_backward"), _zeroed),
    "unfold_backward": _unfolded,
    **dict.fromkeys(
        ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"),
        _copied_into,
    ),
}
"""Ops of which it is known, whether they are one kernel or several."""
