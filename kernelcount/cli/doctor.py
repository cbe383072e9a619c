"""``kernelcount doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcount.errors import KernelcountError


def doctor(
    record: Annotated[
        Path | None,
        typer.Option(
            "--record-atlas",
            metavar="FILE",
            help="Record how many kernels library calls launch on the GPU here.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cuda, cuda:1 or xpu.")] = None,
) -> None:
    """Tell what can be counted on this machine, or record an atlas of its GPU's library calls."""
    from kernelcount import app
    from kernelcount.cli import output as out

    try:
        if record is None:
            out.write("".join(f"{line}\n" for line in app.diagnose()))
            return
        with out.status() as progress:
            count = app.record_atlas(record, device, progress)
    except KernelcountError as error:
        out.fail(error, "table", "doctor")
    out.write(f"{record}: {count} calls recorded\n")
