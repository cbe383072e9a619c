"""Cases of which the rules of paper say that they know: recorded too, so that it can be checked.

None of these entries is ever needed for a count; `tests/paper/test_agreement.py` holds the rules
against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from kernelcount.examination.cases import Arguments, Case, arrays, floats, image, normal, whole


def all_cases() -> Iterator[Case]:
    """Every case whose count a rule has from PyTorch's source."""
    yield from _norms()
    yield from _elements()
    yield from _changes()
    yield from _lists()


def _norms() -> Iterator[Case]:
    import torch

    f = torch.nn.functional
    for dtype, shape in product(floats(), ((8, 16, 64, 64), (4, 32, 100))):
        channels = (shape[1],)
        plain, weighed = arrays(dtype, shape), arrays(dtype, shape, channels, channels)
        yield Case("native_group_norm", lambda x: f.group_norm(x, 4), plain)
        yield Case("native_group_norm", lambda x, w, b: f.group_norm(x, 4, w, b), weighed)
        yield Case("native_batch_norm", _batch_norm, plain)
        yield Case("native_batch_norm", _batch_norm, _kept(dtype, shape))
    turned = arrays(torch.float32, (256, 64))
    yield Case("native_layer_norm", lambda x: f.layer_norm(x.t(), (256,)), turned)
    yield Case(
        "native_layer_norm", lambda x: f.layer_norm(x, (64,)), arrays(torch.float64, (8, 64))
    )
    for dtype in floats():
        yield Case("native_layer_norm", lambda x: f.layer_norm(x, (64,)), arrays(dtype, (8, 64)))
        flat = arrays(dtype, (64, 32), (32,), (32,))
        yield Case("native_group_norm", lambda x, w, b: f.group_norm(x, 4, w, b), flat)


def _batch_norm(x: Any, mean: Any = None, variance: Any = None) -> Any:
    import torch

    return torch.nn.functional.batch_norm(x, mean, variance, training=True)


def _kept(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    """An array, and running statistics of its channels."""

    def made(device: str) -> Arguments:
        import torch

        ones = [torch.ones(shape[1], device=device) for _ in range(2)]
        return [normal(shape, dtype, device), *ones]

    return made


def _elements() -> Iterator[Case]:
    import torch

    single, long = torch.float32, torch.int64
    square = arrays(single, (256, 256))
    pads = ((1, 1), (0, 0, 0, 2), (0, -2, 1, 1))
    for pad in pads:
        yield Case("constant_pad_nd", _pad(pad), square)
    for last in (False, True):
        yield Case("constant_pad_nd", _pad((1, 1, 1, 1)), image(single, last, (8, 16, 32, 32)))
    for dtype in (*floats(), long):
        yield Case("isinf", torch.isinf, arrays(dtype, (256, 256)))
    for exponent in (0, 1, 2, 3, 0.5):
        yield Case("pow", _power(exponent), square)
    yield Case("pow", lambda x: x.t().pow(1), square)
    for op in ("cumsum", "cumprod"):
        yield Case(op, _along(op), square)
    yield Case("cumsum", lambda mask: mask.cumsum(-1), lambda d: [normal((64, 64), single, d) > 0])
    for size in (2, 10, 60):
        yield Case("cat", lambda *parts: torch.cat(parts), arrays(single, *[(64, 8)] * size))


def _pad(pad: tuple[int, ...]) -> Callable[..., Any]:
    import torch

    return lambda x: torch.nn.functional.pad(x, pad)


def _power(exponent: float) -> Callable[..., Any]:
    return lambda x: x.pow(exponent)


def _along(op: str) -> Callable[..., Any]:
    return lambda x: getattr(x, op)(-1)


def _changes() -> Iterator[Case]:
    """Arrays that are changed by an index, in place or in a copy."""
    import torch

    single = torch.float32

    def indexed(device: str) -> Arguments:
        return [
            normal((256, 64), single, device),
            whole(256, (128,), device),
            normal((128, 64), single, device),
        ]

    def spread(device: str) -> Arguments:
        x, rows, values = indexed(device)
        return [x, rows[:, None].expand(128, 64).contiguous(), values]

    yield Case("index_add", lambda x, rows, values: x.index_add(0, rows, values), indexed)
    yield Case("index_put", lambda x, rows, values: x.index_put((rows,), values), indexed)
    yield Case("index_put_", lambda x, rows, values: x.index_put_((rows,), values), indexed)
    yield Case("index", lambda x, rows, _: x[rows], indexed)
    yield Case("index_select", lambda x, rows, _: x.index_select(0, rows), indexed)
    yield Case("scatter_add", lambda x, rows, values: x.scatter_add(0, rows, values), spread)
    yield Case("scatter", lambda x, rows, values: x.scatter(0, rows, values), spread)
    yield Case("scatter_", lambda x, rows, values: x.scatter_(0, rows, values), spread)
    yield Case("gather", lambda x, rows, _: x.gather(0, rows), spread)


def _lists() -> Iterator[Case]:
    """Optimizers' ops: few tensors, more than a launch takes, and one that is too large for it."""
    import torch

    for count, elements in ((4, 1000), (120, 64), (1, 330 * 65_536)):
        one = _tensors(1, count, elements)
        two, three = _tensors(2, count, elements), _tensors(3, count, elements)
        yield Case("_foreach_sqrt", torch._foreach_sqrt, one)
        yield Case("_foreach_mul_", lambda x: torch._foreach_mul_(x, 0.5), one)
        yield Case("_foreach_div_", lambda x: torch._foreach_div_(x, [0.5] * len(x)), one)
        yield Case("_foreach_add_", lambda x, y: torch._foreach_add_(x, y, alpha=0.5), two)
        yield Case("_foreach_lerp_", lambda x, y: torch._foreach_lerp_(x, y, 0.1), two)
        yield Case(
            "_foreach_addcmul_", lambda x, y, z: torch._foreach_addcmul_(x, y, z, 0.1), three
        )
        yield Case(
            "_foreach_addcdiv_",
            lambda x, y, z: torch._foreach_addcdiv_(x, y, z, [0.1] * len(x)),
            three,
        )


def _tensors(lists: int, count: int, elements: int) -> Callable[[str], Arguments]:
    import torch

    def made(device: str) -> Arguments:
        return [
            [torch.rand(elements, device=device) + 1 for _ in range(count)] for _ in range(lists)
        ]

    return made
