"""The CPU: ATen ops that do work, and the C++ kernels that Inductor generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns

from kernelcount.devices.profiler import record
from kernelcount.model import Environment, Note


class Cpu:
    """The processor. Its records are operations, not GPU kernels, and are labelled so."""

    kind = "cpu"
    summary = "CPU operations, where no GPU is at hand"

    def missing(self) -> str | None:
        """None: there is always a CPU."""
        return None

    @contextmanager
    def prepare(self) -> Iterator[None]:
        """Have Inductor's C++ kernels recorded; must be set before anything is compiled."""
        from kernelcount.devices.inductor import cpp_kernels_recorded

        with cpp_kernels_recorded():
            yield

    def synchronize(self) -> None:
        """Nothing: an operation is done when it returns."""

    def profile(self, call: Callable[[], object], trace: Path) -> None:
        """Run `call` once under torch.profiler and export the trace."""
        from torch.profiler import ProfilerActivity

        record(call, trace, [ProfilerActivity.CPU], self.synchronize)

    def time(
        self, calls: Sequence[Callable[[], object]], between: Callable[[], object] | None = None
    ) -> float:
        """Nanoseconds by the clock."""
        total = 0
        for call in calls:
            if between is not None:
                between()
            start = perf_counter_ns()
            call()
            total += perf_counter_ns() - start
        return float(total)

    def l2(self) -> int | None:
        """None: a processor has caches of several levels, and cores that share them or not."""
        return None

    def disturbed(self) -> list[Note]:
        """Nothing is asked."""
        return []

    def peak_memory(self, call: Callable[[], object]) -> int | None:
        """None: torch keeps no account of the CPU's memory."""
        call()
        return None

    def environment(self) -> Environment:
        """The processor's name and torch's version."""
        import platform

        import torch

        return Environment(
            device=platform.processor() or platform.machine(),
            kind="cpu",
            torch=torch.__version__.partition("+")[0],
        )
