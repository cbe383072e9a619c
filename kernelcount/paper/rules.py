"""How many kernels and copies an ATen op launches on a GPU: a rule, its condition and its source.

Paths are files of PyTorch below ``aten/src/ATen/native``. Where no rule knows, the op counts as one
kernel and the count is a lower bound. An op that only passes memory on counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from kernelcount.devices.aten import effect
from kernelcount.paper import copying, foreach, reductions
from kernelcount.paper.copying import is_dense, is_memcpy, span
from kernelcount.paper.places import STAND_IN, device_of, is_on

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Cost:
    """What one op launches. `exact` False: at least this."""

    kernels: int = 1
    copies: int = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Op:
    """One call of an op: `name` without namespace and overload, tensors in the order given.

    `written`: the tensors that it returns or changes in place. `out`: those of the given, and of
    `read`, whose elements it does not look at before it writes them. `pointwise`: torch tags it so.
    `parameters`: the other arguments by name, as text, without those that are as by default.
    """

    name: str
    namespace: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    read: Sequence[Tensor]
    written: Sequence[Tensor]
    pointwise: bool = False
    parameters: str = ""
    out: Sequence[Tensor] = ()


def argument(op: Op, index: int, name: str, default: Any = None) -> Any:
    """The argument of this name, or at this place where it is not named."""
    if name in op.kwargs:
        return op.kwargs[name]
    return op.args[index] if len(op.args) > index else default


TORCHS_OWN = ("aten", "prims")
"""Namespaces of ops that torch brings. What others do, or how much they read, nobody knows."""

NOTHING = Cost(0)
ONE = Cost(1)
AT_LEAST_ONE = Cost(1, exact=False)

_INT32 = 2**31 - 1

# cuda/ReduceOps.cpp, cuda/Reduce.cuh: one reduction kernel, blocks agreeing through a semaphore
# that a fill resets; cuda/SoftMax.cu, TensorFactories.cu, RangeFactories.cu, FillKernel.cu,
# Distributions.cu, Dropout.cu, Indexing.cu (index_select), IndexKernel.cu, ScatterGatherKernel.cu,
# TensorTransformations.cu (flip, roll), Loss.cu, NLLLoss2d.cu, DilatedMaxPool2d.cu,
# AveragePool2d.cu, UpSample*.cu, ActivationLogSigmoidKernel.cu there: one each.
_ONE = frozenset(
    {
        "_log_softmax", "_log_softmax_backward_data", "_softmax", "all", "amax", "amin", "aminmax",
        "any", "arange", "argmax", "argmin", "avg_pool2d", "bernoulli", "bernoulli_",
        "exponential_", "fill", "fill_", "flip", "full", "full_like", "gather", "glu", "index_add_",
        "index_select", "linalg_vector_norm", "linspace",
        "log_sigmoid_backward", "log_sigmoid_forward", "logspace", "masked_fill_", "max",
        "max_pool2d_with_indices", "mean", "min", "nansum", "native_dropout",
        "native_dropout_backward", "new_full", "new_ones", "new_zeros", "norm", "normal_", "ones",
        "ones_like", "prod", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
        "random_", "repeat", "roll", "scalar_tensor", "scatter_", "scatter_add_", "std", "std_mean",
        "sum", "take", "tril", "tril_", "triu", "triu_", "uniform_", "upsample_bilinear2d",
        "upsample_nearest2d", "var", "var_mean", "zero", "zero_", "zeros", "zeros_like",
    }
)  # fmt: skip

# Tagged pointwise, and yet made of several kernels or of none, depending on their arguments.
_NOT_SIMPLY_POINTWISE = frozenset({"clone", "masked_fill", "copy", "rrelu"})

# They search all that they are given, whatever little comes of it.
_SEARCHES = frozenset({"_unique2", "masked_select", "nonzero", "unique_consecutive", "unique_dim"})

# Loss.cpp, PointwiseOps: the losses, and a reduction over them unless reduction is 0.
_LOSSES = {"mse_loss": 2, "smooth_l1_loss": 2, "huber_loss": 2}

_MOST_IN_A_ROW = 1 << 24  # layer_norm_kernel.cu: what a float can count

_CAT_MOST = 64  # inputs in one launch, cuda/Shape.cu: CAT_ARRAY_BATCH_SIZE is 128, 64 if aligned


def cost(op: Op, on_gpu: str = STAND_IN) -> Cost:
    """What this call launches. `on_gpu`: the torch device that plays the GPU."""
    return _in_32_bits(at_any_size(op, on_gpu), op)


def at_any_size(op: Op, on_gpu: str = STAND_IN) -> Cost:
    """The same, were its operands within what 32 bits can address."""
    if op.namespace == "prim" or not (op.written or op.read):
        return NOTHING
    if op.name in COPIES:
        return _copy(op, on_gpu)
    if _is_on_host(op) or (_is_empty(op) and op.name not in RANGES):
        return NOTHING
    if op.name in _SPECIAL or op.name.startswith("_foreach_"):
        return _SPECIAL.get(op.name, _foreach)(op)
    if effect(f"{op.namespace}::{op.name}") == "nothing" or _only_aliases(op):
        return NOTHING
    if op.namespace not in TORCHS_OWN:
        return Cost(0, exact=False)  # somebody's own op: it may do anything
    if copying.copies_view(op.name):
        return _copies(copying.of_views(op))
    alone = op.name in _ONE or (op.pointwise and op.name not in _NOT_SIMPLY_POINTWISE)
    return ONE if alone else AT_LEAST_ONE


def by_name(name: str) -> Cost:
    """What an op launches of which only the name is known, without namespace and overload."""
    return ONE if name in _ONE else AT_LEAST_ONE


def _in_32_bits(known: Cost, op: Op) -> Cost:
    """An operand beyond what 32 bits can address is worked on in parts (TensorIterator.cpp)."""
    large = any(span(t) * t.element_size() > _INT32 for t in (*op.read, *op.written))
    return Cost(known.kernels, known.copies, exact=False) if large and known.kernels else known


def _is_on_host(op: Op) -> bool:
    """Whether a tensor is made on the host that is like one on the GPU in its shape or dtype."""
    like = op.name.endswith("_like") or op.name.startswith("new_")
    return like and all(device_of(t).type == "cpu" for t in op.written)


def _is_empty(op: Op) -> bool:
    """Whether there is nothing to write, and nothing to be read before that is known."""
    if not op.written or any(t.numel() for t in op.written):
        return False
    searches = op.name in _SEARCHES or (op.name == "index" and mask_count(op.args[1]))
    return not (searches and any(t.numel() for t in op.read))


def _only_aliases(op: Op) -> bool:
    """Whether an op that changes nothing gave back what it got, as ``contiguous`` may."""
    from kernelcount.paper.adapter import unique_id

    if op.name.endswith("_") or "out" in op.kwargs or not op.written:
        return False
    if op.namespace not in TORCHS_OWN:
        return False  # it may change what it gives back, or gives nothing
    given = {unique_id(t) for t in op.read}
    return {unique_id(t) for t in op.written} <= given


# ── what depends on the arguments ────────────────────────────────────────────────────────────────


COPIES = ("clone", "copy_", "_to_copy")
"""Ops that copy."""


def _copy(op: Op, on_gpu: str) -> Cost:
    """clone, copy_, _to_copy. cuda/Copy.cu: a memcpy where dtype and layout agree, else a kernel.

    Between host and GPU it is a memcpy; the GPU's side is first, or last, made contiguous there
    unless both have one layout, and cast there where nobody waits for it. A tensor that is copied
    to itself, as ``x[0] += 1`` does last, stays as it is (Copy.cpp).
    """
    source, target = copied(op)
    if target.numel() == 0 or _is_itself(source, target):
        return NOTHING
    sides = [is_on(t, on_gpu) for t in (source, target)]
    if not all(sides):
        side = source if sides[0] else target
        alike = source.stride() == target.stride() and is_dense(source)
        cast = source.dtype != target.dtype and is_non_blocking(op)
        return Cost(0 if (alike or side.is_contiguous()) and not cast else 1, 1)
    return _copied_over(source, target)


def _is_itself(source: Tensor, target: Tensor) -> bool:
    from kernelcount.paper.adapter import unique_id

    return (
        unique_id(source) == unique_id(target)
        and source.storage_offset() == target.storage_offset()
        and source.stride() == target.stride()
        and source.shape == target.shape
        and source.dtype == target.dtype
    )


def _copied_over(source: Tensor, target: Tensor) -> Cost:
    """A copy from GPU to GPU: a memcpy where both are alike and dense."""
    return _copies([is_memcpy(source, target)])


def _copies(memcpys: Sequence[bool] | None) -> Cost:
    """Copies on the GPU, each a memcpy or a kernel; None where nobody knows which."""
    if memcpys is None:
        return Cost(0, exact=False)
    return Cost(memcpys.count(False), memcpys.count(True))


def copied(op: Op) -> tuple[Tensor, Tensor]:
    """What a copy is made of, and what it is made to."""
    if op.name == "copy_":
        source = op.args[1] if hasattr(op.args[1], "dtype") else op.args[0]
        return source, op.args[0]
    return op.read[0], op.written[0]


def is_non_blocking(op: Op) -> bool:
    """Whether a copy is asked for that nobody waits for."""
    return bool(argument(op, 2 if op.name == "copy_" else 5, "non_blocking", False))


def _index(op: Op) -> Cost:
    """A mask is a search for its true elements first, with a wait (TensorAdvancedIndexing.cpp)."""
    if is_masked_fill(op):
        return ONE
    masks = mask_count(t for t in op.args[1] if not _is_hosts(t))
    narrow = any(str(t.dtype) == "torch.int32" for t in op.args[1] if t is not None)
    copies = masks + len(indexed_from_host(op)) + sum(_searched_on_host(op))
    return Cost(1 + masks, copies, exact=not (masks or _accumulates(op) or narrow))


def indexed_from_host(op: Op) -> list[Tensor]:
    """Those of an index's tensors, and what is put there, that are copied to the GPU first.

    Indices may come from the host, and so does a number that is put: THPVariable_setitem.
    """
    put = [op.args[2]] if op.name != "index" else []
    return [
        *(t for t in op.args[1] if _is_hosts(t) and not mask_count([t])),
        *filter(_is_hosts, put),
    ]


def searched_and_waited_for(op: Op) -> int:
    """Copies that are waited for of what was found in masks of the host's. See `_index`."""
    return sum(_searched_on_host(op)) if _accumulates(op) else 0


