"""A worker process, from its start to its end."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from kernelcount import boot, worker
from kernelcount.errors import Interrupted, NotMeasuredError
from kernelcount.origins.callers import is_users_own
from kernelcount.probes.timing import shares
from kernelcount.runners.listening import Listener
from kernelcount.runners.results import Background

_GRACE = 3.0  # seconds for what the user's code does at exit, once all results are in
_LOOK = 0.2  # seconds between looks whether a silent worker still lives
_ANSWER = 1.0  # seconds for a worker to write down where it is
_FAREWELL = 5.0  # seconds for a killed process to be gone; one that waits for a driver may not go
_CHUNK = 1 << 16
TOKEN = "KERNELCOUNT_WORKER"  # noqa: S105  in the environment of a worker and of all that it starts

_START = """
import os
os.nice({priority})
from kernelcount.worker import main
main({control}, {folder!r}, {first})
"""


class Process(Protocol):
    """A worker process, as subprocess.Popen has it."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""

    def wait(self, timeout: float | None = None) -> int:
        """The same, when it has ended. Raises subprocess.TimeoutExpired."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, if it lives."""


Starter = Callable[[worker.Start], AbstractContextManager[Process]]
"""Starts a worker process, and ends it with all that it has started as the context ends."""

_MESSAGES: msgspec.json.Decoder[worker.Message] = msgspec.json.Decoder(worker.Message)
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (.+)')


class Worker:
    """One worker process, from its start to its end."""

    def __init__(
        self,
        listener: Listener,
        folder: Path,
        first: int,
        background: Background | None,
        start: Starter,
    ) -> None:
        self.job, self.folder, self.first = listener.results.job, folder, first
        self.listener, self.background, self.resting = listener, background, False
        self.start = start

    def run(self) -> None:
        """Take outcomes until the worker ends; account for the variant that it died at."""
        with self._started() as (process, pipe):
            end = self._listen(process, pipe)
            listener = self.listener
            if end is None and listener.ended:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE)
            elif end is not None:
                listener.fail(end, NotMeasuredError.code)
            else:
                code = 2 if listener.step is None else NotMeasuredError.code
                # A system that is out of memory kills by SIGKILL; all else is the function's doing.
                killed = process.wait() == -signal.SIGKILL
                listener.fail(self._how_it_ended(process), code, raised=not killed)

    @contextlib.contextmanager
    def _started(self) -> Iterator[tuple[Process, int]]:
        pipe = self.folder / "results"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        keeping = os.open(pipe, os.O_WRONLY)  # so that the pipe has no end between two messages
        # On paper nothing may touch a GPU that is there: Inductor, for one, would time on it.
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.job.device == "paper" else {}
        variables = {**boot.environment(), **hidden, TOKEN: uuid.uuid4().hex}
        quiet = self.background is not None and self.background.quiet
        start = worker.Start(str(self.folder), self.first, variables, quiet)
        try:
            with self.start(start) as process:
                yield process, reading
        finally:
            for descriptor in (reading, keeping):
                os.close(descriptor)

    def _listen(self, process: Process, pipe: int) -> str | None:
        """Take messages until the worker ends; why it was ended, where time was up."""
        pending = b""
        deadline: float | None = None
        while not self.listener.ended:
            if self._rests(process):
                deadline = self._deadline() if deadline is not None else None
            if not select.select([pipe], [], [], _LOOK)[0]:
                if process.poll() is not None and not select.select([pipe], [], [], 0)[0]:
                    return None
                if deadline is not None and time.monotonic() > deadline:
                    return self._out_of_time(process)
                continue
            *lines, pending = (pending + os.read(pipe, _CHUNK)).split(b"\n")
            for message in map(_MESSAGES.decode, lines):
                self.listener.take(message)
                if isinstance(message, worker.Loading | worker.Begin | worker.Together):
                    deadline = self._deadline()
                elif isinstance(message, worker.Loaded | worker.Done):
                    deadline = None
        return None

    def _rests(self, process: Process) -> bool:
        """Whether it is to rest just now; it and all its children do so by then, or go on.

        Raises Interrupted where it is to be given up.
        """
        if self.background is None:
            return False
        if self.background.cancelled.is_set():
            raise Interrupted("given up")
        if self.background.resting.is_set() != self.resting:
            self.resting = not self.resting
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGSTOP if self.resting else signal.SIGCONT)
        return self.resting

    def _deadline(self) -> float | None:
        if self.job.timeout is None:
            return None
        timing = self.job.seconds * shares(len(self.job.variants)) if self.listener.together else 0
        return time.monotonic() + self.job.timeout + timing

    def _out_of_time(self, process: Process) -> str:
        return f"no answer within --timeout {self.job.timeout:g} s; {self._place(process)}"

    def _place(self, process: Process) -> str:
        """Where a worker hangs: the user's line, or what was being done."""
        fault = self.folder / "fault"
        if worker.WHERE is not None:
            process.send_signal(worker.WHERE)
            until = time.monotonic() + _ANSWER
            while not _frame(fault) and time.monotonic() < until:
                time.sleep(_LOOK / 10)
        frame = _frame(fault)
        return f"it was {frame or self.listener.doing}"

    def _how_it_ended(self, process: Process) -> str:
        """How a worker ended that had not said so, in words."""
        code = process.wait()
        doing = f" ({self.listener.doing})" if self.listener.doing else ""
        if code >= 0:
            return f"the process ended itself with exit code {code}{doing}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        frame = _frame(self.folder / "fault")
        where = f" {frame}" if frame else doing
        hint = "; was it out of memory? Try a smaller --size" if name == "SIGKILL" else ""
        return f"the process died of {name}{where}{hint}"


@contextlib.contextmanager
def spawned(start: worker.Start) -> Iterator[Process]:
    """A worker process that is started from nothing."""
    control, alive = os.pipe()
    then = _START.format(
        control=control,
        folder=start.folder,
        first=start.first,
        priority=worker.LOWEST if start.quiet else 0,
    )
    # Whatever the user's code prints, from wherever, goes to stderr.
    to = subprocess.DEVNULL if start.quiet else 2
    process = subprocess.Popen(
        boot.command(then),
        stdin=subprocess.DEVNULL,
        stdout=to,
        stderr=to,
        pass_fds=(control,),
        start_new_session=True,  # so that all its children can be ended with it
        env=start.variables,
    )
    os.close(control)
    try:
        yield process
    finally:
        kill(process, start.variables[TOKEN])
        os.close(alive)


def _frame(fault: Path) -> str | None:
    """The innermost line of the user's own in what faulthandler wrote, such as ``at a.py:3, in f``.

    None where there is none.
    """
    with contextlib.suppress(OSError):
        for line in fault.read_text(errors="replace").splitlines():
            match = _FRAME.fullmatch(line)
            if match and is_users_own(match[1]):
                return f"at {Path(match[1]).name}:{match[2]}, in {match[3]}"
    return None


def kill(process: Process, token: str) -> None:
    """End the worker and every process that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_FAREWELL)
    # One that has left the session still has the worker's environment (Linux tells it).
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{TOKEN}={token}".encode() in environ.read_bytes():
                os.kill(int(environ.parent.name), signal.SIGKILL)
