"""Budgets, and scenarios with theirs, held against what is counted."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcount.app.asked import check_job, check_options
from kernelcount.app.counting import run
from kernelcount.errors import UsageError
from kernelcount.model import Checked, Held, Job, Report, Scenario

if TYPE_CHECKING:
    from kernelcount.beside import OnPaper
    from kernelcount.budgets.budget import Budget
    from kernelcount.budgets.checking import Options, Shown
    from kernelcount.runners import Runner


def scenarios(names: Sequence[str]) -> tuple[tuple[Scenario, ...], Path]:
    """The scenarios of these names, all there are where none is named; and where the tool's are.

    Raises UsageError.
    """
    from kernelcount import scenarios as those
    from kernelcount.budgets.files import is_anothers

    chosen = those.choose(names, is_anothers) if names else those.find(is_anothers)
    return chosen, those.folder()


def examined(chosen: Sequence[Scenario]) -> tuple[tuple[Scenario, ...], tuple[Budget, ...]]:
    """The scenarios with what is wrong with their budgets, and the budgets of the others, in order.

    One whose budgets cannot be read has a `problem`, and costs no other.
    """
    from kernelcount.budgets import checking, files

    found: list[Scenario] = []
    held: list[Budget] = []
    for scenario in chosen:
        try:
            of_it = files.read(Path(scenario.budget))
            for budget in of_it:
                _check_job(budget, checking.job_of(budget, checking.Options()))
        except UsageError as error:
            found.append(replace(scenario, problem=scenario.problem or str(error)))
        else:
            found.append(scenario)
            held += of_it
    return tuple(found), tuple(held)


def _check_job(budget: Budget, job: Job) -> None:
    """Raise UsageError, with the place of the budget, for what it says of how to count."""
    try:
        check_job(job)
    except UsageError as error:
        raise budget.place.error(str(error)) from None


def _check_options(options: Options) -> None:
    """Raise UsageError for flags that are not what they must be, whatever budgets there are."""
    asked = Job("", device=options.device, gpu=options.gpu, timeout=options.timeout)
    check_options(replace(asked, seconds=options.seconds))


def _unread(scenario: Scenario) -> Checked:
    """What came of a scenario whose budgets cannot be read."""
    place = re.match(re.escape(scenario.budget) + r":(\d+)(?::(\d+))?: ", scenario.problem)
    line, column = (int(n or 1) for n in place.groups()) if place else (1, 1)
    why = scenario.problem.partition("\n")[0].removeprefix(place[0] if place else "")
    of_it = Held(
        scenario.budget, line, Path(scenario.function).name, "", "budget", "undecided",
        why=why, column=column, code=UsageError.code,
    )  # fmt: skip
    return Checked((of_it,), 1)


def hold(
    chosen: Sequence[Scenario],
    held: Sequence[Budget],
    runner: Runner,
    progress: Callable[[str], None],
    options: Options,
    shown: Callable[[Scenario, Checked, tuple[str, ...]], None],
    beside: Callable[[Job], OnPaper] | None = None,
) -> Checked:
    """Hold scenarios to their budgets, as `check` does; `shown` is told of each as it is known.

    What it is told beside are the user's own faults, with the user's frames: that a limit needs
    what is not here stands with the limit.

    `chosen` and `held` are as `examined` gives them. Raises UsageError as `check` does.
    """
    _check_options(options)
    coming = iter(held)
    left = Counter(budget.place.file for budget in held)
    waiting = deque(chosen)
    unread: list[Checked] = []
    parts: dict[str, list[Checked]] = {}
    faults: dict[str, list[str]] = {}

    def show_unread() -> None:
        while waiting and waiting[0].budget not in left:
            unread.append(_unread(waiting[0]))
            shown(waiting[0], unread[-1], (waiting.popleft().problem,))

    def told(part: Checked, said: tuple[str, ...]) -> None:
        file = next(coming).place.file
        of_file = parts.setdefault(file, [])
        of_file.append(part)
        why = {held.why.removeprefix("raised ") for held in part.held if held.is_fault}
        faults.setdefault(file, []).extend(t for t in said if any(w in t for w in why))
        if len(of_file) == left[file]:
            every = tuple(limit for p in of_file for limit in p.held)
            shown(waiting.popleft(), Checked(every, len(of_file)), tuple(faults[file]))
            show_unread()

    show_unread()
    checked = check(held, runner, progress, options, told, beside)
    more = tuple(limit for part in unread for limit in part.held)
    return replace(checked, held=(*checked.held, *more), budgets=checked.budgets + len(unread))


def budgets(paths: Sequence[Path] = ()) -> tuple[Budget, ...]:
    """The budgets in these files and folders; by default under scenarios/ and in this folder.

    Nothing is imported or counted. Raises UsageError with what is wrong in each file.
    """
    from kernelcount.budgets.files import load

    return load(paths)


def check(
    held: Sequence[Budget],
    runner: Runner,
    progress: Callable[[str], None],
    options: Options | None = None,
    shown: Shown = lambda *_: None,
    beside: Callable[[Job], OnPaper] | None = None,
) -> Checked:
    """Hold budgets against what is counted by one of `runners`' functions, or `warm.in_fork`.

    By `runners.in_process` the targets share this process, and what one of them does to it.
    `shown` is told what came of each as soon as it is known. `beside` makes what counts on paper
    beside a GPU, for limits that only paper can tell; None: those stay undecided there.

    A target that cannot be counted leaves its budget undecided. Raises UsageError for options or a
    lock file that are not what they must be.
    """
    from kernelcount.budgets import checking

    options = options or checking.Options()
    _check_options(options)
    for budget in held:
        _check_job(budget, checking.job_of(budget, checking.Options()))
        check_job(checking.job_of(budget, options))

    def count(job: Job, modelled: bool) -> tuple[Report, tuple[str, ...]]:
        def say(text: str) -> None:
            progress(f"{job.spec}: {text}")

        if beside is None or not modelled:
            answer = run(job, runner, say)
        else:
            with beside(job) as on_paper:
                answer = run(job, runner, say, on_paper)
        return answer.report, answer.said

    return checking.check(held, count, options, shown)
