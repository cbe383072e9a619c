"""What changed between two files, in every format."""

from __future__ import annotations

from kernelcount.model import Diff
from kernelcount.render import github, junit
from kernelcount.render.diff import csv, json, markdown, table
from kernelcount.render.diff.said import findings

FORMS = ("table", "json", "markdown", "csv", "github", "junit")


def render(
    diff: Diff, *, form: str, width: int = 80, colour: bool = False, full: bool = False
) -> str:
    """Turn what changed into text in one of `FORMS`, ended by a newline.

    `full` shows what did not change, too, and names as they are.
    """
    if form == "table":
        return table.render(diff, width=width, colour=colour, full=full)
    if form == "markdown":
        return markdown.render(diff, full=full)
    if form == "github":
        return github.render(findings(diff))
    if form == "junit":
        return junit.render(findings(diff))
    return csv.render(diff) if form == "csv" else json.render(diff)
