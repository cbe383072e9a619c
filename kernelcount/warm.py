"""Workers that are forked from a warm process, in which torch is imported already.

That process is the standard library's fork server: it never runs a line of the user's code, so that
what one module does to its process never reaches the next. Nor does it start a GPU, which would be
of no use to the processes forked from it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from multiprocessing import connection, forkserver, process
from pathlib import Path
from types import ModuleType
from typing import Any

import kernelcount
from kernelcount import boot, runners, worker
from kernelcount.beside import Alongside, OnPaper
from kernelcount.model import Job
from kernelcount.probes import compiler
from kernelcount.runners import Background, Companion, Process, Results, Watcher

_ON_THE_HOST = ("cpu", "fake")
_DRIVER = Path("/dev/nvidiactl")  # of NVIDIA's on Linux (its README, "How do I create the device")
_starting = threading.Lock()  # of what is changed for the whole process while one is started
_served = threading.Event()


def in_fork(
    job: Job,
    progress: Watcher,
    companion: Companion | None = None,
    *,
    background: Background | None = None,
) -> Results:
    """Do the job as `runners.in_worker` does, in workers that are forked from a warm process.

    Where there is no GPU, that process has counted on paper, after which torch holds CUDA for
    started: what is measured on the CPU gets a worker from nothing. Raises KernelcountError where
    it cannot be done at all.
    """
    progress("importing torch")
    start = forked if job.device not in _ON_THE_HOST else runners.spawned
    return runners.in_worker(job, progress, companion, background=background, start=start)


def beside(job: Job) -> OnPaper:
    """What counts a job on paper while it is measured, in workers forked from a warm process.

    Where an NVIDIA GPU may be, that process begins now to import torch, as the worker that measures
    does at the same time: by when the GPU is known, paper can begin.
    """
    if job.device not in ("paper", *_ON_THE_HOST) and job.gpu is None and _DRIVER.exists():
        with _starting:
            _serve(quiet=True)
    return OnPaper(job, partial(Alongside, start=forked))


@contextlib.contextmanager
def forked(start: worker.Start) -> Iterator[Process]:
    """A worker that is forked from the warm process; where there can be none, one from nothing."""
    try:
        child = _Forked(start)
    except (OSError, EOFError):  # the server died as it imported torch: the other way tells why
        with runners.spawned(start) as other:
            yield other
        return
    try:
        yield child
    finally:
        runners.kill(child, start.variables[runners.TOKEN])
        child.end()


class _Forked:
    """A process of the fork server's."""

    def __init__(self, start: worker.Start) -> None:
        context = multiprocessing.get_context("forkserver")
        with _starting, _no_main():
            _serve()
            # A descriptor travels to a forked process in a connection.
            said = os.open(os.devnull, os.O_WRONLY) if start.quiet else os.dup(2)
            with connection.Connection(said, readable=False) as stderr:
                self._process = context.Process(target=_work, args=(start, stderr))
                self._process.start()
        pid = self._process.pid
        assert pid is not None
        self.pid = pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0)
        return code

    def send_signal(self, number: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def end(self) -> None:
        """End it also where it has not come to lead a session yet, and forget it."""
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            self.send_signal(signal.SIGKILL)
            self.wait(1)
            self._process.close()


def _serve(*, quiet: bool = False) -> None:
    """Have a fork server, started where nothing of the user's can come in between.

    `quiet`: what torch says as it is imported is thrown away.
    """
    if _served.is_set():
        return
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        [*compiler.MODULES, "kernelcount.preload"]
    )
    sys.stdout.flush()
    folder, variables, screen = Path.cwd(), dict(os.environ), (os.dup(1), os.dup(2))
    os.environ.update(boot.environment())
    if (paths := os.environ.get("PYTHONPATH")) is not None:
        absolute = [str(Path(path).absolute()) for path in paths.split(os.pathsep) if path]
        os.environ["PYTHONPATH"] = os.pathsep.join(absolute)
    os.environ[boot.PACKAGE] = str(Path(kernelcount.__file__).parent)
    # Asked whether there is a GPU, torch starts none then.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # Nor do the threads and processes that compile for Inductor begin, which no fork would have.
    os.environ["TORCH_WARM_POOL"] = "0"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(2, 1)  # stdout is the parent's alone: whoever reads it must come to its end
    if quiet:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    os.chdir("/")  # a random.py in the current folder would break the server
    try:
        forkserver.ensure_running()
        _served.set()
    finally:
        os.chdir(folder)
        for descriptor, was in zip((1, 2), screen, strict=True):
            os.dup2(was, descriptor)
            os.close(was)
        os.close(nowhere)
        os.environ.clear()
        os.environ.update(variables)


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hide the caller's main module: multiprocessing would run it once more in each process."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(start: worker.Start, stderr: Any) -> None:
    """What the forked process does: it is set up as one that was started from nothing."""
    os.setsid()  # so that all its children can be ended with it
    for descriptor in (1, 2):
        os.dup2(stderr.fileno(), descriptor)
    stderr.close()
    os.environ.clear()
    os.environ.update(start.variables)
    if start.quiet:
        os.nice(worker.LOWEST)
    parent = process.parent_process()
    assert parent is not None
    worker.main(parent.sentinel, start.folder, start.first)
