"""Floating-point operations of an op, by torch's own registry, and the precision they run at.

Two for each multiplication with its addition, as torch.utils.flop_counter counts them: matrix
products, convolutions, attention, and whatever a user has registered there. What stands in no
registry, such as a sum, counts as none: it is memory that bounds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from kernelcount.paper.cards import Card
from kernelcount.paper.places import is_on
from kernelcount.paper.rules import Op, argument

Flops = tuple[str, int]
"""A precision and a number of operations."""

# Precisions as a run names them; a complex product is four real ones.
_PRECISIONS = {
    "torch.float16": ("f16", 1), "torch.bfloat16": ("bf16", 1), "torch.float32": ("f32", 1),
    "torch.float64": ("f64", 1), "torch.complex64": ("f32", 4), "torch.complex128": ("f64", 4),
}  # fmt: skip

_CONVOLUTIONS = ("convolution", "_convolution", "cudnn_convolution", "convolution_backward")
_RECURRENT = ("_cudnn_rnn", "_cudnn_rnn_backward")


def of(op: Op, card: Card) -> Flops | None:
    """The operations of a call; None where the registry has no formula for it."""
    formula = _formula(op.namespace, op.name)
    if formula is None or not op.args:
        return None
    try:
        count = int(formula(*op.args, **op.kwargs, out_val=_results(op)))
    except Exception:  # noqa: BLE001  a formula may be the user's own, and raise anything
        return None
    name, factor = precision(op, card)
    return name, count * factor


def precision(op: Op, card: Card) -> tuple[str, int]:
    """At which precision an op's products are made, and how many real ones each of them is."""
    dtypes = (str(t.dtype) for t in op.read if t.is_floating_point() or t.is_complex())
    dtype = next(dtypes, "torch.float32")
    if dtype.startswith("torch.float8"):
        return "fp8", 1
    name, factor = _PRECISIONS.get(dtype, (dtype.removeprefix("torch."), 1))
    if op.name in _CONVOLUTIONS and _by_channel(op):
        return ("f32" if name in ("bf16", "f16") else name), factor  # summed up as float32
    if name == "f32" and "tf32" in card.limits.tensor_cores and _in_tf32(op.name):
        return "tf32", factor
    return name, factor


def total(found: Iterable[Flops | None]) -> Counter[str]:
    """The sums by precision."""
    sums: Counter[str] = Counter()
    for flops in found:
        if flops is not None and flops[1]:
            sums[flops[0]] += flops[1]
    return sums


def _by_channel(op: Op) -> bool:
    """Whether torch's own kernel convolves each channel by itself, in eager code.

    It does without cuDNN and tensor cores: Convolution.cpp, is_depthwise and use_cudnn_depthwise;
    cuda/DepthwiseConv2d.cu. cuDNN does where channels come last, and may for images of float16.
    Compiled, Inductor may have put the channels last, and nobody knows here.
    """
    backward = op.name == "convolution_backward"
    x, weight = (argument(op, i + backward, n) for i, n in enumerate(("input", "weight")))
    groups = argument(op, 9 if backward else 8, "groups", 1)
    transposed = argument(op, 7 if backward else 6, "transposed", False)
    if transposed or groups in (None, 1) or x.dim() not in (4, 5) or not is_on(x):
        return False
    channels = int(x.shape[1])
    by_channel = groups == channels and int(weight.shape[0]) % channels == 0
    first = x.is_contiguous() and weight.is_contiguous()
    perhaps = x.dim() == 4 and str(x.dtype) == "torch.float16"  # noqa: PLR2004 images
    return by_channel and first and not perhaps


def _formula(namespace: str, name: str) -> Callable[..., Any] | None:
    import torch
    from torch.utils.flop_counter import flop_registry

    if (namespace, name) == ("aten", "_euclidean_dist"):
        return _of_distances
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return flop_registry.get(packet)  # type: ignore[no-any-return]


def _of_distances(x: Any, y: Any, **_: Any) -> int:
    """The product that distances are worked out by, its sides two longer: Distance.cpp."""
    rows = prod(map(int, x.shape[:-1]))
    return 2 * rows * int(y.shape[-2]) * (int(x.shape[-1]) + 2)


def _results(op: Op) -> Any:
    """What the op gave, as its formula wants it: gradients that nobody asked for are None."""
    if op.name != "convolution_backward":
        return op.written[0] if len(op.written) == 1 else list(op.written)
    given = iter(op.written)
    return [next(given, None) if wanted else None for wanted in argument(op, 10, "output_mask")]


def _in_tf32(name: str) -> bool:
    """Whether products of float32 are made of TF32 on tensor cores, as torch is set just now.

    cuDNN's are, unless switched off; those of cuBLAS where switched on (torch's notes on CUDA
    semantics). Memory-efficient attention adds up three of them for each, whatever is set
    (transformers/cuda/mem_eff_attention/gemm_kernel_utils.h, OpMultiplyAddFastF32).
    """
    import torch

    if "efficient_attention" in name:
        return True
    if name in _CONVOLUTIONS:
        setting = torch.backends.cudnn.conv
    elif name in _RECURRENT:
        setting = torch.backends.cudnn.rnn
    else:
        setting = torch.backends.cuda.matmul
    return bool(setting.fp32_precision == "tf32")
