"""Classes of shape: within one, PyTorch's source takes one path, whatever the sizes are.

A class is a box in what a path depends on: rows and their length, elements, k. What is launched in
it is not said here: it is recorded on a card at every corner of the box and inside, and the atlas
holds the class only where all of these agree. Paths are files of PyTorch below
``aten/src/ATen/native``; cuBLAS and cuDNN have no classes, for their choices are not in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from kernelcount.paper.rules import Op, argument

_INT32 = 2**31 - 1

Range = tuple[int, int]
"""The least and the most, both inside."""


@dataclass(frozen=True, slots=True)
class Class:
    """Calls of `op` whose measures lie within `bounds`, one range for each name in `measures`.

    `measure` gives a call's measures, or None where the class says nothing of such a call.
    """

    op: str
    measures: tuple[str, ...]
    measure: Callable[[Op], tuple[int, ...] | None]
    bounds: tuple[Range, ...]
    source: str

    @property
    def name(self) -> str:
        """The class in words, such as ``rows 2-8192, length 2-4096``."""
        ranges = (str(low) if low == high else f"{low}-{high}" for low, high in self.bounds)
        return ", ".join(f"{n} {r}" for n, r in zip(self.measures, ranges, strict=True))

    def holds(self, op: Op) -> bool:
        """Whether a call is of this class."""
        if op.name != self.op or not _plain(op):
            return False
        measured = self.measure(op)
        return measured is not None and all(
            low <= value <= high for value, (low, high) in zip(measured, self.bounds, strict=True)
        )

    def corners(self) -> set[tuple[int, ...]]:
        """The measures at which it has to be recorded: all edges with all others."""
        return set(product(*map(set, self.bounds)))

    def samples(self) -> Iterator[tuple[int, ...]]:
        """The corners, and three points inside, evenly apart in orders of magnitude."""
        yield from sorted(self.corners())
        inside = {
            tuple(int(low * (high / low) ** part) for low, high in self.bounds)
            for part in (0.25, 0.5, 0.75)
        }
        yield from sorted(inside - self.corners())


def of(op: Op) -> Class | None:
    """The class that a call belongs to, if any."""
    return next((c for c in BY_OP.get(op.name, ()) if c.holds(op)), None)


def _plain(op: Op) -> bool:
    """Contiguous, not beyond 32 bits, and with a result: the rest may take other paths."""
    every = (*op.read, *op.written)
    return (
        all(t.is_contiguous() for t in op.read)
        and all(t.numel() * t.element_size() <= _INT32 for t in every)
        and all(t.numel() for t in (*op.read, *op.written[:1]))
    )


# ── measures ─────────────────────────────────────────────────────────────────────────────────────


def _is_last(dim: Any, x: Any) -> bool:
    return bool(x.dim()) and dim in (-1, x.dim() - 1)


def _in_rows(x: Any) -> tuple[int, int]:
    """Rows along the last dimension, and their length."""
    length = int(x.shape[-1])
    return int(x.numel()) // length, length


def _rows(op: Op) -> tuple[int, ...] | None:
    """Rows along the last dimension, and their length."""
    x = op.read[0]
    # sort.stable has `dim` as a keyword, sort after the array.
    return _in_rows(x) if _is_last(argument(op, 1, "dim", -1), x) else None


def _largest(op: Op) -> tuple[int, ...] | None:
    """Rows along the last dimension, their length, and k; sorted."""
    x, k = op.read[0], argument(op, 1, "k", 0)
    whole = _is_last(argument(op, 2, "dim", -1), x) and argument(op, 4, "sorted", True)
    return (*_in_rows(x), int(k)) if whole and k <= x.shape[-1] else None


def _one_row(op: Op) -> tuple[int, ...] | None:
    """The elements of an array that is one row, scanned without a change of dtype."""
    x = op.read[0]
    alike = x.dim() == 1 and x.dtype == op.written[0].dtype
    return (int(x.numel()),) if alike and _is_last(argument(op, 1, "dim", -1), x) else None


def _elements(op: Op) -> tuple[int, ...] | None:
    """Dimensions and elements of the only argument there is."""
    x = op.read[0]
    return (x.dim(), int(x.numel())) if len(op.read) == 1 and not op.parameters else None


def _masked(op: Op) -> tuple[int, ...] | None:
    """Dimensions and elements of a mask over the whole of an array."""
    mask = op.read[-1]
    whole = len(op.read) == 2 and op.read[0].shape == mask.shape  # noqa: PLR2004 array and mask
    return (mask.dim(), int(mask.numel())) if whole and str(mask.dtype) == "torch.bool" else None


def _logsumexp(op: Op) -> tuple[int, ...] | None:
    """Rows along the last dimension, and their length."""
    x, dims = op.read[0], argument(op, 1, "dim", ())
    return _in_rows(x) if len(dims) == 1 and _is_last(dims[0], x) else None


def _normed(op: Op) -> tuple[int, ...] | None:
    """Rows, and their length, of a norm's gradient to all that it had."""
    if len(op.read) != _NORMED[op.name] or not all(op.args[-1]):
        return None
    x, shape = op.read[1], op.args[2]
    return _in_rows(x) if len(shape) == 1 and x.dim() else None


