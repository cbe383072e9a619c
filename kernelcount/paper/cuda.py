"""What torch.cuda and torch.accelerator answer on paper: as for one card with nothing on it."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kernelcount.errors import NotMeasuredError
from kernelcount.paper.cards import Card, device_properties, full_name
from kernelcount.paper.scene import Scene

Function = Callable[..., Any]

# These parts of torch act for the user: they ask whether there is a GPU on the user's behalf.
_ASK_FOR_THE_USER = ("torch.amp", "torch.cuda.amp", "torch._dynamo.variables", "torch.utils.data")

_IDLE = "how much of its memory is in use; told as of a card with nothing on it"


def constants(card: Card) -> dict[str, Function]:
    """By name in torch: what torch.compile takes for constant while it traces."""
    import torch

    capability, properties = card.capability, device_properties(card)

    def is_available() -> bool:
        return True

    def is_initialized() -> bool:
        return True

    def current_device() -> int:
        return 0

    def get_device_properties(device: Any = None) -> SimpleNamespace:  # noqa: ARG001
        return properties  # type: ignore[no-any-return]

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        return including_emulation or capability >= (8, 0)  # torch/cuda/__init__.py

    def current_accelerator(check_available: bool = False) -> Any:  # noqa: ARG001
        return torch.device("cuda")

    return {
        "cuda.is_available": _truth_for_torch("cuda.is_available", is_available),
        "cuda.is_initialized": is_initialized,
        "cuda.current_device": current_device,
        "cuda.get_device_properties": get_device_properties,
        "cuda.is_bf16_supported": is_bf16_supported,
        "accelerator.is_available": _truth_for_torch("accelerator.is_available", is_available),
        "accelerator.current_accelerator": _truth_for_torch(
            "accelerator.current_accelerator", current_accelerator
        ),
        "accelerator.current_device_index": _truth_for_torch(
            "accelerator.current_device_index", current_device
        ),
    }


def _truth_for_torch(name: str, answer: Function) -> Function:
    """`answer` for the user, and what is so for torch's own code."""
    import torch

    module, _, attribute = name.rpartition(".")
    real = getattr(getattr(torch, module), attribute)

    @functools.wraps(answer)
    def told(*args: Any, **kwargs: Any) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "")
        of_torch = asking.startswith("torch.") and not asking.startswith(_ASK_FOR_THE_USER)
        return (real if of_torch else answer)(*args, **kwargs)

    return told


def answers(card: Card, scene: Scene) -> dict[str, Function]:
    """By name in torch: what torch.compile traces as it does torch's own function of the name."""

    def manual_seed(seed: int) -> None:
        if scene.values is not None:
            scene.values.seed(int(seed))

    @contextmanager
    def nvtx_range(*_: Any, **__: Any) -> Iterator[None]:
        yield

    # A function for each name: each is traced as another one of torch's.
    return {
        **{name: _constant(None) for name in _DO_NOTHING},
        **{name: _idle(0, scene) for name in _IN_USE},
        "cuda.random.manual_seed": manual_seed,
        "cuda.random.manual_seed_all": manual_seed,
        "cuda.device_count": _constant(1),
        "cuda.get_device_name": _constant(full_name(card)),
        "cuda.get_device_capability": _constant(card.capability),
        "cuda._exchange_device": _constant(0),
        "cuda._maybe_exchange_device": _constant(0),
        "cuda.can_device_access_peer": _constant(False),
        "cuda.memory.mem_get_info": _idle((card.memory, card.memory), scene),
        "cuda.memory.memory_stats": _idle({}, scene),
        "cuda.memory.memory_summary": _idle("", scene),
        "cuda.graphs.is_current_stream_capturing": _constant(False),
        "cuda.nvtx.range": nvtx_range,
        "cuda.nvtx.range_push": _constant(0),
        "cuda.nvtx.range_pop": _constant(0),
        "cuda.nvtx.range_start": _constant(0),
        "accelerator.device_count": _constant(1),
    }


def _constant(value: Any) -> Function:
    def answered(*_: Any, **__: Any) -> Any:
        return value

    return answered


def _idle(value: Any, scene: Scene) -> Function:
    """What is so of a card with nothing on it, and a note that somebody asked."""

    def asked(*_: Any, **__: Any) -> Any:
        scene.told.setdefault(_IDLE)
        return value

    return asked


