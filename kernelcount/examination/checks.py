"""What can be measured here, what cannot, and why: one check each, in the order of need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from kernelcount import devices
from kernelcount.devices.base import MARK, Device
from kernelcount.errors import KernelcountError, NotMeasuredError
from kernelcount.examination import counters
from kernelcount.model import Capture, Check
from kernelcount.paper import adapter, atlas
from kernelcount.reading import read_trace

OLDEST, NEWEST = (2, 11), (2, 14)
"""The series of torch that the tests run with."""

_GPUS = ("cuda", "xpu")
_PAPER = "kernelcount run ... --device paper counts without one"
_SMALL = 1024  # elements of the array whose doubling is the profiler's sign of life


def all_checks(scratch: Path) -> Iterator[Check]:
    """Every check; `scratch` is a folder for a trace."""
    gpu = found_gpu()
    yield _torch()
    yield _gpu(gpu)
    yield _profiler(gpu, scratch)
    yield _triton(gpu)
    yield _compiler(gpu)
    yield _paper()
    yield _atlas()
    yield counters.check(gpu)


def found_gpu() -> tuple[Device, str] | None:
    """The GPU here and torch's name for it, or None."""
    name = next((n for n in _GPUS if devices.DEVICES[n].missing() is None), None)
    return None if name is None else devices.parse(name)


def multiprocessors(device: Device, name: str) -> int | None:
    """How many a GPU has that torch calls `name`; None where torch does not say so."""
    import torch

    if device.kind != "cuda":
        return None
    return int(torch.cuda.get_device_properties(name).multi_processor_count)


def _torch() -> Check:
    import torch

    version = str(torch.__version__)
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else ""
    built = built or (f"built for ROCm {torch.version.hip}" if torch.version.hip else "")
    series = tuple(int(part) for part in version.split(".")[:2])
    known = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}"
    detail = f"torch {version}{', ' + built if built else ''}"
    if OLDEST <= series <= NEWEST:
        return Check("torch", True, f"{detail}; {known} are tested")
    return Check(
        "torch", False, f"{detail}; only {known} are tested", f"a torch from {known}: {_INSTALL}"
    )


_INSTALL = "pytorch.org/get-started/locally names the command to install it"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _gpu(gpu: tuple[Device, str] | None) -> Check:
    import torch

    if gpu is not None:
        device, name = gpu
        count = getattr(torch, name).device_count()
        more = f", the first of {count}" if count > 1 else ""
        return Check("GPU", True, f"{device.environment().device}{more}")
    reason = devices.DEVICES["cuda"].missing() or ""
    built = torch.version.cuda or torch.version.hip
    if has_driver() and not built:
        remedy = f"this torch is built without CUDA, and there is a GPU: {_INSTALL}; or {_PAPER}"
    elif has_driver():
        remedy = f"see whether nvidia-smi works, and CUDA_VISIBLE_DEVICES; or {_PAPER}"
    else:
        remedy = f"{_PAPER}; --device cpu counts operations on the CPU"
    return Check("GPU", False, reason, remedy)


def has_driver() -> bool:
    """Whether NVIDIA's driver is on this machine."""
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def _profiler(gpu: tuple[Device, str] | None, scratch: Path) -> Check:
    """A real profile of one small call: a kernel has to be in it."""
    if gpu is None:
        return Check("profiler", False, "not tried: there is no GPU", _PAPER)
    try:
        seen = sign_of_life(*gpu, scratch / "trace.json")
    except (RuntimeError, KernelcountError) as error:
        reason = str(error).partition("\n")[0]
    else:
        if isinstance(seen, int):
            return Check("profiler", True, f"it gave the record of a call of ours ({seen} kernel)")
        reason = seen
    remedy = (
        "run without nsys, ncu or another profiler around this; CUPTI has to come with torch, and "
        "in a container the driver has to allow profiling (NVreg_RestrictProfilingToAdminUsers=0)"
    )
    return Check("profiler", False, f"no kernel records: {reason}", remedy)


def sign_of_life(device: Device, name: str, trace: Path) -> int | str:
    """How many kernels the profiler saw in a call that launches one; or why none is known."""
    import torch

    with device.prepare():
        x = torch.ones(_SMALL, device=name)
        for _ in range(2):  # the first profile of a process may come back empty
            device.profile(lambda: x * 2, trace)
    outcome = read_trace(trace, "a call", mark=MARK)
    if not isinstance(outcome, Capture):
        return outcome.reason
    return outcome.count("kernel") or "the profile holds no kernel"


def _triton(gpu: tuple[Device, str] | None) -> Check:
    version = devices.gpu.triton_version()
    if version and find_spec("triton") is not None:
        return Check("Triton", True, f"Triton {version}: torch.compile can build GPU kernels")
    if gpu is None:
        return Check("Triton", False, "not installed; on paper none is needed")
    remedy = "it comes with torch for Linux: install torch anew, or pip install triton"
    return Check("Triton", False, "not installed: compile cannot be measured on the GPU", remedy)


def _compiler(gpu: tuple[Device, str] | None) -> Check:
    """Triton builds its launcher with a C compiler, Inductor's code for the CPU needs a C++ one."""
    asked = [os.environ[name] for name in ("CXX", "CC") if os.environ.get(name)]
    names = [*asked, "g++", "clang++", "c++", "gcc", "clang", "cc"]
    found = next((path for name in names if (path := shutil.which(name))), None)
    needed = "by Triton" if gpu is not None else "for compile on --device cpu; not on paper"
    if found is not None:
        return Check("C++ compiler", True, f"{Path(found).name}; needed {needed}")
    remedy = "install g++ or clang++, or name one by CXX"
    return Check("C++ compiler", False, f"none found; needed {needed}", remedy)


def _paper() -> Check:
    try:
        adapter.check()
    except NotMeasuredError as error:
        return Check("paper", False, str(error), f"a torch that has it: {_INSTALL}")
    return Check("paper", True, "kernels can be counted for a GPU that is not there")


def _atlas() -> Check:
    """Whether recorded library calls say anything under this torch."""
    again = "kernelcount doctor --record-atlas FILE, on the card that it is to be for"
    try:
        there = atlas.shipped()
    except KernelcountError as error:
        return Check("atlas", False, str(error), again)
    version, cuda = atlas.this_torch()
    calls = sum(len(entry.calls) for entry in there.entries)
    detail = f"{calls} library calls {there.source}"
    if there.applies(there.card, version, cuda):
        return Check("atlas", True, f"{detail}: used with --device paper --gpu {there.card}")
    built = f" (CUDA {cuda})" if cuda else ""
    return Check(
        "atlas", False,
        f"{detail}: not used under torch {version}{built}, where they are lower bounds",
        f"torch {atlas.series(there.torch)}, or {again}",
    )  # fmt: skip
