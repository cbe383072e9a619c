"""Where a job is done: in worker processes, or in the caller's own.

A worker that dies, hangs or fails costs the variant that it was at; the next variant gets another.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from kernelcount import boot, worker
from kernelcount.errors import Interrupted, KernelcountError, NotMeasuredError
from kernelcount.model import (
    NOT_TIMED,
    Capture,
    Environment,
    Job,
    Note,
    Outcome,
    Target,
    Unmeasured,
    note_codes,
)
from kernelcount.origins.callers import is_users_own
from kernelcount.probes.timing import shares
from kernelcount.traces import saved

if TYPE_CHECKING:
    from kernelcount.inhand import InHand

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


@dataclass
class Results:
    """What came of a job: an outcome a step, and what the user is to be told of it.

    `said` holds the texts for stderr where there is more to say than the outcome's reason, and
    `unwritten` the files that could not be written.
    """

    job: Job
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    targets: dict[int, Target] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    said: dict[int, str] = field(default_factory=dict)
    unwritten: list[str] = field(default_factory=list)

    def settle(self, index: int, outcome: Outcome, said: str = "", rest: str = "") -> None:
        """Note the outcome of a step; with `rest`, of the steps to come at its size too."""
        self.outcomes[index] = outcome
        if said:
            self.said[index] = said
        if not rest:
            return
        steps = worker.steps(self.job)
        code = outcome.code if isinstance(outcome, Unmeasured) else NotMeasuredError.code
        for step in steps[index + 1 :]:
            if step.size == steps[index].size:
                self.outcomes[step.index] = Unmeasured(step.variant, rest, None, code)

    def untimed(self, reason: str) -> None:
        """Note why what was counted has no times, where the process ended over it."""
        note = Note(NOT_TIMED, f"not timed: {reason}")
        for index, outcome in self.outcomes.items():
            if not isinstance(outcome, Capture) or outcome.timing is not None:
                continue
            if not note_codes(outcome.notes) & {NOT_TIMED, "memoised"}:
                self.outcomes[index] = replace(outcome, notes=(*outcome.notes, note))


Watcher = Callable[[str], None]


class Companion(Protocol):
    """Who does something else while a job is done, and is told how far it is."""

    def ready(self, environment: Environment) -> None:
        """The environment is known, and nothing measured yet."""

    def timing(self, on: bool) -> None:
        """Times are being taken from here on, or are not any more."""


class Runner(Protocol):
    """Does a job, and tells the companion."""

    def __call__(self, job: Job, progress: Watcher, companion: Companion | None = None) -> Results:
        """What came of it. Raises KernelcountError where it cannot be done at all."""


class Background:
    """What a job in the background is told: to rest for a while, or to give up.

    `quiet`: it gives way to all others, and what the user's code prints is thrown away.
    """

    def __init__(self, *, quiet: bool = True) -> None:
        self.cancelled, self.resting = threading.Event(), threading.Event()
        self.quiet = quiet


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
    listener = _Listener(results, progress, companion)
    argv, folder = sys.argv, Path.cwd()
    try:
        while (first := _first_left(results)) is not None:
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
        while (first := _first_left(results)) is not None:
            listener = _Listener(results, progress, companion)
            _Worker(listener, Path(folder), first, background, start or spawned).run()
    return results


def _first_left(results: Results) -> int | None:
    total = len(worker.steps(results.job))
    return next((i for i in range(total) if i not in results.outcomes), None)


class _Listener:
    """Takes a worker's messages. `step` is the one it is at, None before the first begins."""

    def __init__(
        self, results: Results, progress: Watcher, companion: Companion | None = None
    ) -> None:
        self.results, self.progress, self.companion = results, progress, companion
        self.steps = worker.steps(results.job)
        self.step: worker.Step | None = None
        self.doing = ""
        self.together = False  # counting is over for now: nothing that fails costs a count
        self.ended = False

    def take(self, message: worker.Message) -> None:
        """Note what a message says. Raises KernelcountError for one that ends the whole job."""
        results = self.results
        match message:
            case worker.Begin(index):
                self.step, self.doing = self.steps[index], ""
                self._time(on=False)
            case worker.Ready(environment, target):
                if self.companion is not None and results.environment == Environment():
                    self.companion.ready(environment)
                results.environment = environment
                if self.step is not None:
                    results.targets[self.step.index] = target
            case worker.Progress(text):
                self.doing = text
                self.progress(f"{name_of(self.step, results.job)}: {text}" if self.step else text)
            case worker.Together():
                self.step = None
                self._time(on=True)
            case worker.Done(index, outcome, said, rest):
                results.settle(index, saved.load(bytes(outcome), "the worker")[0], said, rest)
            case worker.Unwritten(text):
                results.unwritten.append(text)
            case worker.Failed(code, text):
                self.fail(text, code, whole=True)
            case worker.Ended():
                self.ended = True

    def _time(self, *, on: bool) -> None:
        if self.companion is not None and on != self.together:
            self.companion.timing(on)
        self.together = on

    def fail(self, text: str, code: int, *, whole: bool = False) -> None:
        """The process can do nothing more, by its own account or by its end.

        Raises KernelcountError where the whole job can have no outcome: `whole` or not, one that
        has some keeps them.
        """
        first = _first_left(self.results)
        if code == Interrupted.code:
            lost = "; what was counted before is not shown" if self.results.outcomes else ""
            doing = f" ({self.doing})" if self.doing else ""
            raise Interrupted(f"{text}{doing}{lost}")
        if self.together:
            self.results.untimed(text.splitlines()[0])
            return
        if first is None:
            return
        if (whole or self.step is None) and not self.results.outcomes:
            raise KernelcountError(text, code)
        step = self.steps[first]
        self.results.settle(first, Unmeasured(step.variant, text.splitlines()[0], None, code), text)


def name_of(step: worker.Step, job: Job) -> str:
    """A step in words: its variant, and its size where there are several."""
    return step.variant if len(job.sizes) <= 1 else f"{step.variant} at size {step.size}"


class _Worker:
    """One worker process, from its start to its end."""

    def __init__(
        self,
        listener: _Listener,
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
                loading = listener.step is None
                listener.fail(self._how_it_ended(process), 2 if loading else NotMeasuredError.code)

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
