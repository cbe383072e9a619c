"""What became of budgets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from kernelcount.errors import UsageError
from kernelcount.model import Checked, Held, Status, sealed


@sealed
@dataclass(frozen=True, slots=True, eq=False)
class Checking:
    """What became of budgets: true where every limit is kept.

    `checked` holds every limit with its status; `said`: what the CLI writes to stderr.
    """

    checked: Checked
    said: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the CLI: 0; 1, broken; 2, a target failed; 3, undecided."""
        return self.checked.exit_code

    @property
    def kept(self) -> tuple[Held, ...]:
        """The limits that are kept."""
        return self._of("kept")

    @property
    def broken(self) -> tuple[Held, ...]:
        """The limits that are broken, and targets that launch otherwise than is recorded."""
        return self._of("broken")

    @property
    def undecided(self) -> tuple[Held, ...]:
        """The limits that could not be decided here, each with the reason in `why`."""
        return self._of("undecided")

    def _of(self, status: Status) -> tuple[Held, ...]:
        return tuple(held for held in self.checked.held if held.status == status)

    def __bool__(self) -> bool:
        return self.exit_code == 0

    def render(self, format: str = "table", *, width: int = 80, full: bool = False) -> str:  # noqa: A002
        """The result as the CLI writes it. Raises UsageError for a format that there is not."""
        from kernelcount.render import check

        if format not in check.FORMS:
            raise UsageError(f"there is no format {format!r}, but {', '.join(check.FORMS)}")
        return check.render(self.checked, form=format, width=width, full=full)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the CLI; unknown is None."""
        document: dict[str, Any] = json.loads(self.render("json"))
        return document

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    def __repr__(self) -> str:
        from kernelcount.render.check import summary

        return f"<Checking {summary(self.checked)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>"
