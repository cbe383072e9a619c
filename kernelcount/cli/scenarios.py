"""``kernelcount scenarios``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kernelcount.cli.options import (
    AllowUndecided,
    CountForm,
    Device,
    FullLimits,
    Gpu,
    Output,
    Timeout,
)
from kernelcount.errors import KernelcountError, UsageError

if TYPE_CHECKING:
    from kernelcount.model import Checked, Scenario


def scenarios(
    action: Annotated[str, typer.Argument(metavar="[list|run]", help="What to do.")] = "list",
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Which: those to list or run.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    device: Device = None,
    gpu: Gpu = None,
    timeout: Timeout = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="Time calls for so long.")
    ] = 1.0,
    allow_undecided: AllowUndecided = False,
    form: CountForm = "table",
    output: Output = None,
    full: FullLimits = False,
) -> None:
    """List the examples that come with the tool, by theme, or hold them to their budgets."""
    from kernelcount import app
    from kernelcount.budgets import checking
    from kernelcount.cli import output as out
    from kernelcount.render import scenarios as render

    try:
        out.check_format(form, render.FORMS)
        app.check_files((), output=output)
        _check(action, names or (), every)
        chosen, folder = app.scenarios(names or ())
        chosen, budgets = app.examined(chosen)
        if action == "run":
            options = checking.Options(
                device, gpu, timeout, seconds, allow_undecided=allow_undecided
            )
            _run(chosen, budgets, options, form, output, full)
    except KernelcountError as error:
        out.fail(error, form, "scenarios")
    text = render.render(chosen, folder, form=form, **out.screen(form, output))
    out.hand_over(text, output, "", 0)


def _check(action: str, names: Any, every: bool) -> None:
    """Raise UsageError for what makes no sense together."""
    if action not in ("list", "run"):
        raise UsageError(
            f"scenarios {action}: write scenarios list, or scenarios run {action} to run it"
        )
    if every and names:
        raise UsageError("--all and names exclude each other: name some, or run all")
    if action == "run" and not (every or names):
        raise UsageError("scenarios run: name what to run, or write scenarios run --all")


def _run(
    chosen: Any, budgets: Any, options: Any, form: str, output: Path | None, full: bool
) -> NoReturn:
    """Hold those chosen to their budgets, each shown as soon as it is known; exit."""
    from kernelcount import ahead, app, warm
    from kernelcount.budgets import checking
    from kernelcount.cli import output as out
    from kernelcount.render import scenarios as render

    page, line, pages = out.screen(form, output), out.Status(), []

    def shown(scenario: Scenario, checked: Checked, faults: tuple[str, ...]) -> None:
        line.clear()
        for fault in faults:
            out.tell(fault)
        pages.append(render.part(scenario, checked, full=full, **page))
        if form == "table" and output is None:
            out.write(pages[-1])

    try:
        with ahead.Ahead(checking.jobs(budgets, options), warm.in_fork) as runner:
            checked = app.hold(
                chosen,
                budgets,
                runner,
                line.say,
                options,
                shown,
                warm.beside,
            )
    finally:
        line.clear()
    end = render.foot(len(chosen), checked, **page)
    if form != "table":
        text = render.results(chosen, checked, form)
    else:
        text = end if output is None else "".join([*pages, end])
    out.hand_over(text, output, "", checked.exit_code)
