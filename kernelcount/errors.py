"""The errors that kernelcount raises on purpose.

KernelcountError            shown as a few lines on stderr; `code` is the exit code
├── UsageError              2  a flag, a target or its inputs are not what they must be
├── UnreadableError         2  a file holds nothing that can be read
├── UserCodeError           2  the user's own code raised; carries the user's frames
├── NotMeasuredError        3  no device, no memory, no profiler: the count stays unknown
└── Interrupted           130  SIGINT, SIGTERM or the user's own KeyboardInterrupt
"""

from __future__ import annotations


class KernelcountError(Exception):
    """Root of all errors raised on purpose.

    The text is written for the person at the terminal and says what to do next.
    """

    code = 2

    def __init__(self, text: str, code: int | None = None) -> None:
        """`code`: the exit code, where it is not the class's own."""
        super().__init__(text)
        if code is not None:
            self.code = code


class UsageError(KernelcountError):
    """A flag, a target or its inputs are not what they must be."""


class UnreadableError(KernelcountError):
    """A file holds nothing that can be read as a trace or a saved capture."""


class UserCodeError(KernelcountError):
    """The user's own code raised. The text holds the user's frames, ours left out."""


class NotMeasuredError(KernelcountError):
    """Nothing is wrong with the question, but it could not be measured here."""

    code = 3


class Interrupted(KernelcountError):
    """The run was ended by SIGINT or SIGTERM, or the user's code raised KeyboardInterrupt."""

    code = 130
