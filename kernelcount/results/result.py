"""What all results have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from kernelcount.model import Environment, Report, Target, sealed


@sealed
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What all results have in common.

    `report` is what all renderers see. `said`: texts that the CLI writes to stderr, such as an
    exception with the user's frames.
    """

    report: Report
    said: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether it holds the same, times included; which exception was raised is left out."""
        if type(other) is not type(self):
            return NotImplemented
        names = [f.name for f in fields(self) if f.compare]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((type(self), self.environment, self.target))

    @property
    def exit_code(self) -> int:
        """The exit code that the CLI would end with: 0, or 3 where something is not measured."""
        return self.report.exit_code

    @property
    def environment(self) -> Environment:
        """Device and versions that the figures depend on."""
        return self.report.environment

    @property
    def target(self) -> Target | None:
        """What was counted, with its inputs; None for recorded traces."""
        return self.report.target

    def render(
        self,
        format: str = "table",  # noqa: A002  as the flag is called
        *,
        width: int = 80,
        full: bool = False,
        explain: bool = False,
    ) -> str:
        """The result as the CLI writes it: table, json, markdown or csv.

        Raises UsageError for a format that there is not.
        """
        from kernelcount.render import render

        return render(self.report, format=format, width=width, full=full, explain=explain)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the CLI; unknown is None."""
        document: dict[str, Any] = json.loads(self.render("json"))
        return document

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from kernelcount.render.html import render

        return render(self.report)
