"""Which backend scaled_dot_product_attention takes on a GPU, as shapes and strides decide it.

After ``aten/src/ATen/native/transformers/attention.cpp`` (what each backend is called with) and
``cuda/sdp_utils.cpp`` there (which of them can be used, and the order in which they are tried).
Dense tensors, and the backends that are on by default; deterministic mode is not looked at.
"""

from __future__ import annotations

from typing import Any, Literal

from kernelcount.paper.operands import check_attention

Backend = Literal["cudnn", "flash", "efficient", "math"]
Capability = tuple[int, int]

_DIMS = 4
_FLASH_MOST = 256  # the largest head that flash attention takes: check_head_dim_size_flash
_CUDNN_MOST = 128  # the largest head that cuDNN takes: check_cudnn_tensor_shapes
_CUDNN_FIRST = ((9, 0), (10, 0))  # where cuDNN is tried before flash: check_prefer_cudnn_attention
_BIAS_ALIGNMENT = 16  # elements, to which the efficient backend has a mask padded


def choose(
    query: Any, key: Any, value: Any, mask: Any, causal: bool, gqa: bool, capability: Capability
) -> Backend:
    """The backend for these tensors on a card of this compute capability."""
    import torch

    half = query.dtype in (torch.float16, torch.bfloat16)
    heads_differ = query.shape[1] != key.shape[1] if query.dim() == _DIMS else False
    if not _is_plain(query, key, value, gqa):
        return "math"
    head, value_head = query.shape[-1], value.shape[-1]
    given = [t for t in (query, key, value, mask) if t is not None]
    last = all(t.stride(-1) == 1 for t in given)
    fused = half and last and head == value_head
    fits_cudnn = head % 8 == 0 and head <= _CUDNN_MOST and key.shape[2] > 1
    if fused and capability in _CUDNN_FIRST and fits_cudnn and not (mask is not None and causal):
        return "cudnn"
    if fused and capability >= (8, 0) and mask is None and head <= _FLASH_MOST:
        return "flash"
    multiple = 8 if half else 4
    if last and not heads_differ and head % multiple == 0 and value_head % multiple == 0:
        return "efficient"
    return "math"


def _is_plain(query: Any, key: Any, value: Any, gqa: bool) -> bool:
    """Four dimensions, batches alike, heads alike or grouped, nothing empty."""
    if any(t.dim() != _DIMS for t in (query, key, value)):
        return False
    batches = query.shape[0] == key.shape[0] == value.shape[0]
    heads = gqa or query.shape[1] == key.shape[1] == value.shape[1]
    return bool(batches and heads and query.shape[2] and key.shape[2])


def made_for(capability: Capability) -> Any:
    """scaled_dot_product_attention, made of the ops that a card of this capability runs."""

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        import torch

        check_attention(query, key, value, attn_mask)
        aten = torch.ops.aten
        backend = choose(query, key, value, attn_mask, is_causal, enable_gqa, capability)
        mask = _as_bias(attn_mask, query)
        sums = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        if backend == "cudnn":
            return aten._scaled_dot_product_cudnn_attention.default(
                query, key, value, mask, sums, dropout_p, is_causal, False, scale=scale
            )[0]
        if backend == "flash":
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if backend == "efficient":
            return aten._scaled_dot_product_efficient_attention.default(
                query, key, value, _padded(mask, query, key), sums, dropout_p, is_causal,
                scale=scale,
            )[0]  # fmt: skip
        return by_math(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)

    return attend


def by_math(  # its frame tells whose ops the products and the softmax are
    query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: Any, gqa: bool
) -> Any:
    """Attention made of products and a softmax."""
    import torch

    return torch.ops.aten._scaled_dot_product_attention_math.default(
        query, key, value, mask, dropout, causal, None, scale=scale, enable_gqa=gqa
    )[0]


def _flash(query: Any, key: Any, value: Any, dropout: float, causal: bool, scale: Any) -> Any:
    """Heads are padded to a multiple of eight before, and the result is cut back after."""
    import torch

    head = query.shape[-1]
    scale = head**-0.5 if scale is None else scale
    if head % 8:
        query, key, value = (
            torch.nn.functional.pad(t, (0, 8 - head % 8)) for t in (query, key, value)
        )
    result = torch.ops.aten._scaled_dot_product_flash_attention.default(
        query, key, value, dropout, causal, False, scale=scale
    )[0]
    return result[..., :head]


def _as_bias(mask: Any, query: Any) -> Any:
    """A mask of booleans as one of numbers to be added: nothing, or minus infinity."""
    import torch

    if mask is None or mask.dtype != torch.bool:
        return mask
    zero, nothing = (
        torch.scalar_tensor(v, dtype=query.dtype, device=query.device) for v in (0.0, float("-inf"))
    )
    return torch.where(mask, zero, nothing)


def _padded(mask: Any, query: Any, key: Any) -> Any:
    """The mask as the efficient backend wants it: rows aligned, and one for each head."""
    import torch

    if mask is None:
        return None
    length = mask.shape[-1]
    if any(stride % _BIAS_ALIGNMENT for stride in mask.stride()[:-1]):
        over = length % _BIAS_ALIGNMENT
        if over:
            mask = torch.nn.functional.pad(mask, (0, _BIAS_ALIGNMENT - over))[..., :length]
        else:
            mask = mask.contiguous()
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
