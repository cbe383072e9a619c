"""Bytes of GPU memory that one op must read and must write, as its shapes tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

from kernelcount.paper.footprint import bytes_together, distinct_bytes
from kernelcount.paper.rules import Op, argument, mask_count
from kernelcount.paper.steps import leaves

if TYPE_CHECKING:
    from torch import Tensor

# They do not look at what they are given first. To a product that is added to something times 0,
# that is nothing (LinearAlgebra.cpp, cuda/Blas.cpp: where beta is 0).
_WRITE_ONLY = frozenset(
    {"_foreach_copy_", "_foreach_zero_", "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_",
     "geometric_", "log_normal_", "normal_", "random_", "uniform_", "zero_"}
)  # fmt: skip
_ADDED_TO = frozenset({"_addmm_activation", "addbmm", "addmm", "addmv", "addr", "baddbmm"})


def traffic(op: Op) -> tuple[int, int]:
    """Bytes that the op must read and must write: each place in memory once, see `footprint`.

    Of an array of which an op touches a part, that part: as many elements as it can be at most.
    """
    name = op.name.removesuffix("_")
    if name in _PUTS and op.read and op.written:
        return _put(op, name)
    written = bytes_together(op.written)
    if op.name.endswith("_like") or op.name.startswith("new_"):
        return 0, written
    read = looked_at(op)
    if op.name in _TAKES and read:
        place, part = _TAKES[op.name](op)
        others = bytes_together([*read[:place], *read[place + 1 :]])
        return min(bytes_together(read), others + part), written
    return bytes_together(read), written


def looked_at(op: Op) -> list[Tensor]:
    """The operands whose elements count, in order."""
    times_zero = op.name.removesuffix("_") in _ADDED_TO and argument(op, 3, "beta", 1) == 0
    read = list(op.read)
    for tensor in leaves(op.args[0]) if op.name in _WRITE_ONLY or times_zero else ():
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
     "index_copy", "index_fill"}
)  # fmt: skip
_ADDS = frozenset({"scatter_add", "scatter_reduce", "index_add"})


def _put(op: Op, name: str) -> tuple[int, int]:
    """Bytes of an op that writes some elements of an array, by how many it is given indices."""
    target, *others = looked_at(op)
    whole, size = distinct_bytes(target), int(target.element_size())
    part = min(_indexed(op, name) * size, whole)
    adds = name in _ADDS or bool(name.endswith(("put", "impl")) and argument(op, 3, "accumulate"))
    # Of what is put, no more elements than there are places.
    source = others[-1:] if name in ("scatter", "scatter_add", "scatter_reduce") else []
    read = bytes_together(others[: len(others) - len(source)])
    read += sum(min(distinct_bytes(t), part // size * int(t.element_size())) for t in source)
    if op.name.endswith("_"):
        return min(read + (part if adds else 0), bytes_together([target, *others])), part
    copied = min(whole + read, bytes_together([target, *others]))
    return copied + (part if adds else 0), whole + part


def _indexed(op: Op, name: str) -> int:
    """To how many elements of the array an op's indices lead; for a mask, all of them."""
    target = op.read[0]
    if name.endswith(("put", "impl")):
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
