"""The calls that an atlas is made of: what models call, at the sizes at which they call it.

Of an op with classes of shape (`paper.classes`) every class is sampled; of the rest, cuBLAS and
cuDNN among them, each call stands for itself. Left out are ops whose launches depend on the
values, as those that iterate until they converge (svd, eigh), and bincount and mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kernelcount.paper import classes

Arguments = Sequence[Any]


@dataclass(frozen=True)
class Case:
    """One call to be recorded: the op as paper names it, and a function that makes it.

    `prepare` makes the arguments on a torch device.
    """

    op: str
    call: Callable[..., Any]
    prepare: Callable[[str], Arguments]


def all_cases() -> Iterator[Case]:
    """Every case, in an order that puts ops of one kind together."""
    from kernelcount.examination import layers, library, ruled

    yield from _of_classes()
    yield from layers.all_cases()
    yield from library.all_cases()
    yield from ruled.all_cases()


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


def floats() -> tuple[Any, ...]:
    """The dtypes that models compute in."""
    import torch

    return torch.float32, torch.bfloat16


def arrays(dtype: Any, *shapes: tuple[int, ...]) -> Callable[[str], Arguments]:
    """Normal numbers in arrays of these shapes."""

    def made(device: str) -> Arguments:
        return [normal(shape, dtype, device) for shape in shapes]

    return made


def normal(shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    """Normal numbers; of an integer dtype, a thousand times as large."""
    import torch

    if dtype.is_floating_point:
        return torch.randn(shape, device=device, dtype=dtype)
    return torch.randn(shape, device=device).mul_(1000).to(dtype)


def image(dtype: Any, last: bool, *shapes: tuple[int, ...]) -> Callable[[str], Arguments]:
    """Arrays, `last`: with channels last in memory."""
    import torch

    made = arrays(dtype, *shapes)
    if not last:
        return made
    form = torch.channels_last
    return lambda device: [t.contiguous(memory_format=form) for t in made(device)]


def whole(high: int, shape: tuple[int, ...], device: str) -> Any:
    """Whole numbers from 0 to below `high`."""
    import torch

    return torch.randint(high, shape, device=device)


def _with_mask(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """An array and where it is positive, made before the call: the making is no part of it."""

    def made(device: str) -> Arguments:
        x = normal(shape, dtype, device)
        return [x, x > 0]

    return made


# ── ops with classes of shape ────────────────────────────────────────────────────────────────────


def _shaped(dimensions: int, elements: int) -> tuple[int, ...]:
    """A shape of that many dimensions and, as far as it divides, elements."""
    return (*(2,) * (dimensions - 1), max(elements >> (dimensions - 1), 1))


def _of_classes() -> Iterator[Case]:
    for klass in classes.CLASSES:
        for sample in klass.samples():
            yield from _sampled(klass.op, sample)
    yield from _usual_sizes()


def _sampled(op: str, sample: tuple[int, ...]) -> Iterator[Case]:
    """The cases at one point of a class."""
    import torch

    both = floats()
    dtypes = {
        "topk": both,
        "nonzero": (torch.bool, torch.float32),
        "index": both,
        "masked_select": both,
        "embedding_dense_backward": both,
        "logsumexp": both,
        "native_layer_norm_backward": both,
        "_fused_rms_norm_backward": both,
        "nll_loss_backward": both,
        "max_pool2d_with_indices_backward": both,
    }
    for dtype in dtypes.get(op, (*both, torch.int64)):
        yield _SAMPLED[op](dtype, sample)


def _sort(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("sort", torch.sort, arrays(dtype, _one_or_more(*sample)))


def _largest(dtype: Any, sample: tuple[int, ...]) -> Case:
    rows, length, k = sample
    return Case("topk", _topk(k), arrays(dtype, _one_or_more(rows, length)))


def _nonzero(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("nonzero", torch.nonzero, _maybe_mask(dtype, _shaped(*sample)))


def _by_mask(dtype: Any, sample: tuple[int, ...]) -> Case:
    return Case("index", lambda x, mask: x[mask], _with_mask(dtype, _shaped(*sample)))


def _selected(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("masked_select", torch.masked_select, _with_mask(dtype, _shaped(*sample)))


def _unique(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("_unique2", torch.unique, arrays(dtype, _shaped(*sample)))


def _median(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("median", torch.median, arrays(dtype, _shaped(*sample)))


def _logsumexp(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    return Case("logsumexp", lambda x: torch.logsumexp(x, -1), arrays(dtype, sample))


def _layer_norm_backward(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    rows, length = sample
    back = torch.ops.aten.native_layer_norm_backward

    def made(device: str) -> Arguments:
        shapes = ((rows, length), (rows, length), (length,), (length,))
        moments = [torch.ones(rows, 1, device=device) for _ in range(2)]
        return [*arrays(dtype, *shapes)(device), *moments]

    def call(grad: Any, x: Any, weight: Any, bias: Any, mean: Any, rstd: Any) -> Any:
        return back(grad, x, [length], mean, rstd, weight, bias, [True, True, True])

    return Case("native_layer_norm_backward", call, made)


def _rms_norm_backward(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    rows, length = sample
    back = torch.ops.aten._fused_rms_norm_backward

    def made(device: str) -> Arguments:
        shapes = ((rows, length), (rows, length), (length,))
        return [*arrays(dtype, *shapes)(device), torch.ones(rows, 1, device=device)]

    def call(grad: Any, x: Any, weight: Any, rstd: Any) -> Any:
        return back(grad, x, [length], rstd, weight, [True, True])

    return Case("_fused_rms_norm_backward", call, made)


def _loss_backward(dtype: Any, sample: tuple[int, ...]) -> Case:
    import torch

    rows, count = sample
    back = torch.ops.aten.nll_loss_backward

    def made(device: str) -> Arguments:
        one = torch.ones((), device=device)
        targets = whole(count, (rows,), device)
        return [one.to(dtype), normal(sample, dtype, device), targets, one.to(dtype)]

    def call(grad: Any, x: Any, targets: Any, weight: Any) -> Any:
        return back(grad, x, targets, None, 1, -100, weight)

    return Case("nll_loss_backward", call, made)


def _pool_backward(dtype: Any, sample: tuple[int, ...]) -> Case:
    planes, pixels = sample
    side = int(pixels**0.5)
    return max_pool_backward(dtype, (1, planes, side, side))


def max_pool_backward(dtype: Any, shape: tuple[int, ...]) -> Case:
    """The gradient of a pooling by 2 x 2 of images of this shape."""
    import torch

    *planes, height, width = shape
    half = (*planes, height // 2, width // 2)
    back = torch.ops.aten.max_pool2d_with_indices_backward

    def made(device: str) -> Arguments:
        return [normal(half, dtype, device), normal(shape, dtype, device), whole(4, half, device)]

    def call(grad: Any, x: Any, indices: Any) -> Any:
        return back(grad, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)

    return Case("max_pool2d_with_indices_backward", call, made)


_SAMPLED: dict[str, Callable[[Any, tuple[int, ...]], Case]] = {
    "sort": _sort,
    "topk": _largest,
    "cumsum": lambda dtype, sample: Case("cumsum", _along("cumsum"), arrays(dtype, sample)),
    "cumprod": lambda dtype, sample: Case("cumprod", _along("cumprod"), arrays(dtype, sample)),
    "nonzero": _nonzero,
    "index": _by_mask,
    "masked_select": _selected,
    "_unique2": _unique,
    "median": _median,
    "logsumexp": _logsumexp,
    "native_layer_norm_backward": _layer_norm_backward,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "nll_loss_backward": _loss_backward,
    "max_pool2d_with_indices_backward": _pool_backward,
    "embedding_dense_backward": lambda dtype, sample: embedding(dtype, *sample),
}


def _one_or_more(rows: int, length: int) -> tuple[int, ...]:
    return (rows, length)[rows == 1 :]


def _topk(k: int) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return x.topk(k)

    return call


def _along(op: str) -> Callable[..., Any]:
    import torch

    function = getattr(torch, op)

    def call(x: Any) -> Any:
        return function(x, -1)

    return call


def _maybe_mask(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    import torch

    def made(device: str) -> Arguments:
        x = normal(shape, torch.float32, device)
        return [x > 0 if dtype is torch.bool else x]

    return made


def embedding(dtype: Any, count: int, length: int, weights: int) -> Case:
    """The gradient of an embedding: of `count` indices into `weights` rows of a length."""
    import torch

    def made(device: str) -> Arguments:
        return [normal((count, length), dtype, device), whole(weights, (count,), device)]

    def call(grad: Any, indices: Any) -> Any:
        return torch.ops.aten.embedding_dense_backward(grad, indices, weights, -1, False)

    return Case("embedding_dense_backward", call, made)


def _usual_sizes() -> Iterator[Case]:
    """Sizes between the classes, and parameters that they leave out."""
    import torch

    for dtype, length in product(floats(), (8192, 10_000, 32_000, 50_257, 128_256)):
        yield Case("sort", torch.sort, arrays(dtype, (length,)))
        for k in (1, 100):
            yield Case("topk", _topk(k), arrays(dtype, (length,)))
            yield Case("topk", _topk(k), arrays(dtype, (8, length)))
    for dtype, shape in product(floats(), ((256,), (64, 4096), (1024, 1024), (10_000,))):
        yield Case("index", lambda x, mask: x[mask], _with_mask(dtype, shape))
        yield Case("_unique2", torch.unique, arrays(dtype, shape))
    for dtype, vocabulary in product(floats(), (30_522, 32_000, 50_257)):
        for count, length in ((4096, 768), (8192, 768), (4096, 1024)):
            yield embedding(dtype, count, length, vocabulary)
