"""What a worker is given, and what it tells of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kernelcount.model import Environment, Job, Target


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker process begins with: the folder of its job, and the step to begin at.

    `variables` are its environment. `quiet`: it works in the background, at the lowest priority,
    and what it prints is thrown away.
    """

    folder: str
    first: int
    variables: dict[str, str]
    quiet: bool = False


class Loading(msgspec.Struct, tag="loading"):
    """torch is imported; the user's code is imported from here on."""


class Loaded(msgspec.Struct, tag="loaded"):
    """The user's code is imported."""


class Begin(msgspec.Struct, tag="begin"):
    """A variant begins; `index` counts variants over all sizes."""

    index: int


class Ready(msgspec.Struct, tag="ready"):
    """The arguments are made."""

    environment: Environment
    target: Target


class Progress(msgspec.Struct, tag="progress"):
    """What is being done, in a few words."""

    text: str


class Together(msgspec.Struct, tag="together"):
    """Variants that were counted are timed in turn, or a remedy is tried on one of them.

    Their outcomes are sent once more then.
    """


class Done(msgspec.Struct, tag="done"):
    """A variant has ended. `outcome` is as `saved.dump` writes it.

    `said` is for stderr: the reason, with the user's frames below it. `rest` is why the variants to
    come at this size are not worth a try, empty where they are.
    """

    index: int
    outcome: msgspec.Raw
    said: str = ""
    rest: str = ""


class Unwritten(msgspec.Struct, tag="unwritten"):
    """A trace was recorded, but could not be written where it was wanted."""

    text: str


class Failed(msgspec.Struct, tag="failed"):
    """The job cannot be done at all: an exit code and what to say."""

    code: int
    message: str


class Ended(msgspec.Struct, tag="ended"):
    """The process ends here on its own account, whether or not steps are left."""


Message = Loading | Loaded | Ready | Begin | Progress | Together | Done | Unwritten | Failed | Ended
Send = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One variant at one size."""

    index: int
    variant: str
    size: int | None
    trace: str | None


def steps(job: Job) -> list[Step]:
    """The variants of a job in order, size by size."""
    sizes: tuple[int | None, ...] = job.sizes or (None,)
    pairs = [(size, variant) for size in sizes for variant in job.variants]
    traces = job.traces or (None,) * len(pairs)
    return [Step(i, v, s, traces[i]) for i, (s, v) in enumerate(pairs)]
