"""How `ncu` is started, and how its end is understood."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelcount import boot
from kernelcount.examination.counters import ALLOW
from kernelcount.model import Job
from kernelcount.ncu import log
from kernelcount.runners import TOKEN, kill

LONGEST = 600.0
"""Seconds that a run may take where `--timeout` does not say: some kernels wait for one another,
and never end where each is run by itself."""

_LOOK = 0.1  # seconds between looks whether it still runs
_LONGEST_LINE = 300  # characters of an error of ncu's

FLAGS = (
    "--csv",
    "--print-units", "base",
    "--print-kernel-base", "function",
    "--clock-control", "none",
    "--cache-control", "none",
    "--profile-from-start", "off",
    "--target-processes", "application-only",
)  # fmt: skip
"""The clocks as they are, as where kernels are timed; the caches as the kernel before leaves them;
and only the call between cudaProfilerStart and cudaProfilerStop, of this process alone."""

_START = """
from kernelcount.ncu.child import main
main({folder!r})
"""

# What ncu says where nothing helps but what is outside of it, and what does.
_OUTSIDE = (
    ("ERR_NVGPUCTRPERM", f"the driver keeps counters to administrators: {ALLOW}"),
    (
        "a driver resource was unavailable",
        "another profiler uses the GPU's counters (DCGM does in some clusters: "
        "dcgmi profile --pause)",
    ),
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Why there are no counters; `everywhere`: it will be the same for every variant."""

    reason: str
    everywhere: bool = False


def profile(ncu: str, job: Job, metrics: Sequence[str]) -> log.Log | Unread:
    """Have the one variant of a job called under `ncu` for these metrics."""
    limit = job.timeout or LONGEST
    with tempfile.TemporaryDirectory(prefix="kernelcount-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        packed = json.dumps(msgspec.to_builtins(job))  # unlike msgspec's, it takes any file name
        (folder / "job").write_text(packed, encoding="ascii")
        asked = ("--log-file", str(folder / "log"), "--metrics", ",".join(metrics))
        command = [ncu, *FLAGS, *asked, *boot.command(_START.format(folder=name))]
        try:
            with _started(command, folder) as process:
                if not _ended(process, limit):
                    return Unread(f"no answer under ncu within {limit:g} s (--timeout)")
        except OSError as error:
            return Unread(f"{ncu} cannot be started: {error.strerror}", everywhere=True)
        return _understood(folder)


@contextlib.contextmanager
def _started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process, in a session of its own; at the end it and all that it has started are gone."""
    token = uuid.uuid4().hex
    os.mkfifo(folder / "alive")
    alive = os.open(folder / "alive", os.O_RDWR)
    try:
        # What the user's code prints was seen when it was counted.
        with (folder / "printed").open("wb") as printed:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
                env={**boot.environment(), TOKEN: token},
            )
        try:
            yield process
        finally:
            kill(process, token)
    finally:
        os.close(alive)


def _ended(process: subprocess.Popen[bytes], limit: float) -> bool:
    until = time.monotonic() + limit
    while process.poll() is None:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK)
    return True


def _understood(folder: Path) -> log.Log | Unread:
    """The log, or what hindered it: ncu's own errors, or else the target's."""
    texts = [
        path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for path in (folder / "log", folder / "printed", folder / "end")
    ]
    found = log.parse(texts[0])
    errors = [*found.errors, *log.parse(texts[1]).errors]
    for sign, meaning in _OUTSIDE:
        if any(sign in error for error in errors):
            return Unread(meaning, everywhere=True)
    if texts[2]:
        return Unread(f"under ncu: {texts[2]}")
    if not (folder / "end").is_file():
        said = errors[0][:_LONGEST_LINE] if errors else "it ended before the target was called"
        return Unread(f"ncu: {said}")
    if errors and not found.kernels:
        return Unread(f"ncu: {errors[0][:_LONGEST_LINE]}")
    return found
