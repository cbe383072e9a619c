"""Cases: the layers of common models, which cuBLAS, cuDNN and the norms are made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from kernelcount.examination.cases import Arguments, Case, arrays, floats, image


def all_cases() -> Iterator[Case]:
    """Matrix products, attention, convolutions and norms."""
    yield from _matrices()
    yield from _attention()
    yield from _attention_backward()
    yield from _convolutions()
    yield from _norms()
    yield from _layers_backward()


# ── matrices ─────────────────────────────────────────────────────────────────────────────────────

_TOKENS = (64, 128, 256, 512, 1024, 2048, 4096)

# What goes in and out of the layers of common models, by hidden size: attention and feed-forward
# of a Transformer, GPT-2, BERT, ViT-L, Llama.
_LAYERS = (
    (512, 512), (512, 1536), (512, 2048), (2048, 512), (512, 1376), (1376, 512), (768, 768),
    (768, 2304), (768, 3072), (3072, 768), (1024, 1024), (1024, 3072), (1024, 4096), (4096, 1024),
    (4096, 4096), (4096, 11_008), (11_008, 4096), (4096, 14_336), (14_336, 4096),
)  # fmt: skip
_SQUARES = (64, 128, 256, 512, 1024, 2048, 4096)


def _matrices() -> Iterator[Case]:
    import torch

    for dtype, (inside, out), tokens in product(floats(), _LAYERS, _TOKENS):
        weight, x, grad = (out, inside), (tokens, inside), (tokens, out)
        yield Case("mm", _mm_transposed, arrays(dtype, x, weight))
        yield Case("addmm", _addmm_transposed, arrays(dtype, (out,), x, weight))
        yield Case("mm", torch.mm, arrays(dtype, grad, weight))
        yield Case("mm", _mm_transposing, arrays(dtype, grad, x))
    for dtype, (inside, out), tokens in product(floats(), _LAYERS[:14], _TOKENS):
        yield Case("addmm", torch.addmm, arrays(dtype, (out,), (tokens, inside), (inside, out)))
    for dtype, n in product(floats(), _SQUARES):
        yield Case("mm", torch.mm, arrays(dtype, (n, n), (n, n)))
        yield Case("mm", _mm_transposed, arrays(dtype, (n, n), (n, n)))
        yield Case("addmm", torch.addmm, arrays(dtype, (n,), (n, n), (n, n)))
        yield Case("addmm", _addmm_transposed, arrays(dtype, (n,), (n, n), (n, n)))
        yield Case("bmm", torch.bmm, arrays(dtype, (8, n, 64), (8, 64, n)))
        yield Case("bmm", torch.bmm, arrays(dtype, (8, n, n), (8, n, n)))
        yield Case("mv", torch.mv, arrays(dtype, (n, n), (n,)))
        yield Case("dot", torch.dot, arrays(dtype, (n * n,), (n * n,)))
    yield from _small_matrices()
    for half, length in product((32, 64), (128, 256, 512, 1024, 2048, 4096)):  # rotary angles
        yield Case("bmm", torch.bmm, arrays(torch.float32, (1, half, 1), (1, 1, length)))
    for dtype, heads, length, head in product(
        floats(), (8, 12, 16, 32, 96), (128, 512, 1024), (64, 128)
    ):
        keys, scores = (heads, length, head), (heads, length, length)
        yield Case("bmm", _bmm_transposed, arrays(dtype, keys, keys))
        yield Case("bmm", torch.bmm, arrays(dtype, scores, keys))


def _small_matrices() -> Iterator[Case]:
    """Layers of small networks, and of the first and last layer of large ones."""
    import torch

    small = ((256, 512), (512, 256), (256, 256), (512, 10), (128, 128), (784, 256), (2048, 1000))
    for dtype, (inside, out), tokens in product(floats(), small, (1, 16, 32, 64, 128, 256, 1024)):
        x, grad = (tokens, inside), (tokens, out)
        yield Case("mm", _mm_transposed, arrays(dtype, x, (out, inside)))
        yield Case("addmm", _addmm_transposed, arrays(dtype, (out,), x, (out, inside)))
        yield Case("mm", torch.mm, arrays(dtype, grad, (out, inside)))
        yield Case("mm", _mm_transposing, arrays(dtype, grad, x))
    for dtype, (inside, out), tokens in product(
        floats(), ((768, 50_257), (768, 30_522), (512, 8192), (4096, 32_000)), (64, 512, 1024)
    ):
        yield Case("mm", _mm_transposed, arrays(dtype, (tokens, inside), (out, inside)))


def _mm_transposed(x: Any, weight: Any) -> Any:
    """As F.linear has it: the weight is (out, in)."""
    return x.mm(weight.t())


def _addmm_transposed(bias: Any, x: Any, weight: Any) -> Any:
    import torch

    return torch.addmm(bias, x, weight.t())


def _mm_transposing(grad: Any, x: Any) -> Any:
    """As a weight's gradient is worked out."""
    return grad.t().mm(x)


