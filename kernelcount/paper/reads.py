"""Ops that read values on the host inside of themselves, where nobody sees it on shapes.

How often, where torch's source says so; else that nobody knows. Paths are files of PyTorch below
``aten/src/ATen/native``.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelcount.model import SyncKind
from kernelcount.paper import rules
from kernelcount.paper.places import device_of

# They find out how much there is before they can make room for it, cuda/Nonzero.cu, cuda/Unique.cu;
# or they compare, TensorCompare.cpp and cuda/Equal.cpp.
_BY_NAME: dict[str, SyncKind] = {
    "nonzero": "nonzero",
    "masked_select": "mask",
    "equal": "bool",
    "allclose": "bool",
    "_nested_tensor_from_mask_left_aligned": "bool",
    "_unique": "inside an op",
    "_unique2": "inside an op",
}

# Their results, or whether there are any, are checked on the host, or a library that they call may
# wait: BatchLinearAlgebra.cpp and cuda/linalg/. Not those that are plain kernels or cuBLAS's.
_ALGEBRA = ("linalg_", "_linalg_")
_PLAIN_ALGEBRA = frozenset(
    {
        "_linalg_check_errors", "linalg_cross", "linalg_diagonal", "linalg_solve_triangular",
        "linalg_vecdot", "linalg_vector_norm",
    }
)  # fmt: skip
_CHECKING = ("_linalg_eigh", "_linalg_svd")  # they call _linalg_check_errors themselves
_OPEN = frozenset(
    {
        # the same of old names
        "_cholesky_solve_helper", "_lu_with_info", "cholesky", "cholesky_inverse",
        "cholesky_solve", "geqrf", "lu_solve", "ormqr",
        # lengths and offsets come from the host: cuda/LossCTC.cu, cudnn/LossCTC.cpp
        "_ctc_loss", "_ctc_loss_backward", "_cudnn_ctc_loss",
        # Thrust waits for what it has sorted: cuda/Embedding.cu, cuda/TensorModeKernel.cpp
        "embedding_renorm_", "mode",
        # what they are given is checked: SegmentReduce.cpp, quantized/
        "segment_reduce", "fake_quantize_per_channel_affine_cachemask", "quantize_per_channel",
        "quantize_per_tensor", "quantize_per_tensor_dynamic",
    }
)  # fmt: skip


def found(op: rules.Op) -> list[tuple[SyncKind, str]]:
    """The waits inside of an op, as many as it makes at the least: kind, and the op it is for."""
    if op.name in _NUMBERS:
        return [("inside an op", op.name)] * _NUMBERS[op.name](op)
    if rules.reads_number(op):
        return [("item", op.name)]
    if op.name == "_linalg_check_errors":
        return [("inside an op", _checked(op))] if _anything(op) else []
    if op.name in _CHECKING:
        return [("inside an op", op.name.removeprefix("_"))] if _anything(op) else []
    if op.name == "equal" and op.read[0].shape != op.read[1].shape:
        return []
    return [(_BY_NAME[op.name], op.name)] if op.name in _BY_NAME and _anything(op) else []


def by_name(name: str) -> SyncKind | None:
    """What an op waits for of which only the name is known."""
    return "inside an op" if name in _NUMBERS else _BY_NAME.get(name)


def is_open(name: str) -> bool:
    """Whether an op of this name may wait more often than `found` says."""
    algebra = name.startswith(_ALGEBRA) and name not in _PLAIN_ALGEBRA
    return algebra or name.removesuffix("_") in _OPEN or name in _OPEN


def may_wait_more(op: rules.Op) -> bool:
    """The same of a call, which may not be large enough for it."""
    if op.name == "isin":
        return _sorts(op)
    return is_open(op.name) or (_anything(op) and _counts_rows(op))


def _anything(op: rules.Op) -> bool:
    return any(t.numel() for t in op.read)


def _checked(op: rules.Op) -> str:
    """The function whose errors are looked for: linalg.inv, or torch.linalg.solve."""
    name = str(rules.argument(op, 1, "api_name", op.name))
    return name.removeprefix("torch.").replace(".", "_")


def _histc(op: rules.Op) -> int:
    """cuda/SummaryOps.cu: the least and the greatest, where they are not given."""
    low, high = rules.argument(op, 2, "min", 0), rules.argument(op, 3, "max", 0)
    return 2 if low == high and _anything(op) else 0


def _bincount(op: rules.Op) -> int:
    """cuda/SummaryOps.cu: the greatest; and the least, which may not be negative."""
    if not op.read[0].numel():
        return 0
    return 1 if str(op.read[0].dtype) == "torch.uint8" else 2


def _repeat_interleave(op: rules.Op) -> int:
    """Repeat.h: how many there come to be, and whether any is negative; not if that is given."""
    return 2 if _anything(op) and op.kwargs.get("output_size") is None else 0


def _searchsorted(op: rules.Op) -> int:
    """BucketizationUtils.h: the least and the greatest of a sorter."""
    sorter = rules.argument(op, 5, "sorter")
    return 2 if sorter is not None and sorter.numel() else 0


def _normal(op: rules.Op) -> int:
    """Whether no deviation is negative: DistributionTemplates.h, CHECK_NORMAL_TENSOR_STD.

    normal_impl asks, and again normal_out_impl, which alone is asked where the result is given.
    """
    deviation = rules.argument(op, 1, "std")
    if not hasattr(deviation, "numel") or not deviation.numel():
        return 0
    return 1 if op.out else 2


def _unique_rows(op: rules.Op) -> int:
    """cuda/Unique.cu, unique_dim_cuda_template: of different rows only their places are sorted.

    Thrust waits for that once, and for what is left of it twice, as an H200 with CUDA 13 has it;
    once at the least, for their number. See `_counts_rows`.
    """
    if not _anything(op):
        return 0
    return 1 if _counts_rows(op) else 2 + (op.name == "unique_dim")


def _unique_in_order(op: rules.Op) -> int:
    """Of elements CUB's number is read once; along a dimension see `_unique_rows`."""
    return _unique_rows(op) if _has_rows(op) else int(_anything(op))


