"""Settings of the process that a call may leave changed: how each is read and put back."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Switch = tuple[Callable[[], Any], Callable[[Any], Any]]
"""How a setting is read, and how it is set."""

_UNKNOWN = object()
_REFUSED = (RuntimeError, OSError, AttributeError)


class Settings:
    """What the settings are now, to be put back; `more` are asked beside torch's own."""

    def __init__(self, *more: Switch) -> None:
        found = [(get, put, _read(get)) for get, put in (*switches(), *more)]
        self._then = [setting for setting in found if setting[2] is not _UNKNOWN]

    def restore(self) -> list[tuple[Callable[[Any], Any], Any]]:
        """Put back what has changed; how that would be set again, and to what."""
        now = [_read(get) for get, _, _ in self._then]
        changed = [
            (put, value)
            for (_, put, then), value in zip(self._then, now, strict=True)
            if value != then
        ]
        if changed:
            for get, put, then in self._then:
                if _read(get) != then:  # one setting may have changed another
                    _set(put, then)
        return [(put, value) for put, value in changed if value is not _UNKNOWN]


def _read(get: Callable[[], Any]) -> Any:
    """What is set; `_UNKNOWN` where torch refuses to tell, as of settings that exclude others.

    A build of torch for the CPU, which believes in a GPU on paper, lacks what it would ask.
    """
    try:
        return get()
    except _REFUSED:
        return _UNKNOWN


def _set(put: Callable[[Any], Any], value: Any) -> None:
    with suppress(*_REFUSED):
        put(value)


class OwnSettings:
    """What one variant's calls leave changed, kept for its next calls and from all others."""

    def __init__(self, *more: Switch) -> None:
        self._more = more
        self._others: Settings | None = None
        self._own: list[tuple[Callable[[Any], Any], Any]] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have its own while it is called, and what all begin with afterwards."""
        self._others = self._others or Settings(*self._more)
        for put, value in self._own:
            _set(put, value)
        try:
            yield
        finally:
            self._own = self._others.restore()


def generators() -> Iterator[Switch]:
    """Each random number generator: how its state is read and set."""
    import torch

    yield random.getstate, random.setstate
    yield torch.get_rng_state, torch.set_rng_state
    for api in (torch.cuda, torch.xpu):
        if api.is_available() and api.is_initialized():
            yield api.get_rng_state_all, api.set_rng_state_all
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        yield numpy.get_state, numpy.set_state


def switches() -> Iterator[Switch]:
    """Each global setting: how it is read and set."""
    import torch

    yield torch.get_default_dtype, torch.set_default_dtype
    yield torch.is_grad_enabled, torch.set_grad_enabled
    yield torch.get_default_device, _set_default_device
    yield from _precisions()
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode
    yield _anomalies, _set_anomalies
    yield torch.is_warn_always_enabled, torch.set_warn_always
    yield from _libraries()
    yield from _attention()
    yield from _conversions()
    yield from _autocast()
    for api in (torch.cuda, torch.xpu):
        if api.is_available() and api.is_initialized():
            yield api.current_device, api.set_device
            yield api.current_stream, api.set_stream
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        yield torch.cuda.get_sync_debug_mode, torch.cuda.set_sync_debug_mode
    yield _folder, os.chdir


def _libraries() -> Iterator[Switch]:
    """What libraries may choose by, and which one is asked."""
    import torch

    backends, cuda = torch.backends, torch.backends.cuda
    for place, names in (
        (backends.cudnn, ("enabled", "benchmark", "benchmark_limit", "deterministic")),
        (backends.mkldnn, ("enabled", "deterministic")),
        (backends.opt_einsum, ("enabled", "strategy")),
        (cuda.matmul, ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation",
                       "allow_bf16_reduced_precision_reduction")),
        (torch.utils.deterministic, ("fill_uninitialized_memory",)),
    ):  # fmt: skip
        yield from (_attribute(place, name) for name in names if hasattr(place, name))
    for name in ("linalg", "blas", "rocm_fa"):
        prefer = getattr(cuda, f"preferred_{name}_library", None)
        if prefer is not None:
            yield prefer, prefer


def _attention() -> Iterator[Switch]:
    """Which kernels of attention may be chosen, and whether modules take their fast path."""
    import torch

    cuda = torch.backends.cuda
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        yield getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
    yield cuda.fp16_bf16_reduction_math_sdp_allowed, cuda.allow_fp16_bf16_reduction_math_sdp
    yield torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled
    attention = torch.nn.attention
    if hasattr(attention, "current_flash_attention_impl"):
        yield attention.current_flash_attention_impl, _set_flash_attention


def _conversions() -> Iterator[Switch]:
    """How modules take over what they are converted to."""
    import torch

    future = torch.__future__
    for name in ("overwrite", "swap"):
        what = f"{name}_module_params_on_conversion"
        yield getattr(future, f"get_{what}"), getattr(future, f"set_{what}")


def _precisions() -> Iterator[Switch]:
    """Of products and convolutions in float32, in the words of older and newer versions of torch.

    The older come first: they set the newer ones, too. ``cuda.matmul.allow_tf32`` is the first in
    other words.
    """
    import torch

    cuda, cudnn, onednn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    yield torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    yield _attribute(cudnn, "allow_tf32")
    parts = (getattr(b, name, None) for b in (cudnn, onednn) for name in ("conv", "rnn", "matmul"))
    for place in (torch.backends, cuda.matmul, cudnn, onednn, *parts):
        if hasattr(place, "fp32_precision"):
            yield _attribute(place, "fp32_precision")


def _autocast() -> Iterator[Switch]:
    import torch

    yield torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled
    for device in ("cpu", "cuda", "xpu"):
        yield (
            partial(torch.is_autocast_enabled, device),
            partial(torch.set_autocast_enabled, device),
        )
        yield partial(torch.get_autocast_dtype, device), partial(torch.set_autocast_dtype, device)


def _anomalies() -> tuple[bool, bool]:
    """Whether autograd looks for the op whose gradient fails, and whether for NaN, too."""
    import torch

    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _set_anomalies(both: tuple[bool, bool]) -> None:
    import torch

    torch.autograd.set_detect_anomaly(*both)


def _set_flash_attention(name: str | None) -> None:
    """Have this one of the implementations that were installed; None: torch's own."""
    from torch.nn import attention

    if name is None:
        attention.restore_flash_attention_impl()
    else:
        attention.activate_flash_attention_impl(name)


def _attribute(place: object, name: str) -> Switch:
    return partial(getattr, place, name), partial(setattr, place, name)


def _set_default_device(device: torch.device) -> None:
    import torch

    # One that is set intercepts every call; for the CPU there is no need of it.
    torch.set_default_device(None if device.type == "cpu" else device)


def _folder() -> str:
    """The current folder; the root where it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109  as os.chdir takes it
    except FileNotFoundError:
        return "/"
