"""``kernelcount doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcount.cli.options import Output, ShortForm
from kernelcount.errors import KernelcountError


def doctor(
    atlas: Annotated[
        Path | None,
        typer.Option(
            "--record-atlas",
            metavar="FILE",
            help="Record how many kernels library calls launch on the GPU here, in a minute or two;"
            " KERNELCOUNT_ATLAS=FILE then has --device paper count by it.",
        ),
    ] = None,
    form: ShortForm = "table",
    output: Output = None,
) -> None:
    """Say what can be measured on this machine, what cannot, and why; and what its GPU reaches."""
    from kernelcount import app
    from kernelcount.cli import output as out
    from kernelcount.render import doctor as render

    try:
        out.check_format(form, render.FORMS)
        app.check_files((), **{"record-atlas": atlas, "output": output})
        with out.status() as progress:
            diagnosis = app.doctor(atlas, progress)
    except KernelcountError as error:
        out.fail(error, form, "doctor")
    text = render.render(diagnosis, form=form, **out.screen(form, output))
    out.hand_over(text, output, diagnosis.said, diagnosis.code)
