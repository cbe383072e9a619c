"""Cases: images, linear algebra, Fourier transforms, and what else a library does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from kernelcount.examination.cases import Arguments, Case, arrays, floats, whole


def all_cases() -> Iterator[Case]:
    """Each call stands for itself."""
    yield from _images()
    yield from _linalg()
    yield from _others()


# ── images ───────────────────────────────────────────────────────────────────────────────────────


def _images() -> Iterator[Case]:
    import torch

    f, aten = torch.nn.functional, torch.ops.aten
    for dtype, shape in product(floats(), ((8, 16, 64, 64), (32, 64, 112, 112), (1, 3, 224, 224))):
        n, c, height, width = shape
        half = (n, c, height // 2, width // 2)
        double = (n, c, height * 2, width * 2)
        given = arrays(dtype, shape)
        yield Case("_adaptive_avg_pool2d", lambda x: f.adaptive_avg_pool2d(x, 7), given)
        yield Case(
            "_adaptive_avg_pool2d_backward",
            aten._adaptive_avg_pool2d_backward,
            arrays(dtype, (n, c, 7, 7), shape),
        )
        yield Case(
            "avg_pool2d_backward",
            lambda grad, x: aten.avg_pool2d_backward(
                grad, x, [2, 2], [2, 2], [0, 0], False, True, None
            ),
            arrays(dtype, half, shape),
        )
        for mode in ("nearest2d", "bilinear2d"):
            call = _upsample_backward(mode, list(double[2:]), list(shape))
            yield Case(f"upsample_{mode}_backward", call, arrays(dtype, double))
        yield Case("upsample_bicubic2d", _bicubic, given)


def _upsample_backward(mode: str, out: list[int], shape: list[int]) -> Callable[..., Any]:
    import torch

    op = getattr(torch.ops.aten, f"upsample_{mode}_backward").default
    middle = [False] if mode == "bilinear2d" else []

    def call(grad: Any) -> Any:
        return op(grad, out, shape, *middle, 2.0, 2.0)

    return call


def _bicubic(x: Any) -> Any:
    import torch

    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bicubic")


# ── linear algebra and Fourier transforms ────────────────────────────────────────────────────────


def _linalg() -> Iterator[Case]:
    import torch

    single = torch.float32
    linalg = torch.linalg
    for shape in ((64, 64), (256, 256), (1024, 1024), (8, 64, 64)):
        square, definite = arrays(single, shape), _definite(shape)
        yield Case("linalg_cholesky_ex", linalg.cholesky_ex, definite)
        yield Case("linalg_inv_ex", linalg.inv_ex, definite)
        yield Case("linalg_lu_factor_ex", linalg.lu_factor_ex, definite)
        yield Case("linalg_qr", linalg.qr, square)
        yield Case("_linalg_solve_ex", linalg.solve_ex, _definite(shape, 2))
        yield Case("_linalg_det", linalg.det, definite)
    waves: tuple[tuple[int, ...], ...]
    waves = ((1024,), (64, 1024), (1024, 1024), (8, 4096), (1000, 1000))
    for wave in waves:
        real = arrays(single, wave)
        yield Case("_fft_r2c", torch.fft.rfft, real)
        yield Case("_fft_c2c", torch.fft.fft, _complex(wave))
        yield Case("_fft_c2r", torch.fft.irfft, _complex(wave))
        if len(wave) > 1:
            yield Case("_fft_r2c", torch.fft.rfft2, real)
            yield Case("_fft_c2c", torch.fft.fft2, _complex(wave))


def _definite(shape: tuple[int, ...], count: int = 1) -> Callable[[str], Arguments]:
    """Symmetric matrices with positive eigenvalues, all alike but for noise."""
    import torch

    def made(device: str) -> Arguments:
        x = torch.rand(shape, device=device)
        near = (x + x.mT) / (4 * shape[-1]) + torch.eye(shape[-1], device=device)
        return [near.contiguous(), *(x.clone() for _ in range(count - 1))]

    return made


def _complex(shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    import torch

    return lambda device: [torch.randn(shape, device=device, dtype=torch.complex64)]


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────


def _others() -> Iterator[Case]:
    import torch

    single = torch.float32
    for n in (1000, 100_000, 1_000_000):
        row = arrays(single, (n,))
        yield Case("histc", lambda x: torch.histc(x, 100), row)
        yield Case("histc", lambda x: torch.histc(x, 100, -3, 3), row)
        yield Case("unique_consecutive", torch.unique_consecutive, row)
        yield Case("kthvalue", lambda x: torch.kthvalue(x, 10), row)
        yield Case("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), row)
        yield Case("cummax", lambda x: torch.cummax(x, 0), row)
        yield Case("searchsorted", torch.searchsorted, _sorted_row(n))
        yield Case("bucketize", lambda edges, x: torch.bucketize(x, edges), _sorted_row(n))
        yield Case("repeat_interleave", torch.repeat_interleave, _numbers((n,), 4))
    for shape in ((1000,), (64, 1000), (64, 50_257), (8, 32_000)):
        made = _probabilities(shape)
        yield Case("multinomial", lambda p: torch.multinomial(p, 1), made)
        yield Case("multinomial", lambda p: torch.multinomial(p, 16, True), made)
    for dtype, count, length in product(floats(), (16, 256, 1000, 4096, 65_536), (64, 768)):
        call = _put_accumulating
        yield Case("index_put_", call, _put(dtype, 10_000, count, length))
    for mixed in ((1024, 1024), (64, 64), (1_000_000,)):
        yield Case("cat", lambda x, y: torch.cat([x, y]), _mixed(mixed))
        yield Case("cat", lambda x, y: torch.cat([x, y], -1), _mixed(mixed))


def _numbers(shape: tuple[int, ...], high: int = 100) -> Callable[[str], Arguments]:
    return lambda device: [whole(high, shape, device)]


def _sorted_row(n: int) -> Callable[[str], Arguments]:
    import torch

    def made(device: str) -> Arguments:
        return [torch.linspace(-3, 3, 1001, device=device), torch.randn(n, device=device)]

    return made


def _probabilities(shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    import torch

    return lambda device: [torch.rand(shape, device=device)]


def _put(dtype: Any, rows: int, count: int, length: int) -> Callable[[str], Arguments]:
    def made(device: str) -> Arguments:
        x, values = arrays(dtype, (rows, length), (count, length))(device)
        return [x, whole(rows, (count,), device), values]

    return made


def _put_accumulating(x: Any, index: Any, values: Any) -> Any:
    return x.index_put_((index,), values, accumulate=True)


def _mixed(shape: tuple[int, ...]) -> Callable[[str], Arguments]:
    import torch

    def made(device: str) -> Arguments:
        x = torch.randn(shape, device=device)
        return [x, x.bfloat16()]

    return made
