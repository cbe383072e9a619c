"""Operands that a GPU's kernels refuse, and tensors without memory do not: dtypes and devices.

A call that cannot run launches nothing, so it raises here what it raises there, in torch's words or
near them. Paths are files of PyTorch below ``aten/src/ATen/native``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelcount.paper.places import is_on

Operands = Mapping[str, Any]
"""The arguments of an op by the names of its schema."""

# What must share a dtype. cuda/Blas.cpp and LinearAlgebra.cpp (products), Convolution.cpp
# (check_input_same_type_as_parameters), cuda/Distance.cu, cuda/CrossKernel.cu, TensorFactories.cpp
# (complex_check_dtype), BinaryOps.cpp (heaviside), cuda/GridSampler.cu, TensorAdvancedIndexing.cpp,
# cuda/Loss.cu, cuda/NLLLoss2d.cu, PointwiseOps.h, cuda/EmbeddingBag.cu, cuda/layer_norm_kernel.cu,
# group_norm_kernel.cu and cuda/RNN.cu there: each either checks, or reads all by the first's dtype.
_ALIKE: dict[str, tuple[str, ...]] = {
    "mm": ("self", "mat2"),
    **dict.fromkeys(("addmm", "_addmm_activation"), ("mat1", "mat2", "self")),
    "bmm": ("self", "mat2"),
    **dict.fromkeys(("baddbmm", "addbmm"), ("batch1", "batch2", "self")),
    "mv": ("self", "vec"),
    "addmv": ("mat", "vec", "self"),
    "dot": ("self", "tensor"),
    "vdot": ("self", "other"),
    "convolution": ("input", "weight", "bias"),
    "_cdist_forward": ("x1", "x2"),
    "linalg_cross": ("self", "other"),
    "complex": ("real", "imag"),
    "polar": ("abs", "angle"),
    "heaviside": ("self", "values"),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), ("input", "grid")),
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), ("self", "values")),
    **dict.fromkeys(("index_add", "index_copy"), ("self", "source")),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), ("self", "weight")),
    "binary_cross_entropy": ("self", "target", "weight"),
    "huber_loss_backward": ("self", "target", "grad_output"),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"),
                    ("weight", "per_sample_weights")),
    "native_layer_norm": ("input", "weight", "bias"),
    "native_group_norm": ("input", "weight", "bias"),
    "_thnn_fused_lstm_cell": ("input_gates", "hidden_gates", "cx"),
    "_thnn_fused_gru_cell": ("input_gates", "hidden_gates", "hx"),
}  # fmt: skip

# Statistics and parameters may also be wider than half an input: cuda/Normalization.cu.
_BATCH_NORM = ("native_batch_norm", "_native_batch_norm_legit")
_PARAMETERS = ("weight", "bias", "running_mean", "running_var")

# Masks of booleans, and the dtypes of indices: TensorAdvancedIndexing.cpp, cuda/Indexing.cu,
# cuda/Loss.cu (AT_DISPATCH_NLL_LOSS_INDEX_TYPES).
_MASKS = {"masked_fill": "mask", "masked_scatter": "mask", "masked_select": "mask"}
_INDICES = {
    "index_select": ("index", ("int32", "int64"), "index_select(): Expected dtype int32 or int64 "
                     "for index"),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"),
                    ("target", ("int64", "uint8"),
                     "expected target dtype to be Long or Byte, but got {0}")),
}  # fmt: skip

# Those with kernels for floating-point numbers alone, and those that complex ones have besides:
# the AT_DISPATCH macros in cuda/Activation*.cu, SoftMax.cu, Blas.cpp, UpSample*.cu,
# AdaptiveAveragePooling.cu, ReduceMomentKernel.cu, DistributionTemplates.h and Multinomial*.cu.
_FLOATS = frozenset(
    {
        "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_log_softmax", "_softmax", "avg_pool2d",
        "elu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "log_sigmoid_forward", "mish",
        "multinomial", "native_dropout", "native_group_norm", "native_layer_norm", "softplus",
        "uniform", "upsample_bicubic2d",
        "upsample_bilinear2d", "upsample_linear1d", "upsample_trilinear3d",
    }
)  # fmt: skip
_FLOATS_OR_BYTES = frozenset({"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"})
_FLOATS_OR_COMPLEX = frozenset(
    {
        "addmm", "addmv", "baddbmm", "bmm", "convolution", "dot", "mm", "mv", "normal", "silu",
        "std", "std_mean", "var", "var_mean", "vdot",
    }
)  # fmt: skip
_WHOLE = frozenset({"bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"})
_NO_BOOLEANS = frozenset({"fmod", "median", "relu", "remainder"})
_NO_COMPLEX = frozenset(
    {"amax", "amin", "argmax", "argmin", "clamp", "floor", "ge", "gt", "le", "lt", "max", "maximum",
     "min", "minimum", "sort", "topk"}
)  # fmt: skip
_NO_HALVES = frozenset({"_linalg_eigh", "_linalg_svd", "linalg_eig"})

# What may take tensors of the host's beside the GPU's: what copies, TensorShape.cpp (scatters of
# views) and Fill.cpp in ATen/native, indices (TensorAdvancedIndexing.cpp), lengths (LossCTC.cpp,
# PackedSequence.cpp), and what looks at sizes and memory alone.
_ANY_DEVICE = frozenset(
    {
        "_cudnn_ctc_loss", "_ctc_loss", "_ctc_loss_backward", "_foreach_copy",
        "_has_compatible_shallow_copy_type", "_has_same_storage_numel", "_index_put_impl",
        "_pack_padded_sequence", "_pack_padded_sequence_backward", "_to_copy", "_unsafe_index",
        "_unsafe_index_put", "_use_cudnn_ctc_loss", "as_strided_scatter", "clone", "copy",
        "diagonal_scatter", "fill", "index", "index_put", "is_same_size", "is_set_to", "narrow",
        "resize_as", "select_scatter", "set", "slice_scatter",
    }
)  # fmt: skip


def check_devices(name: str, tensors: Sequence[Any]) -> None:
    """Raise what torch raises on a GPU where tensors of the host and of the GPU meet in an op.

    `name`: as for `check_dtypes`; `tensors`: all that it is given. Of the host's, those without
    dimensions may meet a GPU's. Raises RuntimeError.
    """
    on_host = [t for t in tensors if is_on(t, "cpu")]
    meets = len(on_host) < len(tensors) and any(t.dim() for t in on_host)
    if meets and name.removesuffix("_") not in _ANY_DEVICE:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            "cuda:0 and cpu!"
        )


def check_dtypes(name: str, given: Operands) -> None:
    """Raise what torch raises on a GPU where dtypes do not go together, or there is no kernel.

    `name`: the op's, without namespace and overload. Raises RuntimeError, or NotImplementedError.
    """
    name = name if name.endswith("__") else name.removesuffix("_")
    if name in _ALIKE and not _may_differ(name, given):
        _check_alike(name, _ALIKE[name], given)
    if name in _BATCH_NORM:
        _check_batch_norm(given)
    if name in _MASKS and str(given[_MASKS[name]].dtype) != "torch.bool":
        dtype = type_name(given[_MASKS[name]].dtype)
        raise RuntimeError(f"{name}_ only supports boolean masks, but got mask with dtype {dtype}")
    if name in _INDICES:
        argument, dtypes, words = _INDICES[name]
        dtype = given[argument].dtype
        if str(dtype).removeprefix("torch.") not in dtypes:
            raise RuntimeError(words.format(type_name(dtype)))
    _check_kernel(name, given)


def check_attention(query: Any, key: Any, value: Any, mask: Any) -> None:
    """What scaled_dot_product_attention checks first: transformers/attention.cpp.

    Raises RuntimeError.
    """
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{_cpp_name(query.dtype)} key.dtype: {_cpp_name(key.dtype)} and value.dtype: "
            f"{_cpp_name(value.dtype)} instead."
        )
    if len({is_on(t, "cpu") for t in (query, key, value)}) > 1:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device} key.device: {key.device} and value.device: {value.device} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:  # noqa: PLR2004
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if mask is not None and str(mask.dtype) not in ("torch.bool", "torch.float32"):
        if mask.dtype == query.dtype:
            return
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {_cpp_name(mask.dtype)} and  query.dtype: {_cpp_name(query.dtype)} "
            "instead."
        )


def _may_differ(name: str, given: Operands) -> bool:
    """Exceptions to the rule."""
    if name.startswith("_index_put") or name in ("index_put", "_unsafe_index_put"):
        # A number that is put where one mask says is a fill: canDispatchToMaskedFill.
        values, masks = given["values"], [t for t in given["indices"] if t is not None]
        one_mask = len(masks) == 1 and str(masks[0].dtype) in ("torch.bool", "torch.uint8")
        return one_mask and values.numel() == 1 and is_on(values, "cpu")
    if name == "native_group_norm":  # GroupNorm1dForward casts for halves
        return given.get("HxW") == 1 and given["input"].element_size() == 2  # noqa: PLR2004
    return False


def _check_alike(name: str, names: tuple[str, ...], given: Operands) -> None:
    first, *others = [(n, given[n]) for n in names if given.get(n) is not None]
    for other in others:
        if other[1].dtype != first[1].dtype:
            raise RuntimeError(_WORDS.get(name, _two_dtypes)(first, other))


def _check_batch_norm(given: Operands) -> None:
    x = given["input"]
    allowed = {str(x.dtype)} | ({"torch.float32"} if x.element_size() == 2 else set())  # noqa: PLR2004
    for name in _PARAMETERS:
        other = given.get(name)
        if other is not None and str(other.dtype) not in allowed:
            raise RuntimeError(_scalar_type(("input", x), (name, other)))


def _check_kernel(name: str, given: Operands) -> None:
    """Whether there is a kernel for the dtype of the first operand."""
    first = next((v for v in given.values() if hasattr(v, "dtype")), None)
    if first is None:
        return
    floats, complex_ = first.is_floating_point(), first.is_complex()
    boolean = str(first.dtype) == "torch.bool"
    missing = (
        (name in _FLOATS and not floats)
        or (name in _FLOATS_OR_BYTES and not (floats or str(first.dtype) == "torch.uint8"))
        or (name in _FLOATS_OR_COMPLEX and not (floats or complex_))
        or (name in _WHOLE and (floats or complex_))
        or (name in _NO_COMPLEX and complex_)
        or (name in _NO_HALVES and floats and first.element_size() == 2)  # noqa: PLR2004
        or (name in _NO_BOOLEANS and boolean and _all_booleans(given))
    )
    if missing:
        kernel = _KERNELS.get(name, f"{name}_cuda")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(first.dtype)}'")


def _all_booleans(given: Operands) -> bool:
    """Whether nothing among the operands is wider than a boolean."""
    numbers = [v for v in given.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    dtypes = {str(v.dtype) for v in given.values() if hasattr(v, "dtype")}
    return not numbers and dtypes == {"torch.bool"}


_KERNELS = {"mm": "addmm_cuda", "bmm": "baddbmm_cuda", "mv": "addmv_impl_cuda"}
"""Whose name a kernel bears that is another op's, too."""


