"""``kernelcount read``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcount.cli.options import CountForm, FullCount, Output, Save
from kernelcount.errors import KernelcountError


def read(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Kineto/Chrome traces, .gz too, saved captures."),
    ],
    region: Annotated[
        str | None,
        typer.Option(
            "--region", metavar="NAME", help="Only kernels launched while this annotation was open."
        ),
    ] = None,
    form: CountForm = "table",
    output: Output = None,
    save: Save = None,
    full: FullCount = False,
) -> None:
    """Count what recorded traces hold."""
    from kernelcount import app
    from kernelcount.cli import output as out

    try:
        out.check_format(form)
        app.check_files(files, output=output, save=save)
        with out.status() as say:
            answer = app.read(
                files,
                region,
                lambda path, done, size: say(
                    f"reading {path.name}: {100 * done // max(size, 1)} %"
                ),
            )
    except KernelcountError as error:
        out.fail(error, form, "read")
    out.show(app.save(answer, save) if save else answer, form, output, full=full)