def _searched_on_host(op: Op) -> list[int]:
    """Copies for each mask of the host's, in which it is searched there: one, from pinned memory.

    ``expandTensors`` in IndexingUtils.h. Where what is put is added, each dimension of what was
    found is copied by itself, and waited for (computeLinearIndex in cuda/Indexing.cu).
    """
    masks = [t for t in op.args[1] if _is_hosts(t) and mask_count([t])]
    return [t.dim() if _accumulates(op) else 1 for t in masks]


def _accumulates(op: Op) -> bool:
    return op.name != "index" and bool(argument(op, 3, "accumulate", False))


def _is_hosts(tensor: Any) -> bool:
    return tensor is not None and device_of(tensor).type == "cpu"


def is_masked_fill(op: Op) -> bool:
    """Whether a number is put where one mask says: canDispatchToMaskedFill.

    TensorAdvancedIndexingUtils.h: the mask is on the GPU, and the number is the host's.
    """
    if not op.name.startswith(("index_put_", "_index_put")) or _accumulates(op):
        return False
    indices = [t for t in op.args[1] if t is not None]
    one_mask = len(indices) == 1 == mask_count(indices) and not _is_hosts(indices[0])
    return one_mask and op.args[2].numel() == 1 and _is_hosts(op.args[2])


def mask_count(indices: Any) -> int:
    """How many of an index's tensors are masks."""
    names = ("torch.bool", "torch.uint8")
    return sum(1 for t in indices or () if t is not None and str(t.dtype) in names)


