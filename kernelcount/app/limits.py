"""Budgets, and scenarios with theirs, held against what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcount.app.asked import check_job
from kernelcount.app.counting import run
from kernelcount.errors import UsageError
from kernelcount.model import Checked, Job, Report, Scenario

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

    return (those.choose(names) if names else those.find()), those.folder()


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

    `held` are the budgets of all of them, in order. Raises UsageError as `check` does.
    """
    coming = iter(held)
    left = Counter(budget.place.file for budget in held)
    by_file = {scenario.budget: scenario for scenario in chosen}
    parts: dict[str, list[Checked]] = {}
    faults: dict[str, list[str]] = {}

    def told(part: Checked, said: tuple[str, ...]) -> None:
        file = next(coming).place.file
        of_file = parts.setdefault(file, [])
        of_file.append(part)
        why = {held.why.removeprefix("raised ") for held in part.held if held.is_fault}
        faults.setdefault(file, []).extend(t for t in said if any(w in t for w in why))
        if len(of_file) == left[file]:
            every = tuple(limit for p in of_file for limit in p.held)
            shown(by_file[file], Checked(every, len(of_file)), tuple(faults[file]))

    return check(held, runner, progress, options, told, beside)


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
    for budget in held:
        try:
            check_job(checking.job_of(budget, checking.Options()))
        except UsageError as error:
            raise budget.place.error(str(error)) from None
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