# ── torch's words ────────────────────────────────────────────────────────────────────────────────

_Named = tuple[str, Any]


def _product(first: _Named, other: _Named) -> str:
    if other[0] == "self":
        return _two_dtypes(other, ("mat2", first[1]))
    one, two = _cpp_name(first[1].dtype), _cpp_name(other[1].dtype)
    return f"expected mat1 and mat2 to have the same dtype, but got: {one} != {two}"


def _parameter(first: _Named, other: _Named) -> str:
    return (
        f"Input type ({_tensor_type(first[1].dtype)}) and {other[0]} type "
        f"({_tensor_type(other[1].dtype)}) should be the same"
    )


def _put(first: _Named, other: _Named) -> str:
    return (
        "Index put requires the source and destination dtypes match, got "
        f"{type_name(first[1].dtype)} for the destination and {type_name(other[1].dtype)} for the "
        "source."
    )


def _scalar_type(first: _Named, other: _Named) -> str:
    return f"expected scalar type {type_name(first[1].dtype)} but found {type_name(other[1].dtype)}"


def _two_dtypes(first: _Named, other: _Named) -> str:
    return (
        f"{first[0]} and {other[0]} must have the same dtype, but got {type_name(first[1].dtype)} "
        f"and {type_name(other[1].dtype)}"
    )


