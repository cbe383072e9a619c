"""Renderers: a report in, a text out. They neither print, measure, decide nor exit.

A format is a file of this folder and its row in `FORMATS`; the choices of ``--format`` come from
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from kernelcount.errors import UsageError
from kernelcount.model import Report


@dataclass(frozen=True, slots=True)
class Format:
    """What a format is good for, and which options of `render` it takes."""

    summary: str
    options: tuple[str, ...] = ()


FORMATS: dict[str, Format] = {
    "table": Format("for a person at a terminal", ("width", "colour", "full", "explain")),
    "json": Format("everything, for programs"),
    "markdown": Format("for a pull request or an issue", ("full", "explain")),
    "csv": Format("a line for each variant, for a spreadsheet"),
}


def render(
    report: Report,
    *,
    format: str,  # noqa: A002 (as the flag is called)
    width: int = 80,
    colour: bool = False,
    full: bool = False,
    explain: bool = False,
) -> str:
    """Turn the report into text in one of `FORMATS`, ended by a newline.

    Only the module of that format is loaded. Raises `UsageError` for a format that there is not.
    """
    if format not in FORMATS:
        raise UsageError(f"There is no format {format!r}. Choose one of: {', '.join(FORMATS)}.")
    given = {"width": width, "colour": colour, "full": full, "explain": explain}
    module = import_module(f"{__name__}.{format}")
    text: str = module.render(report, **{k: given[k] for k in FORMATS[format].options})
    return text