def _where(op: Op) -> Cost:
    """TensorCompare.cpp, where_self_out: casts, and a copy of each number that is the host's.

    What is not of the dtype of the result is cast first, and the condition to booleans.
    """
    wanted = ("torch.bool", *[str(t.dtype) for t in [*op.written[:1]] * 2])
    pairs = list(zip(op.read, wanted, strict=False))
    cast = sum(1 for t, dtype in pairs if str(t.dtype) != dtype and not _is_hosts(t) and t.numel())
    return Cost(1 + cast, len(numbers_of_host(op)))


def numbers_of_host(op: Op) -> list[Tensor]:
    """The host's tensors among those that `where` chooses by and from: without dimensions."""
    return [t for t in op.read[:3] if _is_hosts(t)]


def _after_a_clone(op: Op) -> Cost:
    """The array is copied, then changed: index_put and scatter that are not in place."""
    copied = _copied_over(op.read[0], op.written[0])
    changed = _index(op) if op.name == "index_put" else ONE
    return Cost(copied.kernels + changed.kernels, copied.copies + changed.copies, changed.exact)


def _masked_fill(op: Op) -> Cost:
    """A clone, then masked_fill_: TensorAdvancedIndexing.cpp. A dense clone is a memcpy."""
    plain = op.read[0].is_contiguous() and op.read[0].shape == op.written[0].shape
    read = int(reads_number(op))
    return Cost(1, 1 + read) if plain else Cost(2, read)


