"""``kernelcount scenarios``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcount.errors import KernelcountError, UsageError


def scenarios(
    action: Annotated[str, typer.Argument(metavar="[list|run]", help="What to do.")] = "list",
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Those to run.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the result here.")
    ] = None,
) -> None:
    """List the examples that come with the tool, by theme."""
    from kernelcount import app
    from kernelcount.cli import output as out
    from kernelcount.render import scenarios as render

    try:
        out.check_format(form, render.FORMS)
        app.check_files((), output=output)
        if action != "list":
            raise UsageError(f"scenarios {action}: write scenarios list")
        found = app.scenarios(names or ())
    except KernelcountError as error:
        out.fail(error, form, "scenarios")
    text = render.render(found, form=form, **out.screen(form, output))
    out.hand_over(text, output, "", 0)
