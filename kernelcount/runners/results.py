"""What comes of a job, and who is told of it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from kernelcount import worker
from kernelcount.errors import NotMeasuredError
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
