"""The command line: parse, call `app`, print, exit. One file a command."""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn

import typer

from kernelcount import __version__
from kernelcount.cli import output
from kernelcount.cli.check import check
from kernelcount.cli.diff import diff
from kernelcount.cli.doctor import doctor
from kernelcount.cli.read import read
from kernelcount.cli.run import run
from kernelcount.cli.scenarios import scenarios
from kernelcount.errors import Interrupted, UsageError

_SUMMARY = (
    "Count the GPU kernels that a PyTorch function launches, in eager and under torch.compile."
)
_COMMANDS = (run, read, diff, check, scenarios, doctor)

# Plain help: rich would be imported for it, and that takes longer than all the rest.
app = typer.Typer(
    name="kernelcount",
    help=_SUMMARY,
    epilog="Exit codes: 0 done, 1 a budget is broken, 2 usage or input, 3 not measured or in part, "
    "130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in _COMMANDS:
    app.command()(_command)


def _version(wanted: bool) -> None:
    if wanted:
        output.write(f"kernelcount {__version__}\n")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Count the GPU kernels that a PyTorch function launches, in eager and under torch.compile."""


def main() -> None:
    """The entry point. SIGTERM ends a run as Ctrl-C does: workers are ended, exit code 130."""
    output.have_standard_streams()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # What the caller has switched off, as nohup does, stays off.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupted)
    arguments = sys.argv[1:]
    try:
        code = app(arguments, standalone_mode=False)
    except (_Stopped, KeyboardInterrupt, typer.Abort):
        _fail(Interrupted("interrupted"), arguments)
    except _UserError as error:
        if not arguments:
            sys.stderr.write(f"{error.format_message()}\n")  # the help
            sys.exit(UsageError.code)
        _fail(UsageError(f"{error.format_message()}\n{_usage(arguments)}"), arguments)
    sys.exit(code if isinstance(code, int) else 0)


# click's base class of what is said of flags; typer has click within itself or beside it.
_UserError: type[Any] = typer.BadParameter.__mro__[2]


class _Stopped(BaseException):
    """Raised by a signal. typer has its own way with KeyboardInterrupt, and says nothing."""


def _interrupted(*_: Any) -> None:
    # Once is enough: a second one must not stop the clearing up.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    raise _Stopped


def _fail(error: Interrupted | UsageError, arguments: list[str]) -> NoReturn:
    """Tell an error that came before or beside a command's own."""
    output.fail(error, _format(arguments), _command_in(arguments))


def _usage(arguments: list[str]) -> str:
    words = ("kernelcount", _command_in(arguments), "--help")
    return f"{' '.join(filter(None, words))} shows what there is"


def _command_in(arguments: list[str]) -> str:
    commands = {command.__name__ for command in _COMMANDS}
    return next((a for a in arguments if a in commands), "")


def _format(arguments: list[str]) -> str:
    """The ``--format`` asked for, as far as it can be told where the rest is wrong."""
    for i, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--format":
            return value if equals else "".join(arguments[i + 1 : i + 2])
    return ""