def _found(first: _Named, other: _Named) -> str:
    return f"Found dtype {type_name(other[1].dtype)} but expected {type_name(first[1].dtype)}"


_WORDS: dict[str, Callable[[_Named, _Named], str]] = {
    **dict.fromkeys(
        ("mm", "addmm", "_addmm_activation", "bmm", "baddbmm", "addbmm", "mv", "addmv"), _product
    ),
    "convolution": _parameter,
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), _put),
    **dict.fromkeys(
        ("native_layer_norm", "native_group_norm", "nll_loss_forward", "nll_loss2d_forward",
         "_cdist_forward", "grid_sampler_2d", "grid_sampler_3d", "_embedding_bag",
         "_embedding_bag_forward_only", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"),
        _scalar_type,
    ),
    **dict.fromkeys(("binary_cross_entropy", "huber_loss_backward", "linalg_cross"), _found),
}  # fmt: skip


# c10/core/ScalarType.h: the name of each dtype, and the C++ type behind it.
_DTYPES = {
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "float16": ("Half", "c10::Half"),
    "bfloat16": ("BFloat16", "c10::BFloat16"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long int"),
    "uint8": ("Byte", "unsigned char"),
    "bool": ("Bool", "bool"),
    "complex32": ("ComplexHalf", "c10::complex<c10::Half>"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
}
_LEGACY = frozenset({"Float", "Double", "Half", "Char", "Short", "Int", "Long", "Byte"})


def type_name(dtype: Any) -> str:
    """A dtype as torch's errors name it: Float for torch.float32."""
    return _names(dtype)[0]


def _cpp_name(dtype: Any) -> str:
    return _names(dtype)[1]


def _names(dtype: Any) -> tuple[str, str]:
    plain = str(dtype).removeprefix("torch.")
    return _DTYPES.get(plain, (plain, plain))


def _tensor_type(dtype: Any) -> str:
    """Its tensor type on a GPU, as in "Input type (torch.cuda.FloatTensor)"."""
    name = type_name(dtype)
    return f"torch.cuda.{name}Tensor" if name in _LEGACY else f"CUDA{name}Type"
