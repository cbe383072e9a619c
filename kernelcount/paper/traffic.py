"""Bytes of GPU memory that one op must read and must write, as its shapes tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

from kernelcount.paper.footprint import bytes_together, distinct_bytes
from kernelcount.paper.rules import Op, argument, mask_count
from kernelcount.paper.steps import leaves

if TYPE_CHECKING:
    from torch import Tensor

# They do not look at what they are given first, in place or not. To a product that is added to
# something times 0, that is nothing (LinearAlgebra.cpp, cuda/Blas.cpp: where beta is 0).
_WRITE_ONLY = frozenset(
    {"_foreach_copy_", "_foreach_zero_", "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_",
     "geometric_", "log_normal_", "normal_", "random_", "uniform_", "zero_"}
)  # fmt: skip
_NEW_OF = frozenset({"fill", "zero", "copy", "uniform", "exponential", "geometric"})
_ADDED_TO = frozenset({"_addmm_activation", "addbmm", "addmm", "addmv", "addr", "baddbmm"})


def traffic(op: Op) -> tuple[int, int]:
    """Bytes that the op must read and must write: each place in memory once, see `footprint`.

    Of an array of which an op touches a part, that part: as many elements as it can be at most.
    """
    name = op.name.removesuffix("_")
    if name in _PUTS and op.read and op.written:
        return _put(op, name)
    written = bytes_together(given_back(op))
    if op.name.endswith("_like") or op.name.startswith("new_"):
        return 0, written
    read = looked_at(op)
    if op.name in _TAKES and read:
        place, part = _TAKES[op.name](op)
        others = bytes_together([*read[:place], *read[place + 1 :]])
        return min(bytes_together(read), others + part), written
    return bytes_together(read), written


# Gradients that ask of what was given how large it was, and of no element: paths below
# aten/src/ATen/native/cuda. AveragePool2d.cu, AveragePool3d.cu, DilatedMaxPool2d.cu,
# DilatedMaxPool3d.cu, AdaptiveAveragePooling.cu, AdaptiveAveragePooling3d.cu,
# AdaptiveMaxPooling2d.cu, AdaptiveMaxPooling3d.cu, FractionalMaxPool2d.cu, FractionalMaxPool3d.cu,
# ReflectionPad.cu, ReplicationPadding.cu.
_OF_SHAPES = frozenset(
    {"_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
     "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool2d_backward",
     "avg_pool3d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward",
     "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward",
     *(f"{kind}_pad{n}d_backward" for kind in ("reflection", "replication") for n in (1, 2, 3))}
)  # fmt: skip


def _unseen(op: Op) -> Iterator[Any]:
    """Arguments of whose elements the op looks at none, although they are no results."""
    name = op.name.removesuffix("_")
    times_zero = name in _ADDED_TO and argument(op, 3, "beta", 1) == 0
    drawn = name == "bernoulli" and isinstance(argument(op, 1, "p"), float)
    if op.name in _WRITE_ONLY or name in _NEW_OF or times_zero or drawn:
        yield op.args[0]
    elif name in _OF_SHAPES:
        yield argument(op, 1, "self")
    elif name == "convolution_backward":  # each gradient is of the other operand: Convolution.cpp
        of_input, of_weight, _ = argument(op, 10, "output_mask")
        yield from () if of_weight else (argument(op, 1, "input"),)
        yield from () if of_input else (argument(op, 2, "weight"),)
    elif name == "native_layer_norm_backward":  # the bias is asked for, or not
        yield argument(op, 6, "bias")
    elif name == "log_sigmoid_backward":  # the CPU's buffer: cuda/ActivationLogSigmoidKernel.cu
        yield argument(op, 2, "buffer")


def given_back(op: Op) -> list[Tensor]:
    """What the op writes on a GPU, of all that it gives.

    Its log-sigmoid has no buffer (cuda/Activation.cpp, log_sigmoid_forward_cuda: it is empty), and
    attention by cuDNN gives the sums of its rows where it is asked to (cudnn/MHA.cpp).
    """
    if op.name == "log_sigmoid_forward":
        return list(op.written[:1])
    unasked = op.name == "_scaled_dot_product_cudnn_attention" and not argument(
        op, 4, "compute_log_sumexp"
    )
    return [t for i, t in enumerate(op.written) if not (unasked and i == 1)]


def looked_at(op: Op) -> list[Tensor]:
    """The operands whose elements count, in order."""
    read = list(op.read)
    for tensor in leaves(list(_unseen(op))):
        _leave_out(tensor, read)
    read.reverse()  # one that is given as `out` may be an operand before
    for tensor in op.out:
        _leave_out(tensor, read)
    return read[::-1]


def _leave_out(tensor: Any, read: list[Tensor]) -> None:
    """Take the first of them that is this tensor; not where it is none of the GPU's."""
    place = next((i for i, t in enumerate(read) if t is tensor), None)
    if place is not None:
        del read[place]