_DO_NOTHING = (
    "cuda.init", "cuda.set_device", "cuda.ipc_collect", "cuda.set_sync_debug_mode",
    "cuda.random.seed", "cuda.random.seed_all", "cuda.memory.empty_cache",
    "cuda.memory.reset_peak_memory_stats",
    "cuda.memory.reset_accumulated_memory_stats", "cuda.memory.reset_max_memory_allocated",
    "cuda.memory.reset_max_memory_cached", "cuda.memory.set_per_process_memory_fraction",
    "cuda.nvtx.mark", "cuda.nvtx.range_end", "cuda.profiler.start", "cuda.profiler.stop",
    "accelerator.set_device_index", "accelerator.memory.empty_cache",
    "accelerator.memory.reset_peak_memory_stats",
)  # fmt: skip

_IN_USE = (
    "cuda.memory.memory_allocated", "cuda.memory.max_memory_allocated",
    "cuda.memory.memory_reserved", "cuda.memory.max_memory_reserved",
    "cuda.memory.memory_cached", "cuda.memory.max_memory_cached",
    "accelerator.memory.memory_allocated", "accelerator.memory.max_memory_allocated",
    "accelerator.memory.memory_reserved", "accelerator.memory.max_memory_reserved",
)  # fmt: skip


# As torch words it where its CUDA part itself is called, in a build without it and in one without a
# driver; the third is C++'s, for a generator and for tensor types.
_NO_CUDA = (
    "requires CUDA support",
    "not linked with support for cuda",
    "without ATen_cuda library",
    "Torch not compiled with CUDA enabled",
    "PyTorch was compiled without CUDA support",
    "Tried to instantiate dummy base class",
    "NVTX functions not installed",
    "Cannot access accelerator device when none is available",
    "Backend doesn't support ",
    "has no attribute '_cuda_",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "CUDA driver",
    "CUDA error",
)


_TRITON = (
    "the function launches a Triton kernel of its own: on paper it is not built, and so not counted"
)
_CUDA_C = (
    "the code builds CUDA C of its own (torch.utils.cpp_extension), which cannot be counted on"
    " paper; built when it is first called, it leaves the other variants their count"
)
_NO_FAKE = (
    "an op of the user's has no fake implementation (torch.library.register_fake), so what it gives"
    " is not known on paper"
)
_SPARSE = "sparse tensors are not followed on paper"
_PINS = (
    "torch.compile fails at Tensor.pin_memory(), on a GPU too: it cannot trace it; pin the memory"
    " outside of what is compiled"
)
_PINNED = "memory that compiled code pins itself (pin_memory=True) is not followed on paper"
_IN_OUR_WORDS = {
    "NYI: aten._pin_memory": _PINS,  # the fake tensors of 2.11 to 2.13; 2.11 on an H200 as well
    "no pinned memory allocator is available": _PINNED,
    "libcuda.so": _TRITON,  # Triton's, where it finds no driver: triton/backends/nvidia/driver.py
    "active drivers": _TRITON,  # triton/runtime/driver.py
    "CUDA_HOME environment variable is not set": _CUDA_C,  # torch/utils/cpp_extension.py
    "There was no fake impl registered": _NO_FAKE,
    "Cannot access storage of Sparse": _SPARSE,
}


def undone(error: BaseException) -> NotMeasuredError | None:
    """Why what raised `error` cannot be done on paper; None where that is not why it raised.

    What torch raised it from, or holds in it, is looked at too: its compiler wraps what it meets.
    """
    waiting, seen = [error], set()
    while waiting:
        link = waiting.pop(0)
        seen.add(id(link))
        if isinstance(link, NotMeasuredError):
            return link
        text = str(link)
        if said := next((words for sign, words in _IN_OUR_WORDS.items() if sign in text), None):
            return NotMeasuredError(said)
        if sign := next((s for s in _NO_CUDA if s in text), None):
            # The sentence that holds it, without what torch has put round it.
            line = next(line for line in text.splitlines() if sign in line)
            head, _, tail = line.partition(sign)
            head = re.split(r"""\. |["'(]|: """, head)[-1]
            whole = head + sign + re.split(r"""\. |["]|'\)""", tail)[0]
            return NotMeasuredError(f"this is not done on paper: {whole.strip()}")
        inner = (link.__cause__, link.__context__, getattr(link, "inner_exception", None))
        waiting += [e for e in inner if e is not None and id(e) not in seen]
    return None
