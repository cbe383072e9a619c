"""GPUs that torch.profiler records: NVIDIA's and AMD's under ``cuda``, Intel's under ``xpu``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcount.devices import disturbance
from kernelcount.devices.profiler import record
from kernelcount.model import Environment, Note


@dataclass(frozen=True)
class Gpu:
    """A GPU behind ``torch.<kind>``; `index` None is the current one."""

    kind: str
    summary: str
    index: int | None = None

    def missing(self) -> str | None:
        """Why nothing can be counted on it here, or None where it can."""
        import torch

        api = getattr(torch, self.kind, None)
        if api is None or not api.is_available():
            return f"torch {torch.__version__} sees no {self.kind} device on this machine"
        if self.index is not None and self.index >= api.device_count():
            return f"there is no {self.kind}:{self.index}; there are {api.device_count()}"
        return None

    @contextmanager
    def prepare(self) -> Iterator[None]:
        """Make this the current device."""
        if self.index is None:
            yield
            return
        with self._api().device(self.index):
            yield

    def synchronize(self) -> None:
        """Wait for every stream of every device: the user's code may use more than one."""
        api = self._api()
        for index in range(api.device_count()):
            if index == api.current_device() or api.memory_reserved(index):
                api.synchronize(index)

    def profile(self, call: Callable[[], object], trace: Path) -> None:
        """Run `call` once under torch.profiler and export the trace."""
        from torch.profiler import ProfilerActivity

        activities = [ProfilerActivity.CPU, getattr(ProfilerActivity, self.kind.upper())]
        record(call, trace, activities, self.synchronize)

    def time(
        self, calls: Sequence[Callable[[], object]], between: Callable[[], object] | None = None
    ) -> float:
        """Nanoseconds between device events round the calls, all streams included."""
        if between is None:
            return self._timed(calls)
        total = 0.0
        for call in calls:
            between()
            total += self._timed([call])
        return total

    def _timed(self, calls: Sequence[Callable[[], object]]) -> float:
        event = self._api().Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        self.synchronize()
        start.record()
        for call in calls:
            call()
        self.synchronize()  # the end event waits for this stream alone
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e6

    def in_range(self, call: Callable[[], object]) -> None:
        """Between cudaProfilerStart and cudaProfilerStop: only an NVIDIA GPU has these."""
        from torch.cuda import profiler

        self.synchronize()
        profiler.start()
        try:
            call()
            self.synchronize()
        finally:
            profiler.stop()

    @contextmanager
    def telling(self) -> Iterator[bool]:
        """By torch's sync debug mode, which CUDA and ROCm have."""
        if self.kind != "cuda":
            yield False
            return
        import torch

        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield True
        finally:
            torch.cuda.set_sync_debug_mode(before)

    def l2(self) -> int | None:
        """What torch reports of the current device."""
        properties = self._api().get_device_properties(self._api().current_device())
        size = getattr(properties, "L2_cache_size", None)
        return int(size) if size else None

    def disturbed(self) -> list[Note]:
        """What NVML says of an NVIDIA GPU."""
        properties = self._api().get_device_properties(self._api().current_device())
        uuid = getattr(properties, "uuid", None)
        return disturbance.notes(str(uuid)) if self.kind == "cuda" and uuid else []

    def peak_memory(self, call: Callable[[], object]) -> int | None:
        """By the statistics of torch's caching allocator, for the current device."""
        api = self._api()
        self.synchronize()
        api.reset_peak_memory_stats()
        before = api.memory_allocated()
        result = call()
        self.synchronize()
        del result
        return int(api.max_memory_allocated() - before)

    def environment(self) -> Environment:
        """The device's name and architecture, and the versions of what makes its kernels."""
        import torch

        return Environment(
            device=self._api().get_device_name(self.index),
            kind="hip" if self.kind == "cuda" and torch.version.hip else self.kind,
            torch=torch.__version__.partition("+")[0],
            triton=triton_version(),
            architecture=self._architecture(),
            libraries=tuple(_libraries()) if self.kind == "cuda" else (),
        )

    def _architecture(self) -> str | None:
        """``sm_90``, or AMD's ``gfx942``; None where torch has no such name."""
        properties = self._api().get_device_properties(self.index)
        if (amd := getattr(properties, "gcnArchName", None)) and amd.startswith("gfx"):
            return str(amd).partition(":")[0]
        if hasattr(properties, "major"):
            return f"sm_{properties.major}{properties.minor}"
        return None

    def _api(self) -> Any:
        import torch

        return getattr(torch, self.kind)


def triton_version() -> str | None:
    """The version of Triton that is installed, or None."""
    return _version("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu")


def _libraries() -> Iterator[tuple[str, str]]:
    """CUDA or ROCm that torch was built with, and the libraries that come as packages beside it."""
    import torch

    for name, built in (("cuda", torch.version.cuda), ("hip", torch.version.hip)):
        if built:
            major = built.partition(".")[0]
            yield name, built
    if torch.version.cuda:
        for name in ("cublas", "cudnn"):
            # Since CUDA 13 the packages are named without its version (cuDNN's is not).
            if found := _version(f"nvidia-{name}-cu{major}", f"nvidia-{name}"):
                yield name, found


def _version(*packages: str) -> str | None:
    """The version of the first of these packages that is installed, or None."""
    from importlib.metadata import PackageNotFoundError, version

    for name in packages:
        try:
            return version(name).partition("+")[0]
        except PackageNotFoundError:
            continue
    return None
