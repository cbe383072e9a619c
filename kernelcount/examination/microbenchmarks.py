"""What the GPU here reaches: a microbenchmark for each figure of `model.Rates`.

Each is timed as variants are (`probes.timing`): called until it gets no faster, then turn by turn
until its median is known to `noise.PRECISION` or its time is over. One that fails, for want of
memory or of a format, costs that figure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from math import isfinite
from statistics import median
from typing import Any

from kernelcount.conclusions import rates
from kernelcount.devices.base import Device
from kernelcount.errors import NotMeasuredError
from kernelcount.examination.checks import multiprocessors
from kernelcount.memory import is_out_of_memory
from kernelcount.model import Note, Rates
from kernelcount.probes import launching, timing

Measurement = Callable[[Device, str], float]
"""A figure, on a device and by torch's name for it. What it raises is why there is none."""

_SECONDS = 0.8
"""That a figure may take at most, its preparation apart: with eleven of them, below ten seconds."""

_BEYOND_L2 = 16
"""How many times the L2 cache each array of a copy from DRAM is: with two of them, the cache could
serve one byte of 32 at the best, 3 %."""

_WITHIN_L2 = 8
"""The share of the L2 cache that each array of a copy from there takes: two of them are a quarter.
What a GPU calls its L2 may be two halves, and a half may keep what it reads from the other (NVIDIA
A100 whitepaper: each partition caches for the part of the GPU that is connected to it)."""

_IN_A_GRAPH = 1000
"""Kernels in a CUDA graph: launching the graph takes microseconds, and so does each of them."""

_LARGE, _MEDIUM = 8192, 4096
"""Rows of square matrices. Either fills every multiprocessor many times over; f32 and f64 take the
smaller one, for they are slower by a factor of ten and more."""

_TENSOR_FLOAT = (8, 0)
"""The compute capability that brings TF32 (NVIDIA A100 whitepaper)."""


def measure(
    device: Device,
    name: str,
    progress: Callable[[str], None],
    measurements: Mapping[str, Measurement] | None = None,
) -> Rates:
    """All rates of a GPU that torch calls `name`; by default those of `MEASUREMENTS`.

    The precision of matrix products is put back. Raises NotMeasuredError for a device whose rates
    are none of ours to measure.
    """
    count = multiprocessors(device, name)
    if count is None:
        raise NotMeasuredError("rates are measured on NVIDIA's and AMD's GPUs alone")
    found: dict[str, float] = {}
    missing: list[tuple[str, str]] = []
    notes: dict[str, Note] = {}  # by code: the clocks in it are others each time
    with device.prepare():
        for figure, measurement in (MEASUREMENTS if measurements is None else measurements).items():
            progress(f"measuring {figure.removesuffix('_ns').replace('_', ' ')}")
            try:
                found[figure] = _believed(measurement(device, name))
            except Exception as error:  # noqa: BLE001  whatever it is, the other figures are not lost
                missing.append((figure, _reason(error)))
            for note in device.disturbed():  # while it still is as it was when timed
                notes.setdefault(note.code, note)
    where = device.environment()
    none = Rates(
        where.device or "", where.torch or "", count,
        missing=tuple(missing), notes=tuple(notes.values()),
        measured_at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )  # fmt: skip
    return rates.with_figures(none, found)


def _believed(figure: float) -> float:
    if not (isfinite(figure) and figure > 0):
        raise NotMeasuredError("it took no time by the clock of the device")
    return figure


def _reason(error: Exception) -> str:
    if is_out_of_memory(error):
        return "out of memory"
    return str(error).strip().partition("\n")[0] or type(error).__name__


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def _copy(device: Device, name: str) -> float:
    """Bytes a second, read and written, of arrays far larger than the L2 cache.

    The better one of a copy and of a sum of two arrays, both of STREAM's (J. McCalpin, 1995): a
    GPU reads faster than it writes, and a sum writes only a third of what it moves.
    """
    import torch

    source, target = _pair(_l2(device) * _BEYOND_L2, name)
    other = torch.rand_like(source)
    add = partial(torch.add, source, other, out=target)
    copied, added = map(median, _timed(device, partial(target.copy_, source), add))
    moved = source.nbytes + target.nbytes
    return max(_per_second(moved, copied), _per_second(moved + other.nbytes, added))


