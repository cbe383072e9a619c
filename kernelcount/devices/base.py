"""What a device must be able to do, so that a variant can be counted on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from kernelcount.model import Environment, Note

MARK = "kernelcount.call"
"""The annotation round the profiled call. A trace without it was emptied by another profiler."""


class Device(Protocol):
    """One kind of hardware. Nothing here imports torch before it is called."""

    @property
    def kind(self) -> str:
        """What it is called in the results: cuda, xpu, cpu, paper."""

    @property
    def summary(self) -> str:
        """What it is for, in a few words."""

    def missing(self) -> str | None:
        """Why nothing can be counted on it here, or None where it can."""

    def prepare(self) -> AbstractContextManager[None]:
        """What must be set while the user's code is compiled and run."""

    def synchronize(self) -> None:
        """Wait until the device has done what it was given."""

    def profile(self, call: Callable[[], object], trace: Path) -> None:
        """Run `call` once under the profiler, synchronised before and after, and write the trace.

        What `call` raises passes through; the profiler is stopped first.
        """

    def time(
        self, calls: Sequence[Callable[[], object]], between: Callable[[], object] | None = None
    ) -> float:
        """Nanoseconds that `calls` take together, from an idle device to an idle device.

        They are made back to back; with `between`, one by one, and it is called before each,
        untimed. What a call raises passes through.
        """

    def l2(self) -> int | None:
        """Bytes of the cache that all its memory is read through; None: not known."""

    def disturbed(self) -> list[Note]:
        """What makes it slower than it can be just now, as far as that can be asked."""

    def peak_memory(self, call: Callable[[], object]) -> int | None:
        """Bytes that a call holds at its peak, above what was held before; None: not known."""

    def environment(self) -> Environment:
        """The device's name and the versions that a count depends on."""


SYNC_WARNING = "called a synchronizing CUDA operation"
"""How a warning of torch's sync debug mode begins (c10/cuda/CUDAFunctions.cpp)."""


@runtime_checkable
class Telling(Protocol):
    """A device of which torch can tell when the CPU waits for it."""

    def telling(self) -> AbstractContextManager[bool]:
        """Have torch warn of each wait (`SYNC_WARNING`) while it is open; whether it does."""


@runtime_checkable
class Ranged(Protocol):
    """A device on which another program's profiler can be told which call to look at."""

    def in_range(self, call: Callable[[], object]) -> None:
        """Run `call` once, synchronised before and after, in the range that is to be profiled.

        What `call` raises passes through; the range is closed first.
        """
