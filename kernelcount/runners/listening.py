"""What a worker's messages come to."""

from __future__ import annotations

from kernelcount import worker
from kernelcount.errors import Interrupted, KernelcountError
from kernelcount.model import Environment, Job, Unmeasured
from kernelcount.runners.results import Companion, Results, Watcher
from kernelcount.traces import saved


class Listener:
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

    def fail(self, text: str, code: int, *, whole: bool = False, raised: bool = False) -> None:
        """The process can do nothing more, by its own account or by its end.

        `raised`: the variant that it was at is at fault, as one that raises. Raises
        KernelcountError where the whole job can have no outcome: `whole` or not, one that has some
        keeps them.
        """
        first = first_left(self.results)
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
        outcome = Unmeasured(step.variant, text.splitlines()[0], None, code, raised)
        self.results.settle(first, outcome, text)


def first_left(results: Results) -> int | None:
    """The first step without an outcome; None where all have one."""
    total = len(worker.steps(results.job))
    return next((i for i in range(total) if i not in results.outcomes), None)


def name_of(step: worker.Step, job: Job) -> str:
    """A step in words: its variant, and its size where there are several."""
    return step.variant if len(job.sizes) <= 1 else f"{step.variant} at size {step.size}"
