"""Where a job is done: in worker processes, or in the caller's own.

A worker that dies, hangs or fails costs the variant that it was at; the next variant gets another.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import kernelcount
from kernelcount import worker
from kernelcount.errors import KernelcountError
from kernelcount.model import Environment, Job, Outcome, Target, Unmeasured
from kernelcount.traces import saved

_GRACE = 10.0  # seconds for what the user's code does at exit, once all results are in
_CHUNK = 1 << 16

# The worker's start: neither the current folder nor this package's may come before the standard
# library on the import path, or a user's random.py would break torch.
_BOOT = """
import sys
if sys.path[0] == "":
    sys.path.pop(0)
import importlib.util
spec = importlib.util.spec_from_file_location("kernelcount", {init!r})
package = importlib.util.module_from_spec(spec)
sys.modules["kernelcount"] = package
spec.loader.exec_module(package)
from kernelcount.worker import main
main({control}, {results}, {job!r}, {first})
"""


_MESSAGES: msgspec.json.Decoder[worker.Message] = msgspec.json.Decoder(worker.Message)


@dataclass
class Results:
    """What came of a job: an outcome a step, and what the user is to be told."""

    job: Job
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    targets: dict[int, Target] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    said: list[str] = field(default_factory=list)


Watcher = Callable[[str], None]
Runner = Callable[[Job, Watcher], Results]


def in_process(job: Job, progress: Watcher) -> Results:
    """Do the job in this process. Raises KernelcountError where it cannot be done at all."""
    results = Results(job)
    at = [0]
    total = len(worker.steps(job))
    while (first := len(results.outcomes)) < total:
        at[0] = first
        worker.perform(job, first, lambda message: _take(message, results, at, progress))
    return results


def in_worker(job: Job, progress: Watcher) -> Results:
    """Do the job in worker processes. Raises KernelcountError where it cannot be done at all."""
    results = Results(job)
    total = len(worker.steps(job))
    while len(results.outcomes) < total:
        _Worker(job, results, progress).run()
    return results


def _take(message: worker.Message, results: Results, at: list[int], progress: Watcher) -> None:
    """Note what a message says. Raises KernelcountError for one that ends the whole job."""
    match message:
        case worker.Begin(index):
            at[0] = index
        case worker.Ready(environment, target):
            results.environment = environment
            results.targets[at[0]] = target
        case worker.Progress(text):
            progress(text)
        case worker.Done(index, outcome, said):
            results.outcomes[index] = saved.load(bytes(outcome), "the worker")[0]
            if said:
                results.said.append(said)
        case worker.Failed(code, text):
            error = KernelcountError(text)
            error.code = code
            raise error


class _Worker:
    """One worker process, from its start to its end."""

    def __init__(self, job: Job, results: Results, progress: Watcher) -> None:
        self.job, self.results, self.progress = job, results, progress
        self.steps = worker.steps(job)
        self.at = [len(results.outcomes)]
        self.ended = False

    def run(self) -> None:
        """Take outcomes until the worker ends; account for the variant that it died at."""
        with self._started(self.at[0]) as (process, results):
            end = self._listen(results) or self._end(process)
        at = len(self.results.outcomes)
        if not self.ended and at < len(self.steps):
            name = self.steps[at].variant
            self.results.outcomes[at] = Unmeasured(name, end)
            self.results.said.append(f"{name}: {end}")

    @contextlib.contextmanager
    def _started(self, first: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        control_read, control_write = os.pipe()
        results_read, results_write = os.pipe()
        boot = _BOOT.format(
            init=str(Path(kernelcount.__file__)),
            control=control_read,
            results=results_write,
            job=msgspec.json.encode(self.job),
            first=first,
        )
        process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=2,  # whatever the user's code prints, from wherever, goes to stderr
            pass_fds=(control_read, results_write),
            start_new_session=True,  # so that all its children can be ended with it
            env={"KINETO_LOG_LEVEL": "99", **os.environ},
        )
        os.close(control_read)
        os.close(results_write)
        try:
            yield process, results_read
        finally:
            _kill(process)
            os.close(results_read)
            os.close(control_write)

    def _listen(self, results: int) -> str | None:
        """Take messages until the pipe closes: None, or until time is up: what to say of it."""
        pending = b""
        deadline = self._deadline()
        while True:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([results], [], [], wait)[0]:
                return f"no answer within --timeout {self.job.timeout:g} s; ended"
            chunk = os.read(results, _CHUNK)
            if not chunk:
                return None
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                message = _MESSAGES.decode(line)
                _take(message, self.results, self.at, self.progress)
                if isinstance(message, worker.Done):
                    deadline = self._deadline()
                self.ended = self.ended or isinstance(message, worker.Ended)

    def _deadline(self) -> float | None:
        return None if self.job.timeout is None else time.monotonic() + self.job.timeout

    def _end(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the end of a worker that says no more; how it ended, in words."""
        try:
            code = process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return f"the process closed its results and did not end within {_GRACE:g} s"
        if code >= 0:
            return f"the process ended itself with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = "; was it out of memory?" if name == "SIGKILL" else ""
        return f"the process died of {name}{hint}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the worker and every process of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
