"""A device for tests: the function under test says what it launches, and a trace is written.

The trace goes through the reader that a real one goes through. The device is refused unless
``KERNELCOUNT_FAKE_DEVICE=1`` is set, so that no count of it is ever taken for a real one.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelcount.devices.base import MARK, SYNC_WARNING
from kernelcount.model import Environment, Note

_recording: list[dict[str, Any]] | None = None
_clock = 1000.0  # microseconds of the host
_busy = 0.0  # microseconds of kernels
_held = 0
_telling = False
cache: int | None = None  # bytes of the last-level cache
_correlation = 0


class Fake:
    """Stands in for a GPU; see `launch`."""

    kind = "fake"
    summary = "for tests"

    def missing(self) -> str | None:
        """Refused outside tests."""
        if os.environ.get("KERNELCOUNT_FAKE_DEVICE") == "1":
            return None
        return "the fake device is for kernelcount's own tests (KERNELCOUNT_FAKE_DEVICE=1)"

    @contextmanager
    def prepare(self) -> Iterator[None]:
        """Nothing to set."""
        yield

    def synchronize(self) -> None:
        """Nothing runs on it."""

    def profile(self, call: Callable[[], object], trace: Path) -> None:
        """Run `call` and write what it launched as Kineto does."""
        global _recording  # noqa: PLW0603  a profiler is one for the process, here as elsewhere
        mine: list[dict[str, Any]] = []
        _recording = mine
        start = _clock
        try:
            call()
        finally:
            lost, _recording = _recording is not mine, None
        mine.append(_row("user_annotation", MARK, start, _clock - start, {}))
        mine.append(_row("cuda_runtime", "cudaDeviceSynchronize", _clock, 1.0, {}))
        trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [] if lost else mine}))

    def time(
        self, calls: Sequence[Callable[[], object]], between: Callable[[], object] | None = None
    ) -> float:
        """By the fake clock: launches one after the other, or kernels, whichever take longer."""
        total = 0.0
        for call in calls:
            if between is not None:
                between()
            launched, busy = _clock, _busy
            call()
            total += max(_clock - launched, _busy - busy)
        return total * 1e3

    @contextmanager
    def telling(self) -> Iterator[bool]:
        """Have `wait` warn as torch does."""
        global _telling  # noqa: PLW0603
        _telling = True
        try:
            yield True
        finally:
            _telling = False

    def in_range(self, call: Callable[[], object]) -> None:
        """Write the names of the kernels that `call` launches to the file that a fake ncu reads."""
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace.json")
            self.profile(call, trace)
            rows = json.loads(trace.read_text())["traceEvents"]
        names = [row["name"] for row in rows if row["cat"] == "kernel"]
        Path(os.environ["KERNELCOUNT_FAKE_RANGE"]).write_text(json.dumps(names))

    def l2(self) -> int | None:
        """What a test has set, or None."""
        return cache

    def disturbed(self) -> list[Note]:
        """Nothing is asked."""
        return []

    def peak_memory(self, call: Callable[[], object]) -> int | None:
        """What the call says by `allocate`."""
        global _held  # noqa: PLW0603
        _held = 0
        call()
        return _held

    def environment(self) -> Environment:
        """A name that nobody takes for a GPU's."""
        import torch

        return Environment("fake device", "fake", torch.__version__.partition("+")[0])


def launch(
    name: str,
    *,
    duration_us: float = 1.0,
    op: str | None = None,
    kernels: int = 1,
    graph: bool = False,
    lost: bool = False,
) -> None:
    """Put `kernels` kernels of this name on the fake device by one launch, under the op `op`.

    `graph`: by a graph launch. `lost`: the profiler drops the device records.
    """
    global _clock, _correlation, _busy  # noqa: PLW0603
    _clock += 10
    _busy += duration_us * kernels
    _correlation += 1
    if _recording is None:
        return
    args = {"correlation": _correlation, "External id": _correlation}
    call = "cudaGraphLaunch" if graph else "cudaLaunchKernel"
    if op is not None:
        _recording.append(_row("cpu_op", op, _clock - 1, 5.0, args))
    _recording.append(_row("cuda_runtime", call, _clock, 2.0, args))
    for i in range(0 if lost else kernels):
        where = {"device": 0, "stream": 7, **args}
        _recording.append(_row("kernel", name, _clock + 3 + i, duration_us, where))


def wait(
    op: str | None = None,
    *,
    copy: str | None = None,
    inside: str | None = None,
    call: str = "cudaStreamSynchronize",
    told: bool = True,
) -> None:
    """Wait for the fake device in the op `op`, or in none, after the copy of this name.

    `inside`: the op that `op` calls and that waits. `told`: torch warns of it in sync debug mode.
    """
    global _clock, _correlation  # noqa: PLW0603
    began = _clock + 10
    _clock += 17
    _correlation += 2
    if _telling and told:
        warnings.warn(f"{SYNC_WARNING} (Triggered internally)", stacklevel=2)
    if _recording is None:
        return
    args = {} if op is None else {"External id": _correlation}
    if op is not None:
        outer = {"External id": _correlation - 1} if inside else args
        _recording.append(_row("cpu_op", op, began - 2, 9.0, outer))
    if inside is not None:
        _recording.append(_row("cpu_op", inside, began - 1, 8.0, args))
    if copy is not None:
        of = {"correlation": _correlation, **args}
        _recording.append(_row("cuda_runtime", "cudaMemcpyAsync", began, 2.0, of))
        where = {"device": 0, "stream": 7, **of}
        _recording.append(_row("gpu_memcpy", copy, began + 3, 1.0, where))
    of = {"correlation": _correlation - 1, **args}
    _recording.append(_row("cuda_runtime", call, began + 2, 3.0, of))


def allocate(n: int) -> None:
    """Hold `n` bytes more until the end of the call."""
    global _held  # noqa: PLW0603
    _held += n


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """An annotation, as torch.profiler.record_function makes one."""
    start = _clock
    yield
    if _recording is not None:
        # A launch stands ten ticks after what was before it, and its call takes two.
        _recording.append(_row("user_annotation", name, start + 5, _clock - start, {}))


def other_profiler() -> None:
    """What a second profiler inside the call does: the outer one comes back empty."""
    global _recording  # noqa: PLW0603
    _recording = None


def _row(cat: str, name: str, ts: float, dur: float, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args,
    }  # fmt: skip
