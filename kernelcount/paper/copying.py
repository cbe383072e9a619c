"""Copies that ops make besides what they are named for, and whether each is a memcpy.

Paths are files of PyTorch below ``aten/src/ATen/native``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelcount.devices.aten import effect
from kernelcount.paper.footprint import distinct_bytes
from kernelcount.paper.places import device_of
from kernelcount.paper.steps import leaves

if TYPE_CHECKING:
    from torch import Tensor

    from kernelcount.paper.rules import Op


def is_memcpy(source: Tensor, target: Tensor) -> bool:
    """Whether a copy on the GPU is a memcpy: cuda/Copy.cu, copy_requires_temporaries and the rest.

    It is where both have one dtype, and one order of elements without a gap: TensorIterator.cpp
    leaves dimensions of size 1 out before it asks.
    """
    if source.dtype != target.dtype or source.numel() != target.numel():
        return False
    if source.is_conj() != target.is_conj() or source.is_neg() != target.is_neg():
        return False
    return _order(source) == _order(target) and is_dense(source)


def _order(tensor: Tensor) -> list[tuple[int, int]]:
    """Sizes and strides of the dimensions along which there is more than one element."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [(int(n), int(s)) for n, s in pairs if n != 1]


def span(tensor: Tensor) -> int:
    """Elements between the first and the last element of a tensor, both included."""
    if not tensor.numel():
        return 0
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((int(n) - 1) * int(s) for n, s in pairs)


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill their memory, each once, whatever the order of dimensions."""
    elements = int(tensor.numel())
    return span(tensor) == elements == distinct_bytes(tensor) // int(tensor.element_size())


def copies_view(name: str) -> bool:
    """Whether an op is the copy of a view, such as ``permute_copy``."""
    view = name.removesuffix("_copy")
    return view != name and (effect(f"aten::{view}") == "nothing" or view == "narrow")


def of_views(op: Op) -> list[bool]:
    """For each view that an op copies whether that is a memcpy.

    The view is cloned, contiguous (torchgen/gen_functionalization_type.py, as_view_copy).
    """
    import torch

    view = getattr(torch.ops.aten, op.name.removesuffix("_copy"))
    kwargs = {name: value for name, value in op.kwargs.items() if name != "out"}
    viewed = [t for t in leaves(view(*op.args, **kwargs)) if hasattr(t, "layout")]
    return [is_memcpy(a, b) for a, b in zip(viewed, op.written, strict=False) if b.numel()]


INTO_VIEWS = ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")
"""Ops that clone an array and copy another into a view of it."""


def into_view(op: Op) -> list[bool] | None:
    """Whether an array's clone and the copy into a view of it are memcpys: TensorShape.cpp.

    None where what is copied comes from the host.

    The clone is of all that lies between its first and last element, in one piece
    (clone_preserve_strides), unless elements lie over each other.
    """
    import torch

    from kernelcount.paper.rules import argument

    array, source = op.args[0], argument(op, 1, "src")
    if device_of(source) != device_of(array):
        return None
    made = op.written[0]
    apart = distinct_bytes(array) == array.numel() * array.element_size()
    view = getattr(torch.ops.aten, op.name.removesuffix("_scatter"))
    kwargs = {name: value for name, value in op.kwargs.items() if name not in ("out", "src")}
    place = view(made, *op.args[2:], **kwargs)
    clone = [apart or is_memcpy(array, made)]
    return [*clone, is_memcpy(source, place)] if place.numel() else clone


def _shuffled(x: Tensor, by: int) -> Tensor:
    *lead, depth, high, wide = map(int, x.shape)
    n = len(lead)
    split = x.view(*lead, depth // by**2, by, by, high, wide)
    return split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)


def _unshuffled(x: Tensor, by: int) -> Tensor:
    *lead, depth, high, wide = map(int, x.shape)
    n = len(lead)
    split = x.view(*lead, depth, high // by, by, wide // by, by)
    return split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)


SHUFFLES: dict[str, Callable[[Any, int], Any]] = {
    "pixel_shuffle": _shuffled,
    "pixel_unshuffle": _unshuffled,
}
"""Ops that clone a view of an image, contiguous: PixelShuffle.cpp."""


def of_shuffle(op: Op) -> list[bool] | None:
    """Whether the copy of a shuffled image is a memcpy. None for one that is copied before."""
    if not op.read[0].is_contiguous():
        return None
    viewed = SHUFFLES[op.name](op.read[0], int(op.args[1]))
    return [is_memcpy(viewed, op.written[0].view(viewed.shape))]


def filled(target: Tensor, value: Tensor) -> list[bool]:
    """Whether the copies of a number on the GPU into an array are memcpys: Fill.cpp.

    A number that lies in the array is cloned before.
    """
    from kernelcount.paper.adapter import unique_id

    within = unique_id(target) == unique_id(value)
    return [*([True] if within else []), is_memcpy(value, target)]
