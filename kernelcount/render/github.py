"""GitHub's annotations: workflow commands in the log, shown at lines of a pull request.

They are written as its documentation on workflow commands says; what a name holds can neither end
one nor begin another. What is kept has none, nor what may be undecided.
"""

from __future__ import annotations

import re

from kernelcount.model import Place
from kernelcount.origins.callers import from_here
from kernelcount.render.findings import Finding, Findings
from kernelcount.render.wording import clean

_LEVELS = {"broken": "error", "undecided": "warning"}

# Of a message, and of a property, which a colon or a comma would end (actions/toolkit, command.ts).
_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_MESSAGE, ":": "%3A", ",": "%2C"}


def render(findings: Findings) -> str:
    """An annotation at each place of what is not kept, and a line that sums all up."""
    lines = [line for finding in findings.every for line in _annotations(finding)]
    return "\n".join((*lines, _plain(findings.summary))) + "\n"


def _annotations(finding: Finding) -> list[str]:
    level = _LEVELS.get(finding.status)
    if level is None or (finding.status == "undecided" and finding.allowed):
        return []
    title = f"{finding.group}, {finding.name}: {finding.status}"
    return [_command(level, place, title, finding) for place in finding.places or (None,)]


def _command(level: str, place: Place | None, title: str, finding: Finding) -> str:
    # GitHub knows the files of a repository by their names in it, where a job begins.
    properties = {"file": from_here(place.file), "line": str(place.line)} if place else {}
    properties["title"] = title
    written = ",".join(f"{k}={_escaped(clean(v), _PROPERTY)}" for k, v in properties.items())
    message = "\n".join(clean(line) for line in finding.text.split("\n"))
    return f"::{level} {written}::{_escaped(message, _MESSAGE)}"


def _escaped(text: str, table: dict[str, str]) -> str:
    return re.sub("[%\r\n:,]", lambda found: table.get(found[0], found[0]), text)


def _plain(text: str) -> str:
    """A line that is no command."""
    return clean(text).replace("::", ": :").replace("##[", "## [")  # the older form of one