_FILLS = {"masked_fill": 2, "index_fill": 3, "fill": 1}
"""Where the number stands that these fill with."""


def reads_number(op: Op) -> bool:
    """Whether an op that fills with a number reads it from the GPU first: item() of it.

    cuda/IndexKernel.cpp, masked_fill__cuda; TensorAdvancedIndexing.cpp, index_fill_; what is on
    the GPU itself `fill` copies instead (Fill.cpp).
    """
    name = op.name.removesuffix("_")
    if name not in _FILLS:
        return False
    number = argument(op, _FILLS[name], "value")
    if not hasattr(number, "dtype") or device_of(number).type == "cpu":
        return False
    return name != "fill" or device_of(op.written[0]).type == "cpu"


def _embedding(op: Op) -> Cost:
    """Indices that are not contiguous are copied first: Embedding.cpp."""
    return Cost(1 if op.read[1].is_contiguous() or op.read[1].dim() == 1 else 2)


def _cumulative(op: Op) -> Cost:
    """cuda/ScanKernels.cpp: a scan, after a cast where the dtype changes. One row: left to CUB.

    A number is copied (ReduceOps.cpp, impl_func_cum_ops; cuda/ScanKernels.cpp, logcumsumexp).

    What is not contiguous, or not after the cast, is copied first (cuda/ScanUtils.cuh, scan_dim).
    """
    x = op.read[0]
    cast = x.dtype != op.written[0].dtype
    if x.dim() == 0:
        return Cost(int(cast), 1)
    one_row = x.numel() == x.shape[argument(op, 1, "dim")]
    known = not one_row and not (cast and not x.is_contiguous())
    return Cost(1 + (cast or not x.is_contiguous()), exact=known)


def _log_of_sums(op: Op) -> Cost:
    return _cumulative(op) if op.read[0].dim() == 0 else AT_LEAST_ONE


def _made_contiguous(op: Op) -> Cost:
    """One kernel, and one before for each operand that is not contiguous.

    cuda/SoftMax.cu, host_softmax and host_softmax_backward.
    """
    return Cost(1 + sum(1 for t in op.read if t.numel() and not t.is_contiguous()))


