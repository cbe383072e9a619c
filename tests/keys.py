"""Reads documents as docs/json.md describes them: each key, its unit, what it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parent.parent / "docs" / "json.md"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


UNITS = {
    "text": lambda value: isinstance(value, str),
    "yes or no": lambda value: isinstance(value, bool),
    "share": lambda value: _is_number(value) and 0 <= value <= 1,
    **dict.fromkeys(("number", "ns", "bytes", "operations"), lambda value: type(value) is int),
    **dict.fromkeys(("factor", "figure", "bytes/s", "operations/s"), _is_number),
}


@dataclass(frozen=True)
class Key:
    """A row of a table: what the key holds, and whether it is there at times only."""

    unit: str
    section: str
    listed: bool
    mapping: bool
    at_times: bool


_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)
_HOLDS = re.compile(r"^(list of )?(?:\[.+?\]\(#(.+?)\)|(.+?))( by \w+)?$")


@cache
def sections() -> dict[str, dict[str, Key]]:
    """The tables of docs/json.md by the anchors of their headings."""
    text = DOCUMENT.read_text()
    found: dict[str, dict[str, Key]] = {}
    for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        assert anchor not in found, f"two sections are called {heading}"
        rows = _ROW.findall(body)
        found[anchor] = {name: _key(unit, meaning) for name, unit, meaning in rows}
        assert len(found[anchor]) == len(rows), f"{heading} has a key twice"
    return found


def _key(unit: str, meaning: str) -> Key:
    holds = _HOLDS.match(unit)
    assert holds, unit
    listed, section, plain, mapping = holds.groups()
    assert plain is None or plain in UNITS, f"{unit} is no unit"
    return Key(plain, section, bool(listed), bool(mapping), meaning.startswith("Only "))


class Reader:
    """Holds documents against the tables; `met`: keys that had a value, `left_out`: had not."""

    def __init__(self) -> None:
        self.met: set[tuple[str, str]] = set()
        self.left_out: set[tuple[str, str]] = set()

    def read(self, value: Any, anchor: str, at: str) -> None:
        """Raise AssertionError for a key, a unit, or a kind of value that is not as documented."""
        assert isinstance(value, dict), f"{at} is no object"
        keys = sections()[anchor]
        assert not (unknown := set(value) - set(keys)), f"{at}: {unknown} not in docs/json.md"
        for name in set(keys) - set(value) if value else ():
            assert keys[name].at_times, f"{at} has no {name}"
            self.left_out.add((anchor, name))
        for name, inner in value.items():
            if inner is not None:
                self._read(inner, keys[name], f"{at}.{name}", (anchor, name))

    def _read(self, value: Any, key: Key, at: str, where: tuple[str, str]) -> None:
        if key.listed:
            assert isinstance(value, list), f"{at} is no list"
        elif key.mapping:
            assert isinstance(value, dict), f"{at} is no object"
            value = [inner for inner in value.values() if inner is not None]
        else:
            value = [value]
        self.met |= {where} if value else set()
        for inner in value:
            if key.section:
                self.read(inner, key.section, at)
            else:
                assert UNITS[key.unit](inner), f"{at}: {inner!r} is not in {key.unit}"
