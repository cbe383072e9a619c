"""Ops that CUDA has made of other ops than the CPU has: what each is made of there.

For eager code they are registered with torch's dispatcher, under the key at which autograd meets a
tensor on the stand-in; for traces only attention is needed, the rest being decomposed there anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernelcount.paper import adapter
from kernelcount.paper import attention as attending
from kernelcount.paper.cards import Card
from kernelcount.paper.log import Log
from kernelcount.paper.rules import Op

Composites = dict[Any, Callable[..., Any]]


def for_card(card: Card, log: Log) -> Composites:
    """Each op with the function that stands for it on the card; `log` notes what it runs."""
    import torch

    aten = torch.ops.aten
    return {
        aten.scaled_dot_product_attention.default: attending.made_for(card.capability),
        aten.dropout.default: _dropout,
        aten.softmax.int: _softmax_by(aten.softmax.int, aten._softmax.default),
        aten.log_softmax.int: _softmax_by(aten.log_softmax.int, aten._log_softmax.default),
        aten.rms_norm.default: _rms_norm_into(log),
    }


def attention(composites: Composites) -> Callable[..., Any]:
    """The function that stands for scaled_dot_product_attention."""
    import torch

    return composites[torch.ops.aten.scaled_dot_product_attention.default]


@contextmanager
def under_autograd(composites: Composites) -> Iterator[None]:
    """Have torch's dispatcher call these functions for tensors on the stand-in."""
    import torch

    library = torch.library.Library("aten", "IMPL")
    try:
        for op, function in composites.items():
            library.impl(op, function, "AutogradMeta")
        yield
    finally:
        adapter.unregister(library)


def _dropout(x: Any, p: float, train: bool) -> Any:
    """One kernel that draws and scales: Dropout.cpp, is_fused_kernel_acceptable."""
    import torch

    if not train or p == 0 or not x.numel():
        return x
    if p == 1:
        return x.mul(torch.zeros((), dtype=x.dtype, device=x.device))
    return torch.ops.aten.native_dropout.default(x, p, train)[0]


def _softmax_by(whole: Any, kernel: Any) -> Callable[..., Any]:
    """softmax, whose kernel on CUDA takes float16 and gives float32 at once: SoftMax.cpp."""
    import torch

    def made(x: Any, dim: int, dtype: Any = None) -> Any:
        if x.dtype == torch.float16 and dtype == torch.float32:
            return kernel(x, dim, True)
        return adapter.decomposed(whole, (x, dim, dtype), {})

    return made


def _rms_norm_into(log: Log) -> Callable[..., Any]:
    """rms_norm, one kernel of its own on CUDA where weight and input have one dtype.

    Source: layer_norm.cpp. What it is made of elsewhere goes unnoted.
    """
    import torch

    def made_of(*args: Any) -> Any:
        return adapter.decomposed(torch.ops.aten.rms_norm.default, args, {})

    class Fused(torch.autograd.Function):  # type: ignore[misc]
        """One op forward, and one back."""

        @staticmethod
        def forward(ctx: Any, x: Any, shape: Any, weight: Any, eps: Any) -> Any:
            """The normalised rows."""
            ctx.save_for_backward(x, weight)
            ctx.shape, ctx.eps = shape, eps
            with log.opened(to=False):
                result = made_of(x, shape, weight, eps)
            given = [x] if weight is None else [x, weight]
            log.note_op(Op("_fused_rms_norm", "aten", (x, shape), {}, given, [result]))
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            """Gradients of the rows and of the weight."""
            x, weight = ctx.saved_tensors
            leaves = [t.detach().requires_grad_() for t in (x, weight) if t is not None]
            with log.opened(to=False), torch.enable_grad():
                again = made_of(leaves[0], ctx.shape, leaves[1] if weight is not None else None,
                                ctx.eps)  # fmt: skip
                made = torch.autograd.grad(again, leaves, grads[0])
            given = [grads[0], *leaves]
            log.note_op(Op("_fused_rms_norm_backward", "aten", (), {}, given, list(made)))
            return made[0], None, made[1] if weight is not None else None, None

    def normalised(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        """torch.rms_norm as CUDA has it."""
        if weight is not None and weight.dtype != x.dtype:
            return made_of(x, shape, weight, eps)
        return Fused.apply(x, list(shape), weight, eps)

    return normalised