_NORMED = {"native_layer_norm_backward": 6, "_fused_rms_norm_backward": 4}
"""Tensors among the arguments where there are weights."""


def _loss(op: Op) -> tuple[int, ...] | None:
    """Rows and classes of a loss without weights."""
    x, weight = op.read[1], argument(op, 3, "weight")
    return (int(x.shape[0]), int(x.shape[1])) if x.dim() == 2 and weight is None else None  # noqa: PLR2004 rows of classes


def _planes(op: Op) -> tuple[int, ...] | None:
    """Planes and pixels of the images that were pooled."""
    x = op.read[1]
    if x.dim() < 3:  # noqa: PLR2004 an image at least
        return None
    pixels = int(x.shape[-1]) * int(x.shape[-2])
    return int(x.numel()) // pixels, pixels


def _embedded(op: Op) -> tuple[int, ...] | None:
    """Indices, the length of what each stands for, and how many there are to choose from."""
    grad, indices = op.read[:2]
    if argument(op, 4, "scale_grad_by_freq", False):
        return None
    return int(indices.numel()), int(grad.shape[-1]), int(argument(op, 2, "num_weights", 0))


# ── the classes ──────────────────────────────────────────────────────────────────────────────────

# cuda/Sort.h, should_use_small_sort: up to 4096 by one kernel for all rows. cuda/Sort.cpp,
# fillSliceWithIndex: the indices of one row are copied, those of several broadcast by a kernel.
# cuda/SortStable.cu, launch_stable_sort_kernel: longer rows one by one, below 128 rows by a sort of
# all and another by row, else by CUB's segmented sort. How many passes CUB takes depends on the
# dtype, and on whether everything fits one tile, which is at most 2^13 elements
# (cub/device/dispatch/dispatch_radix_sort.cuh): the classes begin above.
_SORT = "cuda/Sort.cpp, cuda/SortStable.cu"
_SMALL, _TILE, _LARGE = 4096, 1 << 14, 1 << 25
_SORTS: tuple[tuple[Range, Range], ...] = (
    ((1, 1), (2, _SMALL)),
    ((2, 8192), (2, _SMALL)),
    ((1, 1), (_TILE, _LARGE)),
    ((2, 127), (_TILE, 1 << 18)),
    ((128, 1024), (_SMALL + 1, 1 << 15)),
)

# cuda/TensorTopK.cu, should_use_multiblock: by the number of rows, from which length on each row is
# worked on by several blocks, in as many passes as the dtype has bytes. cuda/TensorTopK.cpp: the k
# results are sorted by one kernel more.
_TOPK = "cuda/TensorTopK.cu, should_use_multiblock"
_MULTIBLOCK: tuple[tuple[Range, int, int], ...] = (
    ((1, 20), 20_000, 1 << 20),
    ((21, 40), 10_000, 1 << 20),
    ((41, 80), 8_000, 1 << 19),
    ((81, 199), 5_000, 1 << 18),
    ((200, 799), 3_000, 1 << 16),
    ((800, 4000), 800, 1 << 13),
    ((4001, 16_384), 400, 1 << 12),
)
_K = (2, 64)