def _bmm_transposed(query: Any, key: Any) -> Any:
    return query.bmm(key.transpose(1, 2))


# ── attention ────────────────────────────────────────────────────────────────────────────────────

_ATTENTION = (
    (2, 8, 256, 64), (2, 12, 256, 64), (2, 8, 512, 64), (8, 8, 512, 64), (1, 12, 1024, 64),
    (8, 12, 128, 64), (8, 12, 512, 64), (4, 16, 1024, 64), (8, 16, 512, 64), (1, 32, 2048, 128),
    (1, 32, 4096, 128), (4, 32, 512, 128), (2, 8, 1024, 64),
)  # fmt: skip


def _attention() -> Iterator[Case]:
    import torch

    aten = torch.ops.aten
    flash = aten._scaled_dot_product_flash_attention.default
    efficient = aten._scaled_dot_product_efficient_attention.default
    cudnn = aten._scaled_dot_product_cudnn_attention.default

    def by_flash(causal: bool) -> Callable[..., Any]:
        return lambda q, k, v: flash(q, k, v, 0.0, causal, False, scale=q.shape[-1] ** -0.5)

    def by_efficient(causal: bool, sums: bool) -> Callable[..., Any]:
        return lambda q, k, v: efficient(q, k, v, None, sums, 0.0, causal, scale=None)

    def by_cudnn(causal: bool, sums: bool) -> Callable[..., Any]:
        return lambda q, k, v: cudnn(q, k, v, None, sums, 0.0, causal, False, scale=None)

    for shape, causal, made in product(_ATTENTION, (True, False), (_heads, _split, _packed)):
        half, single = (made(dtype, shape) for dtype in (torch.bfloat16, torch.float32))
        yield Case("_scaled_dot_product_flash_attention", by_flash(causal), half)
        for sums in (False, True):
            yield Case("_scaled_dot_product_cudnn_attention", by_cudnn(causal, sums), half)
            for given in (half, single):
                call = by_efficient(causal, sums)
                yield Case("_scaled_dot_product_efficient_attention", call, given)


