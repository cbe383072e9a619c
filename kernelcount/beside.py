"""The count on paper of what is measured on a GPU, made in the background meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from kernelcount import paper
from kernelcount.conclusions import comparison
from kernelcount.errors import KernelcountError
from kernelcount.model import Beside, Capture, Environment, Job, Outcome, Unmeasured
from kernelcount.runners import Background, Results, Starter, in_worker

_LOOK = 0.1  # seconds between reports of progress


class OnPaper:
    """Counts a job on paper while it is measured: from when its GPU is known (`ready`) on.

    To be used as a context, at whose end whatever is not done yet is given up.
    """

    def __init__(self, job: Job, start: Callable[[Job], Alongside] | None = None) -> None:
        self._job, self._start = job, start or Alongside
        self._alongside: Alongside | None = None
        self._reason = ""

    def __enter__(self) -> OnPaper:
        return self

    def __exit__(self, *_: object) -> None:
        if self._alongside is not None:
            self._alongside.cancel()

    def ready(self, environment: Environment) -> None:
        """Begin, for the card that is there; only an NVIDIA GPU has one."""
        if environment.kind != "cuda":
            return
        card = paper.of_device(environment.device or "")
        if card is None:
            known = ", ".join(paper.CARDS)
            self._reason = f"no figures of {environment.device} are at hand, only of {known}"
            return
        job = replace(
            self._job,
            device="paper",
            gpu=card.name,
            traces=(),
            cold=False,
            reference=False,
            remedy=False,
            ncu=False,
        )
        self._alongside = self._start(job)

    def timing(self, on: bool) -> None:
        """Rest while times are taken: what else the processor does would be in them."""
        if self._alongside is not None:
            self._alongside.rest(on)

    def found(
        self, outcomes: Mapping[int, Outcome], progress: Callable[[str], None]
    ) -> dict[int, Beside]:
        """What paper says, by step, of the steps that were measured on a GPU."""
        self.timing(on=False)
        measured = {i: o for i, o in outcomes.items() if isinstance(o, Capture)}
        if measured and self._alongside is not None:
            try:
                results = self._alongside.result(lambda text: progress(f"on paper, {text}"))
            except KernelcountError as error:
                self._reason = str(error).partition("\n")[0]
            else:
                return {i: comparison.beside(o, results.outcomes[i]) for i, o in measured.items()}
        if not self._reason:
            return {}
        return {i: Beside(Unmeasured(o.name, self._reason)) for i, o in measured.items()}


class Alongside:
    """Begins to do a job at once, in a worker of the lowest priority.

    `result` waits for it; whoever does not want it any more must `cancel` it. `start`: as in
    `in_worker`.
    """

    def __init__(self, job: Job, start: Starter | None = None) -> None:
        self._start = start
        self._doing = ""
        self._told = Background()
        self._results: Results | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, args=(job,), daemon=True)
        self._thread.start()

    def result(self, progress: Callable[[str], None]) -> Results:
        """What came of it. Raises KernelcountError where it could not be done at all."""
        while self._thread.is_alive():
            self._thread.join(_LOOK)
            progress(self._doing)
        if self._results is None:
            raise self._error or AssertionError("a thread ended without a result or an error")
        return self._results

    def rest(self, on: bool) -> None:
        """Do nothing from here on, or go on."""
        (self._told.resting.set if on else self._told.resting.clear)()

    def cancel(self) -> None:
        """End its worker, and wait until that is gone."""
        self._told.cancelled.set()
        self._thread.join()

    def _do(self, job: Job) -> None:
        try:
            self._results = in_worker(job, self._note, background=self._told, start=self._start)
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._error = error

    def _note(self, text: str) -> None:
        self._doing = text
