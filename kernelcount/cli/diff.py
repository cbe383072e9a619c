"""``kernelcount diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelcount.cli.options import Output, PipelineForm
from kernelcount.differences.allowances import LIMITS
from kernelcount.errors import KernelcountError


def _limit(name: str) -> Any:
    metavar = "P%" if name == "slowdown" else "+N"
    return typer.Option(f"--max-{name}", metavar=metavar, help=LIMITS[name].summary)


def diff(
    before: Annotated[
        Path, typer.Argument(metavar="A", help="A trace, saved captures, or a kernelcount.lock.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B", help="What to hold against it.")],
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="NAME", help="Only this variant of files with several."),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region", metavar="NAME", help="Of traces: only kernels launched in this annotation."
        ),
    ] = None,
    kernels: Annotated[str | None, _limit("kernels")] = None,
    launches: Annotated[str | None, _limit("launches")] = None,
    copies: Annotated[str | None, _limit("copies")] = None,
    fills: Annotated[str | None, _limit("fills")] = None,
    generated: Annotated[str | None, _limit("generated")] = None,
    library: Annotated[str | None, _limit("library")] = None,
    transfers: Annotated[str | None, _limit("transfers")] = None,
    breaks: Annotated[str | None, _limit("breaks")] = None,
    syncs: Annotated[str | None, _limit("syncs")] = None,
    memory: Annotated[str | None, _limit("memory")] = None,
    slowdown: Annotated[str | None, _limit("slowdown")] = None,
    allow_undecided: Annotated[
        bool,
        typer.Option("--allow-undecided", help="Exit 0 also where a limit cannot be decided."),
    ] = False,
    form: PipelineForm = "table",
    output: Output = None,
    full: Annotated[bool, typer.Option("--full", help="Also what did not change.")] = False,
) -> None:
    """Say what changed between two captures, traces or lock files; exit 1 beyond the limits."""
    from kernelcount import app
    from kernelcount.cli import output as out
    from kernelcount.differences import allowances as allowed
    from kernelcount.render import diff as render

    given = {
        "kernels": kernels,
        "launches": launches,
        "copies": copies,
        "fills": fills,
        "generated": generated,
        "library": library,
        "transfers": transfers,
        "breaks": breaks,
        "syncs": syncs,
        "memory": memory,
        "slowdown": slowdown,
    }
    try:
        out.check_format(form, render.FORMS)
        app.check_files((before, after), output=output)
        allowances = allowed.parse(given)
        with out.status() as say:
            found = app.diff(
                (before, after),
                allowances,
                variants=tuple(variant or ()),
                region=region,
                allow_undecided=allow_undecided,
                progress=lambda path, done, size: say(
                    f"reading {path.name}: {100 * done // max(size, 1)} %"
                ),
            )
    except KernelcountError as error:
        out.fail(error, form, "diff")
    text = render.render(found, form=form, full=full, **out.screen(form, output))
    said = "\n".join(f"{p.name}: {p.unknown}" for p in found.pairs if p.unknown)
    out.hand_over(text, output, said, found.exit_code)