def _heads(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """Query, key and value, contiguous."""
    return arrays(dtype, shape, shape, shape)


def _split(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """Query, key and value as heads are split off three projections."""
    batch, heads, length, head = shape
    given = (batch, length, heads, head)
    made = arrays(dtype, given, given, given)
    return lambda device: [t.transpose(1, 2) for t in made(device)]


def _packed(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """Query, key and value as heads are split off one projection, as in GPT-2."""
    batch, heads, length, head = shape
    made = arrays(dtype, (batch, length, 3, heads, head))

    def parts(device: str) -> Arguments:
        (whole,) = made(device)
        return [t.transpose(1, 2) for t in whole.unbind(2)]

    return parts


# ── convolutions ─────────────────────────────────────────────────────────────────────────────────

# In, out, kernel, stride and side of the image: the layers of ResNet-18 and -50.
_RESNET = (
    (3, 64, 7, 2, 224), (64, 64, 1, 1, 56), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56),
    (256, 64, 1, 1, 56), (256, 128, 1, 1, 56), (128, 128, 3, 2, 56), (64, 128, 3, 2, 56),
    (64, 128, 1, 2, 56), (256, 512, 1, 2, 56), (128, 128, 3, 1, 28), (128, 512, 1, 1, 28),
    (512, 128, 1, 1, 28), (512, 256, 1, 1, 28), (128, 256, 3, 2, 28), (256, 256, 3, 2, 28),
    (128, 256, 1, 2, 28), (512, 1024, 1, 2, 28), (256, 256, 3, 1, 14), (256, 1024, 1, 1, 14),
    (1024, 256, 1, 1, 14), (1024, 512, 1, 1, 14), (256, 512, 3, 2, 14), (512, 512, 3, 2, 14),
    (256, 512, 1, 2, 14), (1024, 2048, 1, 2, 14), (512, 512, 3, 1, 7), (512, 2048, 1, 1, 7),
    (2048, 512, 1, 1, 7),
)  # fmt: skip


def _convolutions() -> Iterator[Case]:
    for dtype, last, layer, batch in product(floats(), (False, True), _RESNET, (1, 32)):
        inside, out, kernel, stride, side = layer
        x, weight = (batch, inside, side, side), (out, inside, kernel, kernel)
        yield Case("convolution", _conv(stride, kernel // 2), image(dtype, last, x, weight))
    for dtype, last in product(floats(), (False, True)):
        given = image(dtype, last, (8, 16, 64, 64), (32, 16, 3, 3))
        yield Case("convolution", _conv(1, 1), given)


def _conv(stride: int, padding: int) -> Callable[..., Any]:
    import torch

    def call(x: Any, weight: Any) -> Any:
        return torch.nn.functional.conv2d(x, weight, stride=stride, padding=padding)

    return call


# ── norms ────────────────────────────────────────────────────────────────────────────────────────

_CHANNELS = (
    (64, 112), (64, 56), (128, 56), (256, 56), (128, 28), (256, 28), (512, 28), (256, 14),
    (1024, 14), (512, 14), (512, 7), (2048, 7), (16, 64),
)  # fmt: skip


def _norms() -> Iterator[Case]:
    import torch

    aten = torch.ops.aten
    for dtype, last, (channels, side), batch in product(
        floats(), (False, True), _CHANNELS, (1, 8, 32)
    ):
        given = _normalised(dtype, last, (batch, channels, side, side))
        for training in (True, False):
            yield Case("native_batch_norm", _batch_norm(training), given)
    for dtype, length in product(floats(), (5, 127, 1023, 4095)):
        made = arrays(dtype, (256, length), (length,), (length,))
        call = _layer_norm(length)
        yield Case("native_layer_norm", call, made)
    for dtype, (channels, side) in product(floats(), ((32, 32), (64, 56), (320, 64))):
        shape = (4, channels, side, side)

        def back(x: Any, grad: Any, mean: Any, rstd: Any, weight: Any) -> Any:
            n, c, height, width = x.shape
            wanted = [True, True, True]
            return aten.native_group_norm_backward(
                grad, x, mean, rstd, weight, n, c, height * width, 32, wanted
            )

        made = arrays(dtype, shape, shape, (4, 32), (4, 32), (channels,))
        yield Case("native_group_norm_backward", back, made)


def _batch_norm(training: bool) -> Callable[..., Any]:
    import torch

    def call(x: Any, weight: Any, bias: Any, mean: Any, variance: Any) -> Any:
        return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, training)

    return call


def _normalised(dtype: Any, last: bool, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """An image, then weight, bias, mean and variance of its channels; these in single precision."""
    import torch

    images = image(dtype, last, shape)

    def made(device: str) -> Arguments:
        ones = [torch.ones(shape[1], device=device) for _ in range(4)]
        return [*images(device), *ones]

    return made


def _layer_norm(length: int) -> Callable[..., Any]:
    import torch

    def call(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (length,), weight, bias)

    return call


# ── backward ─────────────────────────────────────────────────────────────────────────────────────


def backward(op: str, forward: Callable[..., Any], prepare: Callable[[str], Arguments]) -> Case:
    """The gradients of what `forward` gives, by autograd, so of the op that the device went by."""
    import torch

    def made(device: str) -> Arguments:
        with torch.enable_grad():
            given = [t.detach().requires_grad_() for t in prepare(device)]
            out = forward(*given)
        return [out, torch.ones_like(out), *given]

    def call(out: Any, grad: Any, *given: Any) -> Any:
        return torch.autograd.grad(out, given, grad, retain_graph=True)

    return Case(op, call, made)


def _layers_backward() -> Iterator[Case]:
    for dtype, last, layer in product(floats(), (False, True), _RESNET):
        inside, out, kernel, stride, side = layer
        given = image(dtype, last, (32, inside, side, side), (out, inside, kernel, kernel))
        yield backward("convolution_backward", _conv(stride, kernel // 2), given)
    for dtype, last, (channels, side), batch in product(
        floats(), (False, True), _CHANNELS, (8, 32)
    ):
        given = _scaled(dtype, last, (batch, channels, side, side))
        yield backward("native_batch_norm_backward", _batch_norm_of_itself, given)


def _scaled(dtype: Any, last: bool, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """An image, then weight and bias of its channels; these in single precision."""
    given = _normalised(dtype, last, shape)
    return lambda device: given(device)[:3]


def _batch_norm_of_itself(x: Any, weight: Any, bias: Any) -> Any:
    import torch

    mean, variance = (torch.ones_like(weight.detach()) for _ in range(2))
    return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, True)


def _attention_backward() -> Iterator[Case]:
    import torch

    aten = torch.ops.aten
    flash = aten._scaled_dot_product_flash_attention.default
    efficient = aten._scaled_dot_product_efficient_attention.default
    cudnn = aten._scaled_dot_product_cudnn_attention.default

    def by_flash(causal: bool) -> Callable[..., Any]:
        return lambda q, k, v: flash(q, k, v, 0.0, causal, False, scale=q.shape[-1] ** -0.5)[0]

    def by_efficient(causal: bool) -> Callable[..., Any]:
        return lambda q, k, v: efficient(q, k, v, None, True, 0.0, causal, scale=None)[0]

    def by_cudnn(causal: bool) -> Callable[..., Any]:
        return lambda q, k, v: cudnn(q, k, v, None, True, 0.0, causal, False, scale=None)[0]

    for shape, causal in product(_ATTENTION, (True, False)):
        half, single = (_split(dtype, shape) for dtype in (torch.bfloat16, torch.float32))
        for name, call, given in (
            ("flash", by_flash(causal), half),
            ("cudnn", by_cudnn(causal), half),
            ("efficient", by_efficient(causal), half),
            ("efficient", by_efficient(causal), single),
        ):
            yield backward(f"_scaled_dot_product_{name}_attention_backward", call, given)