def _has_rows(op: rules.Op) -> bool:
    """unique_consecutive_cuda: whether whole rows are compared, not elements."""
    dim = rules.argument(op, 3, "dim") if op.name == "unique_consecutive" else 0
    alone = op.name == "unique_consecutive" and op.read[0].dim() == 1 and dim == 0
    return dim is not None and not alone


def _counts_rows(op: rules.Op) -> bool:
    """Whether more is asked of the rows than which there are: Thrust is called more often then."""
    first = {"unique_dim": 3, "unique_dim_consecutive": 2, "unique_consecutive": 1}.get(op.name)
    if first is None or not _has_rows(op):
        return False
    names = ("return_inverse", "return_counts")
    return any(rules.argument(op, first + i, name, False) for i, name in enumerate(names))


def _ends(op: rules.Op) -> int:
    """RangeFactories: the first and the last number, where they are tensors on the GPU."""
    ends = (rules.argument(op, 0, "start"), rules.argument(op, 1, "end"))
    return sum(1 for t in ends if hasattr(t, "numel") and device_of(t).type != "cpu")


_NUMBERS: dict[str, Callable[[rules.Op], int]] = {
    "histc": _histc,
    "bincount": _bincount,
    "repeat_interleave": _repeat_interleave,
    "searchsorted": _searchsorted,
    "normal": _normal,
    "unique_dim": _unique_rows,
    "unique_dim_consecutive": _unique_rows,
    "unique_consecutive": _unique_in_order,
    "linspace": _ends,
    "logspace": _ends,
}


def _sorts(op: rules.Op) -> bool:
    """TensorCompare.cpp: of many elements the different ones are looked for first, as `unique`."""
    if len(op.read) != 2:  # noqa: PLR2004  a number beside a tensor is compared
        return False
    sought, among = op.read
    few = among.numel() < int(10.0 * sought.numel() ** 0.145)
    return not few and not rules.argument(op, 2, "assume_unique", False)
