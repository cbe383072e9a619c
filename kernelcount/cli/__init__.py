"""The command line: parse, call `app`, print, exit. One file a command."""

from __future__ import annotations

import signal
import sys
from typing import Any

import typer

from kernelcount import __version__
from kernelcount.cli.doctor import doctor
from kernelcount.cli.read import read
from kernelcount.cli.run import run

_SUMMARY = (
    "Count the GPU kernels that a PyTorch function launches, in eager and under torch.compile."
)

# Plain help: rich would be imported for it, and that takes longer than all the rest.
app = typer.Typer(
    name="kernelcount",
    help=_SUMMARY,
    epilog="Exit codes: 0 done, 1 budget broken, 2 usage or input, 3 not measured or in part,"
    " 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(read)
app.command()(doctor)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kernelcount {__version__}\n")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Count the GPU kernels that a PyTorch function launches, in eager and under torch.compile."""


def _terminated(*_: Any) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """The entry point. SIGTERM ends a run as Ctrl-C does: workers are ended, exit code 130."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
