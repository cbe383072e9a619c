"""What Jenkins' schema of JUnit's XML asks of a document (junit-10.xsd of its xUnit plugin).

An element has its children in this order, each so often, and of attributes none but these; those
marked with ``!`` must be there.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

_SUITE = "name! tests! failures errors time disabled skipped timestamp hostname id package"
_SAID = ("", "type message")

# Children as a regular expression over their tags, each followed by a blank.
SCHEMA: dict[str, tuple[str, str]] = {
    "testsuites": ("(testsuite )*", "name time tests failures disabled errors"),
    "testsuite": ("(properties )?(testcase )*(system-out )?(system-err )?", _SUITE),
    "testcase": (
        "(skipped )?(error )*(failure )*(system-out )*(system-err )*",
        "name! classname! assertions time status",
    ),
    "failure": _SAID,
    "error": _SAID,
    "skipped": ("", "message"),
}


def faults(top: ET.Element) -> list[str]:
    """What of a document is not as the schema says, and counts that are not those of its cases."""
    if top.tag != "testsuites":
        return [f"the top is {top.tag}"]
    found = [fault for element in top.iter() for fault in _faults(element)]
    for element in [top, *top.findall("testsuite")]:
        cases = [*element.iter("testcase")]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            number = sum(case.find(tag) is not None for case in cases)
            if element.get(name, str(number)) != str(number):
                found.append(f"{element.tag} {name}={element.get(name)}, and there are {number}")
        if element.get("tests") != str(len(cases)):
            found.append(f"{element.tag} tests={element.get('tests')} of {len(cases)}")
        names = [(case.get("classname"), case.get("name")) for case in cases]
        found += ["a case stands twice"] if len(set(names)) < len(names) else []
    return found


def _faults(element: ET.Element) -> list[str]:
    if element.tag not in SCHEMA:
        return [f"there is no {element.tag}"]
    children, attributes = SCHEMA[element.tag]
    known, own = attributes.split(), set(element.attrib)
    needed = {a.removesuffix("!") for a in known if a.endswith("!")}
    found = [f"{element.tag} has {a}" for a in own - {a.removesuffix("!") for a in known}]
    found += [f"{element.tag} lacks {a}" for a in needed - own]
    if not re.fullmatch(children, "".join(f"{child.tag} " for child in element)):
        found.append(f"{element.tag} has {[child.tag for child in element]}")
    return found
