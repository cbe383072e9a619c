"""Where a job is done: in worker processes, or in the caller's own.

A worker that dies, hangs or fails costs the variant that it was at; the next variant gets another.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kernelcount import worker
from kernelcount.model import Job
from kernelcount.runners.listening import Listener, first_left, name_of
from kernelcount.runners.processes import TOKEN, Process, Starter, Worker, kill, spawned
from kernelcount.runners.results import Background, Companion, Results, Runner, Watcher

if TYPE_CHECKING:
    from kernelcount.inhand import InHand

__all__ = [
    "TOKEN", "Background", "Companion", "Process", "Results", "Runner", "Starter", "Watcher",
    "in_process", "in_worker", "kill", "name_of", "spawned",
]  # fmt: skip


def in_process(
    job: Job,
    progress: Watcher,
    companion: Companion | None = None,
    *,
    in_hand: InHand | None = None,
) -> Results:
    """Do the job in this process. Raises KernelcountError where it cannot be done at all.

    ``sys.argv`` and the current folder are as they were afterwards, whatever the user's code did.

    `in_hand`: the caller's own function, in place of what the job's spec names. What it raises is
    raised here as it is, and what it prints while it is timed is thrown away.
    """
    results = Results(job)
    listener = Listener(results, progress, companion)
    argv, folder = sys.argv, Path.cwd()
    try:
        while (first := first_left(results)) is not None:
            if in_hand is None:
                worker.perform(job, first, listener.take)
            else:
                worker.perform(job, first, listener.take, None, _quiet, in_hand)
    finally:
        sys.argv = argv
        os.chdir(folder)
        if in_hand is not None:
            in_hand.back()
    return results


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Throw away what Python code prints; the descriptors are the caller's, and left alone."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def in_worker(
    job: Job,
    progress: Watcher,
    companion: Companion | None = None,
    *,
    background: Background | None = None,
    start: Starter | None = None,
) -> Results:
    """Do the job in worker processes. Raises KernelcountError where it cannot be done at all.

    `start` starts them; None: each from nothing. In the `background` it is done at the lowest
    priority, if that is quiet, with what the user's code prints thrown away. It rests when it is
    told so, and is given up with Interrupted as soon as it is cancelled.
    """
    results = Results(job)
    with tempfile.TemporaryDirectory(prefix="kernelcount-", ignore_cleanup_errors=True) as folder:
        packed = json.dumps(msgspec.to_builtins(job))  # unlike msgspec's, it takes any file name
        Path(folder, "job").write_text(packed, encoding="ascii")
        while (first := first_left(results)) is not None:
            listener = Listener(results, progress, companion)
            Worker(listener, Path(folder), first, background, start or spawned).run()
    return results