def _softmax_backward(op: Op) -> Cost:
    """cuda/SoftMax.cu, softmax_backward_cuda_out: gradient times output, and the kernel of that.

    The product lies in memory as both do where they lie alike (TensorIterator.cpp), and like the
    output where the gradient is one number everywhere.
    """
    grad, output = op.read[:2]
    copied = 0 if output.is_contiguous() else 1
    if _is_in_order(grad) and _is_in_order(output):
        return Cost(2 + copied)
    alike = grad.stride() == output.stride()
    return Cost(2 + copied + alike, exact=alike)


def _is_in_order(tensor: Tensor) -> bool:
    """Whether no dimension is further out in memory than those before it."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    steps = [int(s) for n, s in pairs if n > 1 and s]
    return steps == sorted(steps, reverse=True)


def _reduced(op: Op) -> Cost:
    return Cost(2 if reductions.is_cast_first(op) else 1)


def _norm(op: Op) -> Cost:
    """linalg_vector_norm_out, LinearAlgebra.cpp: one kernel, after a cast for another dtype."""
    x, result = op.read[0], op.written[0]
    return Cost(1, exact=x.is_complex() or x.dtype == result.dtype)


def _variance(op: Op) -> Cost:
    """Of complex numbers, that of their parts, which are added: ReduceOps.cpp, std_var_out."""
    return AT_LEAST_ONE if op.read[0].is_complex() else ONE


def _truth(op: Op) -> Cost:
    copied = reductions.of_one_element(op)
    return ONE if copied is None else _copies(copied)


def _extreme(op: Op) -> Cost:
    return Cost(1, 1) if reductions.is_of_a_number(op) else ONE


def _nll_loss(op: Op) -> Cost:
    """cuda/NLLLoss.cu: of rows that are not summed the weight is set to 0 before.

    What is not contiguous is copied first.
    """
    rows = op.read[0].dim() > 1 and argument(op, 3, "reduction", 1) == 0
    return Cost(2 if rows else 1, exact=all(t.is_contiguous() for t in op.read))


def _filled(op: Op) -> Cost:
    """One kernel; a number that is on the GPU is copied instead, see `copying.filled`."""
    value = argument(op, 1, "value")
    if reads_number(op):
        return Cost(0, 1)
    if not hasattr(value, "dtype") or device_of(value).type == "cpu":
        return ONE
    return _copies(copying.filled(op.written[0], value))


RANGES = ("linspace", "logspace")


def _range(op: Op) -> Cost:
    """RangeFactories.cpp: ends that are on the GPU are read on the host, whatever is made then."""
    made = sum(1 for t in op.written if t.numel() and device_of(t).type != "cpu")
    return Cost(made, sum(1 for t in op.read if device_of(t).type != "cpu" and t not in op.out))


def _ldexp(_: Op) -> Cost:
    """BinaryOps.cpp: 2 to the power of the exponent, which is two kernels (`_power`), and mul."""
    return Cost(3)


def _mvlgamma(op: Op) -> Cost:
    """UnaryOps.cpp: arange, add, lgamma, sum and add. In place the result is copied."""
    return Cost(5, exact=op.name == "mvlgamma" and "out" not in op.kwargs)


def _roll(op: Op) -> Cost:
    """cuda/TensorTransformations.cu and TensorTransformations.h: one dimension after the other."""
    dims = argument(op, 2, "dims", ()) or (0,)
    copied = 0 if op.read[0].is_contiguous() else 1
    return Cost(len(dims) + copied, exact=not (copied and len(dims) > 1))


def _images(op: Op) -> Cost:
    """One kernel for images that are contiguous; in another layout they may be copied first.

    To enlarge to the same size is a copy (cuda/UpSampleNearest2d.cu).
    """
    x = op.read[0]
    if op.name.startswith("upsample") and x.shape == op.written[0].shape:
        return Cost(0, exact=False)
    return Cost(1, exact=x.is_contiguous())


def _equal(op: Op) -> Cost:
    """cuda/Equal.cpp: eq, all, and their result on the host; nothing of what is the same."""
    one, other = op.read
    if _is_itself(one, other) or one.shape != other.shape:
        return Cost(0, exact=False)
    return Cost(1, 2) if one.numel() == 1 else Cost(2, 1)  # `_truth` of eq


def _repeat(op: Op) -> Cost:
    """TensorShape.cpp: a copy into each place; as often as it is, a plain one."""
    return Cost(0, exact=False) if op.read[0].numel() == op.written[0].numel() else ONE


def _cat(op: Op) -> Cost:
    """cuda/Shape.cu: one launch for inputs of one dtype, up to four dimensions, not too many."""
    parts = [t for t in op.read if t.numel()]
    deep = any(t.dim() > 4 for t in op.written)  # noqa: PLR2004
    if len(parts) == 1 or deep:
        return Cost(0, exact=False)  # copies, which may be memcpys
    alike = len({t.dtype for t in parts}) == 1 and all(t.dim() <= 4 for t in op.written)  # noqa: PLR2004
    return Cost(1, exact=alike and len(parts) <= _CAT_MOST)


def _layer_norm(op: Op) -> Cost:
    """cuda/layer_norm_kernel.cu: one kernel where rows can be read four elements at a time.

    Otherwise two, the moments first. Rows that are not contiguous are copied before.
    """
    shape, x = op.args[1], op.read[0]
    length = prod(shape) if shape else 0
    single = x.is_floating_point() and x.element_size() <= 4  # noqa: PLR2004 not double
    aligned = all(int(t.storage_offset()) % 4 == 0 for t in op.read)
    wide = single and aligned and length % 4 == 0 and 0 < length <= _MOST_IN_A_ROW
    copied = 0 if x.is_contiguous() else 1
    if op.name != "native_layer_norm":
        return Cost(1 + copied, exact=wide)
    return Cost((1 if wide else 2) + copied)


def _batch_norm(op: Op) -> Cost:
    """cuda/Normalization.cu, in training: statistics, their inverse, and the elements.

    With weight and bias cuDNN may do it (Normalization.cpp); without, and with the channels first
    in memory, these three do.
    """
    x = op.read[0]
    affine = argument(op, 1, "weight") is not None and argument(op, 2, "bias") is not None
    first = x.dim() > 2 and x.is_contiguous() and x.stride(1) != 1  # noqa: PLR2004 no images
    training = argument(op, 5, "training", False) is True
    return Cost(3) if training and first and not affine else AT_LEAST_ONE


def _group_norm(op: Op) -> Cost:
    """cuda/group_norm_kernel.cu: the moments and the elements; between them weight and bias."""
    plain = argument(op, 1, "weight") is None and argument(op, 2, "bias") is None
    return Cost(2 if plain or argument(op, 5, "HxW") == 1 else 3, exact=op.read[0].is_contiguous())


def _repeat_interleave(op: Op) -> Cost:
    """Repeat.h: a scan, which is left to CUB, and the kernel that writes.

    Without `output_size` both the length and whether all are positive are read before.
    """
    if not op.read[0].numel():
        return NOTHING
    known = op.kwargs.get("output_size") is not None
    return Cost(2 if known else 4, 0 if known else 2, exact=False)


def _pad(op: Op) -> Cost:
    """PadNd.cpp: everything is filled, and what was given is copied inside. See `_copy`.

    To cut off at all sides is a clone of what is left.
    """
    x, padded = op.read[0], op.written[0]
    pads = list(map(int, op.args[1]))
    if max(pads, default=0) <= 0:
        return Cost(0, exact=False)
    sizes, strides = list(map(int, x.shape)), x.stride()
    for i, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        sizes[-1 - i] += min(before, 0) + min(after, 0)
    if not all(sizes):
        return ONE
    real = [i for i, n in enumerate(sizes) if n > 1]
    whole = 1 + sum((sizes[i] - 1) * strides[i] for i in real) == prod(sizes)
    same = all(strides[i] == padded.stride(i) for i in real)
    return Cost(1, 1) if whole and same else Cost(2)


def _isinf(op: Op) -> Cost:
    """TensorCompare.cpp: abs and eq; of whole numbers none is, so zeros."""
    if op.read[0].is_complex():
        return AT_LEAST_ONE
    return Cost(2) if op.read[0].is_floating_point() else ONE


def _foreach(op: Op) -> Cost:
    """A launch for as many tensors as fit, see `foreach`; otherwise the tensors one by one."""
    known = foreach.launches(op.name, op.args)
    return AT_LEAST_ONE if known is None else Cost(known[0], exact=known[1])


def _loss(op: Op) -> Cost:
    reduction = op.args[2] if len(op.args) > 2 else op.kwargs.get("reduction", 1)  # noqa: PLR2004
    absolute = op.name == "smooth_l1_loss" and argument(op, 3, "beta", 1.0) == 0  # by sub and abs
    return Cost((_LOSSES[op.name] if reduction else 1) + absolute)


def _power(op: Op) -> Cost:
    """Pow.cpp: to the power of 0 it fills, of 1 it copies, which in place is nothing.

    A base that is a number, other than 1, is written to the GPU first (pow_Scalar_out).
    """
    base, exponent = op.args[:2]
    if not hasattr(base, "dtype"):
        return ONE if base == 1 else Cost(2)
    if hasattr(exponent, "dtype") or exponent != 1:
        return ONE
    return NOTHING if op.name == "pow_" else _copied_over(op.read[0], op.written[0])


def _scalar_read(_: Op) -> Cost:
    """item(), bool(), float(): one copy to the host, and a wait (Scalar.cu)."""
    return Cost(0, 1)


_SPECIAL: dict[str, Callable[[Op], Cost]] = {
    **dict.fromkeys(("index", "index_put_", "_index_put_impl_"), _index),
    **dict.fromkeys(("index_put", "index_add", "scatter", "scatter_add"), _after_a_clone),
    **dict.fromkeys(("cumsum", "cumprod"), _cumulative),
    **dict.fromkeys(("cat", "stack"), _cat),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), _layer_norm),
    **dict.fromkeys(_LOSSES, _loss),
    **dict.fromkeys(("_softmax", "_log_softmax", "_log_softmax_backward_data"), _made_contiguous),
    "_softmax_backward_data": _softmax_backward,
    **dict.fromkeys(reductions.SUMS, _reduced),
    **dict.fromkeys(reductions.NORMS, _norm),
    **dict.fromkeys(reductions.VARIANCES, _variance),
    **dict.fromkeys(("all", "any"), _truth),
    **dict.fromkeys(("max", "min"), _extreme),
    **dict.fromkeys(("logcumsumexp", "_logcumsumexp"), _log_of_sums),
    **dict.fromkeys(RANGES, _range),
    **dict.fromkeys(("fill", "fill_"), _filled),
    **dict.fromkeys(("ldexp", "ldexp_"), _ldexp),
    **dict.fromkeys(("mvlgamma", "mvlgamma_"), _mvlgamma),
    **dict.fromkeys(copying.INTO_VIEWS, lambda op: _copies(copying.into_view(op))),
    **dict.fromkeys(copying.SHUFFLES, lambda op: _copies(copying.of_shuffle(op))),
    "nll_loss_forward": _nll_loss,
    **dict.fromkeys(
        ("max_pool2d_with_indices", "avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"),
        _images,
    ),
    "roll": _roll,
    "equal": _equal,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    **dict.fromkeys(("pow", "pow_"), _power),
    "constant_pad_nd": _pad,
    "isinf": _isinf,
    "native_batch_norm": _batch_norm,
    "native_group_norm": _group_norm,
    "masked_fill": _masked_fill,
    "where": _where,
    "masked_fill_": lambda op: Cost(1, int(reads_number(op))),
    "embedding": _embedding,
    "_local_scalar_dense": _scalar_read,
}
