"""A job, step by step, and what comes after the steps of one size."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelcount import __version__
from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError
from kernelcount.model import NOT_TIMED, Capture, Job, Note, Numerics, Outcome, note_codes
from kernelcount.traces import saved
from kernelcount.worker.code import Code
from kernelcount.worker.device import is_for_paper
from kernelcount.worker.failures import Failure, failure_of, printable
from kernelcount.worker.messages import (
    Begin,
    Done,
    Failed,
    Loaded,
    Loading,
    Progress,
    Ready,
    Send,
    Step,
    Together,
    Unwritten,
    steps,
)
from kernelcount.worker.subjects import Subjects

if TYPE_CHECKING:
    from kernelcount.inhand import InHand
    from kernelcount.variants import Variant


def perform(
    job: Job,
    first: int,
    send: Send,
    scratch: str | None = None,
    hushed: Callable[[], AbstractContextManager[None]] = nullcontext,
    in_hand: InHand | None = None,
) -> None:
    """Do the job from step `first` on, until its end or the first variant that fails.

    After a failure the process may be poisoned (a CUDA error sticks), so the rest is for another.
    `scratch` is a folder for traces; None: one is made. `hushed` holds for what the user's code
    prints while it is timed, by thousands of calls. KeyboardInterrupt passes through.

    `in_hand`: the caller's function, in place of what the job's spec names. Then errors are raised.
    """
    try:
        session = Session(job, send, scratch, in_hand)
        todo = steps(job)[first:]
        healthy = True
        for step, following in zip(todo, [*todo[1:], None], strict=True):
            send(Begin(step.index))
            done = session.do(step)
            send(done)
            if done.said or following is None or following.size != step.size:
                session.together(step.size, hushed)
                healthy = session.remedies(step.size, hushed)
            if done.said or not healthy:
                return
    except KernelcountError as error:
        if in_hand is not None:
            raise
        send(Failed(error.code, printable(str(error))))


def repeat(job: Job, send: Send, scratch: str | None = None) -> str | None:
    """Call the one variant of a job as it is steady, in the range of another program's profiler.

    `scratch` is a folder for files; None: one is made. Gives a line on what came in between, None
    where nothing did. KeyboardInterrupt passes through.
    """
    (step,) = steps(job)
    try:
        Session(job, send, scratch).repeat(step)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the user's code may raise anything
        return failure_of(error, step.size).reason
    return None


class Session:
    """A job's code and device, and what was counted so far."""

    def __init__(
        self, job: Job, send: Send, scratch: str | None, in_hand: InHand | None = None
    ) -> None:
        send(Progress("importing torch"))
        import torch  # noqa: F401

        from kernelcount import devices, variants
        from kernelcount.probes import compiler

        self.job, self.send, self.scratch, self.in_hand = job, send, scratch, in_hand
        asked = [variants.parse(name) for name in job.variants]
        late = self._import(asked)
        send(Progress("importing the compiler"))
        compiler.load()
        for variant in asked:
            variants.check_backend(variant)
        name = self._choose_device()
        environment = replace(self.device.environment(), kernelcount=__version__)
        if job.ncu:
            devices.check_counters(environment.kind)
        self.code.evaluate()
        self.subjects = Subjects(self.code, self.device, name, environment, late, send)
        self._ways: dict[str, Any] = {}
        self._counted: list[tuple[int, Any, Capture]] = []
        self._timed: list[tuple[int, Any, Capture]] = []

    def _import(self, asked: Sequence[Variant]) -> list[str]:
        """Import the user's code; what it asks of the compiler when that does not listen any more.

        The user's module comes before all else of torch: it may say by the environment which GPU is
        to be seen, or how Inductor is to work. On paper the card comes before it, and the compiler
        with it: the module may put tensors there, and call what it has compiled.
        """
        from kernelcount.paper import gpu

        self.device: Any = gpu.of_card(self.job.gpu) if is_for_paper(self.job) else None
        self.send(Loading())
        self.send(Progress(f"importing {printable(self.job.spec)}"))
        before = dict(os.environ) if "torch._inductor.config" in sys.modules else None
        with nullcontext() if self.device is None or self.in_hand else self.device.importing():
            self.code = Code(self.job, self.in_hand, self.device, asked)
        # Where this process was forked from a warm one, the compiler is there before the module.
        measured = self.device is None and before is not None
        late = gpu.set_since(before or {}) if measured else []
        self.send(Loaded())
        return late

    def _choose_device(self) -> str:
        """What is counted on, and torch's name for it."""
        from kernelcount import devices, paper
        from kernelcount.paper import gpu

        chosen, name = devices.choose(self.job.device)
        if chosen.kind == "paper":
            paper.check(self.job)
            self.device = self.device or gpu.of_card(self.job.gpu)
        else:
            self.device = chosen
        return name

    def do(self, step: Step) -> Done:
        """One variant at one size, to its end, whatever that is."""
        if lost := self.code.lost.get(step.variant):
            return lost.done(step)
        subject = self.subjects.of(step)
        if isinstance(subject, Failure):
            return msgspec.structs.replace(subject.done(step), rest=subject.reason)
        self.send(Ready(subject.environment, subject.target))
        outcome = self._measure(step)
        if isinstance(outcome, Failure):
            return outcome.done(step)
        # A result that is remembered takes no time worth telling.
        if isinstance(outcome, Capture) and "memoised" not in note_codes(outcome.notes):
            self._counted.append((step.index, self._way(step.variant), outcome))
        elif isinstance(outcome, Capture) and self._compares():
            outcome = self._incomparable(outcome, "a result that is remembered is not compared")
        return Done(step.index, msgspec.Raw(saved.dump([outcome])))

    def _compares(self) -> bool:
        return bool(self.job.seconds) and self.device.kind != "paper"

    def _incomparable(self, capture: Capture, why: str) -> Capture:
        """A capture with the reason why its results are not held against the first variant's."""
        if capture.name == self.job.variants[0]:
            return capture
        return replace(capture, numerics=Numerics("unknown", 0, notes=(why,)))

    def repeat(self, step: Step) -> None:
        """The steady call of a variant once more, in the range of another program's profiler.

        Raises KernelcountError, or what the user's code raises.
        """
        from kernelcount import capture

        with tempfile.TemporaryDirectory(prefix="kernelcount-", dir=self.scratch) as folder:
            way, progress = self._way(step.variant), lambda text: self.send(Progress(text))
            capture.repeat(self.subjects.made(step.size), way, Path(folder), progress)

    def together(
        self, size: int | None, hushed: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Time what was counted at one size, in turn; what fails here leaves the counts alone."""
        from kernelcount import together

        counted, self._counted = self._counted, []
        if not counted or not self._compares():
            return
        self.send(Together())
        first = any(capture.name == self.job.variants[0] for _, _, capture in counted)
        ways = [(way, capture) for _, way, capture in counted]
        try:
            with hushed():
                captures = together.measure(
                    self.subjects.made(size),
                    ways,
                    lambda text: self.send(Progress(text)),
                    lambda error: failure_of(error, size).reason,
                    self.scratch,
                )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever user code raises costs the times
            note = Note(NOT_TIMED, f"not timed: {failure_of(error, size).reason}")
            captures = [replace(c, notes=(*c.notes, note)) for _, c in ways]
        if not first:  # these are compared among themselves
            why = "the first variant has no results"
            captures = [self._incomparable(capture, why) for capture in captures]
        for (index, way, _), capture in zip(counted, captures, strict=True):
            self.send(Done(index, msgspec.Raw(saved.dump([capture]))))
            self._timed.append((index, way, capture))

    def remedies(
        self, size: int | None, hushed: Callable[[], AbstractContextManager[None]]
    ) -> bool:
        """Try remedies on what was timed at one size; whether the process is fit for more.

        A capture of a CUDA graph that fails may leave the GPU's context unusable.
        """
        timed, self._timed = self._timed, []
        if not timed or not self.job.remedy:
            return True
        from kernelcount import remedies

        ways = [(way, capture) for _, way, capture in timed]
        last: dict[int, Capture] = {}
        with hushed():
            self.send(Together())
            for position, capture in remedies.tried(
                self.subjects.made(size), ways, self.job.variants,
                lambda e: failure_of(e, size).reason, lambda text: self.send(Progress(text)),
            ):  # fmt: skip
                last[position] = capture
                self.send(Done(timed[position][0], msgspec.Raw(saved.dump([capture]))))
                self.send(Together())  # each has the time that a variant has
        named = self.job.variants  # these ran as variants, and are cited
        tried = [r for c in last.values() for r in c.remedies if r.name not in named]
        return all(r.status != "failed" for r in tried)

    def _way(self, name: str) -> Any:
        from kernelcount import capture, variants

        if name not in self._ways:
            self._ways[name] = capture.way(variants.parse(name), self.code.functions[name])
        return self._ways[name]

    def _measure(self, step: Step) -> Outcome | Failure:
        from kernelcount import capture, inputs, variants

        variant = variants.parse(step.variant)
        function = self.code.functions[variant.name]
        with tempfile.TemporaryDirectory(prefix="kernelcount-", dir=self.scratch) as folder:
            try:
                if variant.spec is not None:
                    inputs.check_fit(function, self.subjects.made(step.size).arguments)
                outcome: Outcome = capture.measure(
                    self.subjects.made(step.size),
                    self._way(step.variant),
                    Path(folder),
                    lambda text: self.send(Progress(text)),
                )
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  whatever user code raises costs a variant
                error = error if self.in_hand is None else self.in_hand.explained(error)
                failure = failure_of(error, step.size)
                of_user = isinstance(error, UsageError) or variant.kind == "eager"
                if self.in_hand is not None:
                    own = of_user or variant.kind != "compile" or len(self.code.functions) == 1
                    self.in_hand.failed(variant.name, error, failure.code, is_own=own)
                if of_user or failure.code == NotMeasuredError.code:
                    return failure
                return replace(failure, code=NotMeasuredError.code, raised=True)
            if step.trace is not None and (problem := _keep(folder, Path(step.trace))):
                self.send(Unwritten(problem))
        if self.in_hand is not None:
            return self.in_hand.proven(outcome, self.subjects.made(step.size).arguments)
        return outcome


def _keep(folder: str, wanted: Path) -> str | None:
    """Put the raw trace where the user wants it, compressed if its name says so.

    Returns what went wrong, if anything did.
    """
    import gzip

    trace = Path(folder, "trace.json")
    try:
        if wanted.suffix == ".gz":
            with trace.open("rb") as source, gzip.open(wanted, "wb") as out:
                shutil.copyfileobj(source, out)
        else:
            shutil.copyfile(trace, wanted)
    except OSError as error:
        return f"--trace {printable(str(wanted))}: {error.strerror}"
    return None