# cuda/Nonzero.cu, nonzero_cuda_out_impl: CUB counts, then selects; an index of several dimensions
# is worked out by a kernel more. CUB reduces in one kernel what fits one tile, and otherwise in
# two (cub/device/dispatch/dispatch_reduce.cuh); the classes leave out where that may end.
_NONZERO = "cuda/Nonzero.cu"
_DIMENSIONS: tuple[Range, ...] = ((1, 1), (2, 4))
_COUNTS: tuple[Range, ...] = ((16, 1024), (1 << 16, _LARGE))


_LENGTHS, _SIZED = ("rows", "length"), ("dimensions", "elements")


def _of_rows() -> Iterator[Class]:
    for rows, length in _SORTS:
        yield Class("sort", _LENGTHS, _rows, (rows, length), _SORT)
    for rows, several, most in _MULTIBLOCK:
        for length in ((_K[1], several - 1), (several, most)):
            yield Class("topk", (*_LENGTHS, "k"), _largest, (rows, length, _K), _TOPK)
    for rows, length in (((1, 8192), (2, 8192)), ((1, 64), (8193, 1 << 19))):
        source = "ReduceOps.cpp, logsumexp_out_impl: nine ops of one kernel each"
        yield Class("logsumexp", _LENGTHS, _logsumexp, (rows, length), source)


def _of_elements() -> Iterator[Class]:
    for name in ("cumsum", "cumprod"):
        source = "cuda/ScanUtils.cuh, scan_dim: one row is left to CUB"
        yield Class(name, ("elements",), _one_row, ((2, _LARGE),), source)
    for dimensions, count in product(_DIMENSIONS, _COUNTS):
        yield Class("nonzero", _SIZED, _elements, (dimensions, count), _NONZERO)
        for name in ("index", "masked_select"):
            source = f"TensorAdvancedIndexing.cpp, {_NONZERO}"
            yield Class(name, _SIZED, _masked, (dimensions, count), source)
    for name, source in (
        ("_unique2", "cuda/Unique.cu, cuda/UniqueCub.cu: a sort, then CUB"),
        ("median", f"cuda/Sorting.cpp: a sort of all elements, {_SORT}"),
    ):
        for count in ((16, 1024), (_TILE, _LARGE)):
            yield Class(name, _SIZED, _elements, ((1, 4), count), source)


def _of_gradients() -> Iterator[Class]:
    # Beyond 64 * 1024 rows the gradients of weight and bias may take a sum more.
    for name in _NORMED:
        source = "cuda/layer_norm_kernel.cu, LaunchGammaBetaBackwardCUDAKernel"
        yield Class(name, _LENGTHS, _normed, ((1, 16_384), (64, 8192)), source)
    source = "cuda/NLLLoss.cu: all is zeroed, then a kernel"
    yield Class("nll_loss_backward", ("rows", "classes"), _loss, ((2, 4096), (2, 1 << 16)), source)
    source = "cuda/DilatedMaxPool2d.cu: all is zeroed, then a kernel"
    yield Class(
        "max_pool2d_with_indices_backward",
        ("planes", "pixels"),
        _planes,
        ((1, 2048), (16, 1 << 14)),
        source,
    )
    yield Class(
        "embedding_dense_backward",
        ("indices", "length", "weights"),
        _embedded,
        ((1, 3072), (16, 4096), (64, 1 << 15)),
        "cuda/Embedding.cu: up to 3072 indices without sorting them",
    )


CLASSES: tuple[Class, ...] = (*_of_rows(), *_of_elements(), *_of_gradients())
BY_OP: dict[str, tuple[Class, ...]] = {
    name: tuple(c for c in CLASSES if c.op == name) for name in {c.op for c in CLASSES}
}
