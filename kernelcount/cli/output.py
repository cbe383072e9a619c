"""What the commands share: where results go, how errors are told, how progress is shown."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from kernelcount.errors import KernelcountError, UsageError

if TYPE_CHECKING:
    from kernelcount.app import Answer

_QUIET = 2.0  # seconds before progress is shown: shorter runs need none
_EVERY = 5.0  # seconds between lines where stderr is no terminal
_REDRAW = 0.1


def have_standard_streams() -> None:
    """Give a place to the standard streams that the caller has closed.

    Their numbers would go to the next files that are opened, a worker's pipe among them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def show(
    answer: Answer,
    form: str,
    output: Path | None,
    *,
    full: bool = False,
    explain: bool = False,
    plotted: bool = False,
) -> NoReturn:
    """Print the report, or write it to `output`; say the rest on stderr; exit with its code.

    `plotted`: with a plot of the sweep below it, which goes to the terminal in any case.
    """
    from kernelcount.render import render

    colour = form == "table" and output is None and _colour()
    options = {"colour": colour, "full": full, "explain": explain}
    text = render(answer.report, format=form, width=_width(output), **options)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            problem = f"--output {output}: {error.strerror}"
            answer = replace(answer, unwritten=(*answer.unwritten, problem))
            output = None  # better here than nowhere
    shown = [text] if output is None else []
    if plotted:
        answer, drawn = _plot(answer)
        shown += [drawn] if drawn else []
    for line in (*answer.said, *answer.unwritten):
        tell(line)
    if shown:
        write("\n".join(shown))
    sys.exit(answer.exit_code)


def _plot(answer: Answer) -> tuple[Answer, str]:
    """The plot for the terminal; where there is none, the answer says why."""
    from kernelcount import app
    from kernelcount.render.plot import terminal

    drawn = terminal(answer.report, width=_width(None), colour=_colour())
    return (answer, drawn) if drawn else (app.undrawn(answer), "")


def hand_over(text: str, output: Path | None, said: str, code: int) -> NoReturn:
    """Print a text, or write it to `output`; say the rest on stderr; exit with the code."""
    if said:
        tell(said)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            tell(f"--output {output}: {error.strerror}")
            code, output = UsageError.code, None
    if output is None:
        write(text)
    sys.exit(code)


def screen(form: str, output: Path | None) -> dict[str, Any]:
    """The width and colour in which a text is wanted."""
    colour = form == "table" and output is None and _colour()
    return {"width": _width(output), "colour": colour}


def write(text: str) -> None:
    """Text on stdout as UTF-8, whatever the locale; a closed pipe is no error."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError as error:
        _silence(sys.stdout)
        tell(f"stdout: {error.strerror}")
        sys.exit(UsageError.code)


def tell(text: str) -> None:
    """A few lines on stderr, free of control bytes and commands that a file may have held."""
    first, *rest = text.splitlines() or [""]
    _note("\n".join((_plain(f"kernelcount: {first}"), *map(_plain, rest))) + "\n")


def _plain(line: str) -> str:
    """A line that does nothing to a terminal, and is no command in a log of GitHub Actions.

    Its runner takes for one what begins with ``::`` behind any space, and ``##[`` anywhere.
    """
    from kernelcount.render.wording import clean

    line = clean(line).replace("##[", "## [")
    return f"kernelcount: {line}" if line.lstrip().startswith("::") else line


def _note(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # nobody listens: the result and the exit code say it too
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Have no more errors from a stream whose reader is gone or whose disk is full."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(error: KernelcountError, form: str, command: str) -> NoReturn:
    """Tell an error on stderr, as a document on stdout too where JSON was asked for; exit."""
    tell(str(error))
    if form == "json":
        from kernelcount.render.json import error_document

        write(error_document(command, error.code, str(error)))
    sys.exit(error.code)


def check_format(form: str, forms: Collection[str] | None = None) -> None:
    """Raises UsageError for a format that there is not among `forms`, all there are by default."""
    from kernelcount.render import FORMATS

    forms = forms or FORMATS
    if form not in forms:
        near = difflib.get_close_matches(form, forms, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"--format {form!r} is not one of {', '.join(forms)}{hint}")


def _colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _width(output: Path | None) -> int:
    return shutil.get_terminal_size((80, 24)).columns if output is None else 80


class Status:
    """One line of progress on stderr: redrawn on a terminal, now and then elsewhere."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._next = self._start + (_REDRAW if sys.stderr.isatty() else _QUIET)
        self._drawn = False

    def say(self, text: str) -> None:
        """Show `text`, if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        if sys.stderr.isatty():
            _note(f"\r\x1b[2K{_plain(text)} ({now - self._start:.0f} s)")
            self._next, self._drawn = now + _REDRAW, True
        else:
            _note(f"{_plain(text)} ({now - self._start:.0f} s)\n")
            self._next = now + _EVERY

    def clear(self) -> None:
        """Take the line away again."""
        if self._drawn:
            _note("\r\x1b[2K")


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Progress while something is done."""
    line = Status()
    try:
        yield line.say
    finally:
        line.clear()