def _copy_l2(device: Device, name: str) -> float:
    """Bytes a second, read and written, of a kernel whose arrays the L2 cache holds.

    An array there is read and written in microseconds, of which the launch is a good part. So two
    pairs of arrays are timed in turn, one half the size of the other, and the difference in bytes
    is divided by the difference in time. `neg` is a kernel where `copy_` would be a memcpy, which a
    graph may give to the copy engines; it moves the same bytes.
    """
    import torch

    size = _l2(device) // _WITHIN_L2
    pairs = [_pair(size, name), _pair(size // 2, name)]
    replays = [_graph(partial(torch.neg, source, out=target)) for source, target in pairs]
    more, less = (2 * source.nbytes for source, _ in pairs)
    large, small = _timed(device, *replays)
    longer = median(a - b for a, b in zip(large, small, strict=True)) / _IN_A_GRAPH
    if longer <= 0:
        raise NotMeasuredError("twice the bytes took no longer")
    return _per_second(more - less, longer)


def _l2(device: Device) -> int:
    size = device.l2()
    if not size:
        raise NotMeasuredError("the size of the L2 cache is not known")
    return size


def _pair(size: int, name: str) -> tuple[Any, Any]:
    """Two arrays of about `size` bytes each, the first with random numbers."""
    import torch

    source = torch.rand(max(1, size // torch.float32.itemsize), device=name, dtype=torch.float32)
    return source, torch.empty_like(source)


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


def _matmul(device: Device, name: str, *, dtype: str, n: int, tf32: bool = False) -> float:
    """Operations a second of a product of square matrices: 2 n³ of them.

    The numbers are normal, as a model's: zeros draw less power and let the clock run faster.
    """
    import torch

    if tf32:
        _check_tf32(device, name)
    kind = getattr(torch, dtype)
    a, b = (torch.randn((n, n), device=name, dtype=kind) for _ in range(2))
    with _fp32_precision("tf32" if tf32 else "ieee"):
        (ns,) = _timed(device, partial(torch.mm, a, b, out=torch.empty_like(a)))
    return _per_second(2 * n**3, median(ns))


def _check_tf32(device: Device, name: str) -> None:
    """Raises NotMeasuredError where torch would take f32 instead, without a word."""
    import torch

    if torch.version.hip:
        raise NotMeasuredError("TF32 is a format of NVIDIA's GPUs")
    if device.kind == "cuda" and torch.cuda.get_device_capability(name) < _TENSOR_FLOAT:
        raise NotMeasuredError("this GPU has no TF32: it came with compute capability 8.0")


@contextmanager
def _fp32_precision(wanted: str) -> Iterator[None]:
    """What f32 matrix products are computed in: ``ieee`` or ``tf32``."""
    import torch

    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = wanted
    try:
        yield
    finally:
        matmul.fp32_precision = before


# ── launches ─────────────────────────────────────────────────────────────────────────────────────


def _launch(device: Device, name: str) -> float:
    """Nanoseconds from one smallest kernel to the next, without the CPU: in a CUDA graph.

    The kernel is `add_` on one element, the smallest that every torch has: it reads and writes it.
    """
    (ns,) = _timed(device, _graph(partial(_one(name).add_, 1)))
    return median(ns) / _IN_A_GRAPH


def _on_cpu(figure: Callable[[Device, str, float], float], device: Device, name: str) -> float:
    """One of what launching costs the CPU."""
    return figure(device, name, _SECONDS)


def _one(name: str) -> Any:
    import torch

    return torch.ones(1, device=name)


def _graph(call: Callable[[], object]) -> Callable[[], object]:
    """A function that runs `call` `_IN_A_GRAPH` times as one CUDA graph."""
    import torch

    call()  # a kernel may be loaded by its first launch, which must not happen while recording
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_IN_A_GRAPH):
            call()

    def replay(_: object = call) -> None:  # which holds the arrays that the graph has addresses of
        graph.replay()

    return replay


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def _timed(device: Device, *calls: Callable[[], object]) -> Sequence[Sequence[float]]:
    """Nanoseconds of each call, by the clock of the device, one for each turn."""
    candidates = [timing.Candidate(str(i), [c], nullcontext) for i, c in enumerate(calls)]
    timing.in_turn(candidates, device, _SECONDS)
    return [c.samples for c in candidates]


def _per_second(amount: int, ns: float) -> float:
    return amount / ns * 1e9 if ns > 0 else float("inf")


_PRODUCTS: dict[str, Measurement] = {
    "f32": partial(_matmul, dtype="float32", n=_MEDIUM),
    "tf32": partial(_matmul, dtype="float32", n=_LARGE, tf32=True),
    "bf16": partial(_matmul, dtype="bfloat16", n=_LARGE),
    "f16": partial(_matmul, dtype="float16", n=_LARGE),
    "f64": partial(_matmul, dtype="float64", n=_MEDIUM),
}

MEASUREMENTS: dict[str, Measurement] = {
    "copy": _copy,
    "copy_l2": _copy_l2,
    **{f"matmul.{precision}": _PRODUCTS[precision] for precision in rates.PRECISIONS},
    "launch_ns": _launch,
    "eager_ns": partial(_on_cpu, launching.eager),
    "module_ns": partial(_on_cpu, launching.module),
    # Last, for the clock of the GPU falls while something compiles.
    "compiled_ns": partial(_on_cpu, launching.compiled),
}
"""In the order of `rates.FIGURES`."""
