"""JUnit's XML, as Jenkins, GitLab and Azure Pipelines read it.

What is broken is a failure, what is undecided an error, or skipped where that is allowed. The
schema is Jenkins' (junit-10.xsd of its xUnit plugin), which the others take too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from kernelcount.render.findings import Finding, Findings
from kernelcount.render.wording import clean

# What XML 1.0 has no way to write, also not as a reference; `clean` leaves none but these two.
_NO_XML = re.compile("[\ufffe\uffff]")


def render(findings: Findings) -> str:
    """A test suite for each group, and a test case for each limit."""
    name = f"kernelcount {findings.command}"
    top = ET.Element("testsuites", {"name": name, **_counts(findings.every)})
    for group, own in findings.groups().items():
        counts = _counts(own)
        counts["skipped"] = str(sum(_tag(f) == "skipped" for f in own))
        suite = ET.SubElement(top, "testsuite", {"name": _text(group), **counts})
        for finding in own:
            _case(suite, finding)
    ET.indent(top)
    body = ET.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _counts(findings: Sequence[Finding]) -> dict[str, str]:
    tags = [_tag(f) for f in findings]
    return {
        "tests": str(len(tags)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
    }


def _tag(finding: Finding) -> str:
    """The element that says what came of it; none where it is kept."""
    if finding.status == "undecided":
        return "skipped" if finding.allowed else "error"
    return "failure" if finding.status == "broken" else ""


def _case(suite: ET.Element, finding: Finding) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=_text(finding.group), name=_text(finding.name)
    )
    if tag := _tag(finding):
        said = ET.SubElement(case, tag, message=_text(finding.message))
        if tag != "skipped":  # which has no type
            said.set("type", finding.status)
        where = [f"{p.file}:{p.line}" for p in finding.places]
        said.text = "\n".join(map(_text, (*finding.text.split("\n"), *where)))


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", clean(text))
