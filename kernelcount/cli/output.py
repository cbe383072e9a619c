"""What the commands share: where results go, how errors are told, how progress is shown."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from kernelcount.app import Answer
from kernelcount.errors import KernelcountError, UsageError

NARROWEST, WIDEST = 40, 120
_QUIET = 2.0  # seconds before progress is shown: shorter runs need none
_EVERY = 5.0  # seconds between lines where stderr is no terminal
_REDRAW = 0.1


def show(answer: Answer, form: str, output: Path | None, *, full: bool = False) -> NoReturn:
    """Print the report, or write it to `output`; say the rest on stderr; exit with its code."""
    from kernelcount.render import render

    colour = form == "table" and output is None and _colour()
    text = render(answer.report, format=form, width=_width(output), colour=colour, full=full)
    for line in answer.said:
        tell(line)
    if output is None:
        write(text)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            fail(UsageError(f"--output {output}: {error.strerror}"), "table", "")
    sys.exit(answer.report.exit_code)


def write(text: str) -> None:
    """Text on stdout as UTF-8, whatever the locale; a closed pipe is no error."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(text: str) -> None:
    """A few lines on stderr, free of control bytes that a file may have held."""
    from kernelcount.render.wording import clean

    lines = [clean(line) for line in text.splitlines()]
    sys.stderr.write("kernelcount: " + "\n".join(lines) + "\n")


def fail(error: KernelcountError, form: str, command: str) -> NoReturn:
    """Tell an error on stderr, as a document on stdout too where JSON was asked for; exit."""
    if form == "json":
        from kernelcount.render.json import error_document

        write(error_document(command, error.code, str(error)))
    tell(str(error))
    sys.exit(error.code)


def check_format(form: str) -> None:
    """Raises UsageError for a format that there is not."""
    from kernelcount.render import FORMATS

    if form not in FORMATS:
        raise UsageError(f"--format {form!r} is not one of {', '.join(FORMATS)}")


def _colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _width(output: Path | None) -> int:
    columns = shutil.get_terminal_size((80, 24)).columns if output is None else 80
    return max(NARROWEST, min(columns, WIDEST))


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
            sys.stderr.write(f"\r\x1b[2K{text} ({now - self._start:.0f} s)")
            self._next, self._drawn = now + _REDRAW, True
        else:
            sys.stderr.write(f"{text} ({now - self._start:.0f} s)\n")
            self._next = now + _EVERY
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away again."""
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Progress while something is done."""
    line = Status()
    try:
        yield line.say
    finally:
        line.clear()