def in_part(op: Op) -> tuple[Tensor, int, int] | None:
    """An operand of which the op touches a part, and bytes of it read and written at most.

    None where it touches all of each. It is one of those that are `looked_at`.
    """
    name = op.name.removesuffix("_")
    read = looked_at(op)
    if name in _TAKES and read:
        place, part = _TAKES[name](op)
        return (read[place], part, 0) if place < len(read) else None
    if name in _PUTS and op.name.endswith("_") and op.read and op.written:
        of_all = _put(op, name)[1]
        return read[0], of_all if _adds(op, name) else 0, of_all
    return None


def _selected(op: Op) -> tuple[int, int]:
    """Of the table, as much as comes of it."""
    return 0, bytes_together(op.written)


def _rows(op: Op) -> tuple[int, int]:
    """Of the table, a row for each index."""
    table, indices = op.read[:2]
    return 0, int(indices.numel()) * prod(map(int, table.shape[1:])) * int(table.element_size())


def _losses(op: Op) -> tuple[int, int]:
    """Of the probabilities, one for each target: cuda/Loss.cu, cuda/NLLLoss2d.cu."""
    return 0, int(op.read[1].numel()) * int(op.read[0].element_size())


def _shape_alone(_: Op) -> tuple[int, int]:
    """Of the probabilities, only their number: nll_loss_backward in the same files."""
    return 1, 0


# Where the operand stands that is read in part, and the bytes of that part at most.
_TAKES: dict[str, Callable[[Op], tuple[int, int]]] = {
    **dict.fromkeys(
        ("embedding", "gather", "index", "index_select", "masked_select", "take"), _selected
    ),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _rows),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _losses),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), _shape_alone),
}

# They write a part of an array; not in place, into a copy. Those that add read it before.
_PUTS = frozenset(
    {"index_put", "_index_put_impl", "scatter", "scatter_add", "scatter_reduce", "index_add",
     "index_copy", "index_fill", "index_reduce", "put"}
)  # fmt: skip
_ADDS = frozenset({"scatter_add", "scatter_reduce", "index_add", "index_reduce"})
_ACCUMULATE = frozenset({"index_put", "_index_put_impl", "put"})
"""Those that add where they are asked to."""


def _put(op: Op, name: str) -> tuple[int, int]:
    """Bytes of an op that writes some elements of an array, by how many it is given indices."""
    target, *others = looked_at(op)
    whole, size = distinct_bytes(target), int(target.element_size())
    part = min(_indexed(op, name) * size, whole)
    adds = _adds(op, name)
    # Of what is put, no more elements than there are places.
    source = others[-1:] if name in ("scatter", "scatter_add", "scatter_reduce") else []
    read = bytes_together(others[: len(others) - len(source)])
    read += sum(min(distinct_bytes(t), part // size * int(t.element_size())) for t in source)
    if op.name.endswith("_"):
        return min(read + (part if adds else 0), bytes_together([target, *others])), part
    copied = min(whole + read, bytes_together([target, *others]))
    return copied + (part if adds else 0), whole + part


def _adds(op: Op, name: str) -> bool:
    """Whether it reads the elements that it writes."""
    return name in _ADDS or bool(name in _ACCUMULATE and argument(op, 3, "accumulate"))


def _indexed(op: Op, name: str) -> int:
    """To how many elements of the array an op's indices lead; for a mask, all of them."""
    target = op.read[0]
    if name == "put":
        return int(argument(op, 1, "index").numel())
    if name in _ACCUMULATE:
        return _places(target, argument(op, 1, "indices"))
    index: Tensor = argument(op, 2, "index")
    count = int(index.numel())
    if name.startswith("scatter"):
        return count
    length = int(target.shape[argument(op, 1, "dim")]) if target.dim() else 1
    return int(target.numel()) // max(length, 1) * count


def _places(target: Tensor, indices: Sequence[Any]) -> int:
    """Elements that ``target[indices]`` has; for a mask, those of the array."""
    given = [t for t in indices if t is not None]
    if mask_count(given):
        return int(target.numel())
    sizes = zip_longest(*(reversed(t.shape) for t in given), fillvalue=1)
    chosen = prod(max(map(int, alike)) for alike in sizes)  # as they broadcast
    kept = [int(n) for i, n in enumerate(target.shape) if i >= len(indices) or indices[i] is None]
    return chosen * prod(kept)
