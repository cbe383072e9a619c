"""The worker process: its way to the parent, its crashes, its end."""

from __future__ import annotations

import faulthandler
import fcntl
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Job
from kernelcount.worker.messages import Ended, Failed, Message
from kernelcount.worker.session import perform

WHERE = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None
"""Asks a worker to write down where it is, before it is ended."""

LOWEST = 19
"""The priority that gives way to all others (nice)."""


def main(control: int, folder: str, first: int) -> None:
    """The worker process: fd 1 is the parent's stderr already, and stdin is empty.

    `folder` holds the job and takes the results. The process ends as soon as `control` does, which
    is when the parent is gone, however it went.
    """
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()
    _write_down_crashes(Path(folder, "fault"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # or a crash would swallow what was printed
    send = Sender(Path(folder, "results"))
    job = msgspec.convert(json.loads(Path(folder, "job").read_bytes()), Job)
    try:
        perform(job, first, send, folder, _hushed)
    except KeyboardInterrupt:
        send(Failed(130, "interrupted: the function raised KeyboardInterrupt"))
    except Exception as error:  # noqa: BLE001  a thread of the user's might keep the process alive
        said = f"{type(error).__name__}: {error}"
        send(
            Failed(
                NotMeasuredError.code, f"an error of kernelcount's own, please report it: {said}"
            )
        )
    send(Ended())


class Sender:
    """Sends messages to the parent, through a pipe that is opened for each.

    The user's code may close all file descriptors: one that was kept open would be lost, or, worse,
    be a file of the user's by then. A child that it forked has nothing to say.
    """

    def __init__(self, pipe: Path) -> None:
        self._pipe, self._process = str(pipe), os.getpid()
        self._encoder = msgspec.json.Encoder()

    def __call__(self, message: Message) -> None:
        """Send one; in a child that was forked, end."""
        if os.getpid() != self._process:
            os._exit(0)
        data = memoryview(self._encoder.encode(message).replace(b"\n", b"") + b"\n")
        pipe = os.open(self._pipe, os.O_WRONLY)
        if pipe <= 2:  # noqa: PLR2004  the user's code closed a standard stream: stay off its place
            above = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(pipe)
            pipe = above
        try:
            while data:
                data = data[os.write(pipe, data) :]
        finally:
            os.close(pipe)


@contextmanager
def _hushed() -> Iterator[None]:
    """Throw away what goes to the standard streams, those that the user's code has not closed."""
    kept: list[tuple[int, int]] = []
    for number in (1, 2):
        with suppress(OSError):
            kept.append((number, os.dup(number)))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _flush()
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        _flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _write_down_crashes(path: Path) -> None:
    """Have a crash, and `WHERE`, write the Python frames of the moment to `path`."""
    file = path.open("w")
    faulthandler.enable(file, all_threads=False)
    if WHERE is not None:
        faulthandler.register(WHERE, file, all_threads=False)


def _end_with(control: int) -> None:
    try:
        while os.read(control, 1):
            pass
    except OSError:  # the user's code closed it
        return
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # children too
    os._exit(130)
