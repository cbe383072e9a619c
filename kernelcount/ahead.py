"""Jobs on paper, counted ahead while those before them are still looked at.

Nothing is timed on paper, so that one does not disturb another. Jobs that are measured are done one
at a time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Protocol

from kernelcount.model import Job
from kernelcount.runners import Background, Companion, Results, Watcher

_LOOK = 0.05  # seconds between reports of progress


class Runner(Protocol):
    """Does a job in a process of its own, until it is told to give up."""

    def __call__(
        self,
        job: Job,
        progress: Watcher,
        companion: Companion | None = None,
        *,
        background: Background | None = None,
    ) -> Results:
        """What came of it. Raises KernelcountError where it cannot be done at all."""


class _Ahead:
    """A job that is being done."""

    def __init__(self, job: Job) -> None:
        self.job, self.doing = job, ""
        self.future: Future[Results] | None = None

    def note(self, text: str) -> None:
        self.doing = text


class Ahead:
    """A runner that knows the `jobs` to come, and does `at_once` of them, by default one a core.

    To be used as a context, at whose end whatever is not done yet is given up.
    """

    def __init__(self, jobs: Iterable[Job], run: Runner, at_once: int | None = None) -> None:
        self._run, self._at_once = run, at_once or os.cpu_count() or 1
        self._coming = deque(jobs)
        self._going: deque[_Ahead] = deque()
        self._told = Background(quiet=False)
        self._pool = ThreadPoolExecutor(self._at_once)
        self._no_gpu = False

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        self._told.cancelled.set()
        self._pool.shutdown(cancel_futures=True)

    def __call__(self, job: Job, progress: Watcher, companion: Companion | None = None) -> Results:
        """What came of a job. Raises KernelcountError where it cannot be done at all."""
        self._begin()
        if self._going and self._going[0].job == job:
            return self._wait(self._going.popleft(), progress)
        if self._coming and self._coming[0] == job:
            self._coming.popleft()
        results = self._run(job, progress, companion, background=self._told)
        # Where one without a wish is on paper, there is no GPU, and so are the others.
        self._no_gpu |= job.device is None and results.environment.kind == "paper"
        return results

    def _begin(self) -> None:
        """Begin with what comes next, as long as that is on paper."""
        while self._coming and len(self._going) < self._at_once:
            job = self._coming[0]
            if job.device != "paper" and not (job.device is None and self._no_gpu):
                return
            ahead = _Ahead(self._coming.popleft())
            ahead.future = self._pool.submit(
                self._run, job, ahead.note, None, background=self._told
            )
            self._going.append(ahead)

    def _wait(self, ahead: _Ahead, progress: Watcher) -> Results:
        future = ahead.future
        assert future is not None
        while True:
            try:
                return future.result(_LOOK)
            except NotYet:
                if future.done():
                    raise
                progress(ahead.doing)
