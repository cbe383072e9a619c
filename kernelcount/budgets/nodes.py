"""YAML with the place of every word: text -> nodes, or an error that names file, line and column.

What budgets and lock files need of YAML is read, and no more: mappings, lists and plain text.
Scalars stay the text that was written, so that ``1e6`` or ``2.10`` mean what they say. Aliases,
by which a page can stand for gigabytes, and tags, which can name any class, are refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelcount.errors import UsageError

_LONGEST = 60  # characters of the user's text in a message
_DEEPEST = 7  # a list of budgets, one of them, its "on", a basis, a variant, a limit, its ends


class PlacedError(UsageError):
    """An error that says in which file, line and column it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: `line` and `column` count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def error(self, text: str) -> PlacedError:
        """The error that something is wrong here."""
        return PlacedError(f"{self.file}:{self.line}:{self.column}: {text}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word, as it was written. `plain`: without quotation marks, so that it may be a number."""

    place: Place
    text: str
    plain: bool = True

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there, or YAML's word for it."""
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values, in order; `keys` has the place of each key. No key stands twice."""

    place: Place
    items: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    place: Place
    items: list[Node] = field(default_factory=list)


Node = Scalar | Mapping | Sequence


def read(path: Path, shown: str) -> list[Node]:
    """The documents of a YAML file, none for an empty one; `shown` is its name in messages.

    Raises UsageError for what cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown}:{line}: this is no UTF-8 text") from None
    return parse(text, shown)


def parse(text: str, shown: str) -> list[Node]:
    """The documents of a YAML text. Raises UsageError that says what is wrong where."""
    import yaml

    builder = _Builder(shown)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(shown, mark.line + 1, mark.column + 1) if mark else Place(shown)
        raise place.error(_in_words(error)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(shown, before.count("\n") + 1, len(before) - before.rfind("\n"))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        raise place.error(f"the character U+{code:04X} may not stand in YAML") from None
    except yaml.YAMLError as error:
        raise Place(shown).error(f"this is no YAML: {str(error).splitlines()[0]}") from None
    return builder.documents


def _in_words(error: Any) -> str:
    problem = str(error.problem or error.context or "this is no YAML")
    if "'\\t'" in problem:
        return "a tab stands here: YAML is indented by spaces"
    where = f"{error.context}: " if error.context and error.context != problem else ""
    return f"{where}{problem}"


class _Builder:
    """Makes nodes of a parser's events, without recursion: depth costs no stack."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.documents: list[Node] = []
        self._open: list[Mapping | Sequence] = []
        self._key: list[Scalar | None] = []  # that waits for its value, for each that is open

    def take(self, event: Any) -> None:
        """Add what an event says. Raises UsageError for what is not read."""
        import yaml

        place = Place(self.shown, event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.AliasEvent):
            raise place.error(f"*{event.anchor}: aliases are not read here; write it out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise place.error(f"{_short(event.tag)}: tags are not read here")
        if isinstance(event, yaml.ScalarEvent):
            self._put(Scalar(place, event.value, event.style is None))
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin(Mapping(place))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin(Sequence(place))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._open.pop()
            self._key.pop()

    def _begin(self, node: Mapping | Sequence) -> None:
        self._put(node)
        if len(self._open) == _DEEPEST:
            raise node.place.error("this is nested deeper than anything that is read here")
        self._open.append(node)
        self._key.append(None)

    def _put(self, node: Node) -> None:
        if not self._open:
            self.documents.append(node)
            return
        parent = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
            return
        key = self._key[-1]
        if key is not None:
            parent.items[key.text] = node
            self._key[-1] = None
            return
        if not isinstance(node, Scalar):
            raise node.place.error("a key must be a word")
        if node.text in parent.keys:
            first = parent.keys[node.text].line
            raise node.place.error(f"{_short(node.text)} stands twice, first in line {first}")
        parent.keys[node.text] = node.place
        self._key[-1] = node


# ── what the readers of nodes share ──────────────────────────────────────────────────────────────


def mapping(node: Node, what: str) -> Mapping:
    """The node, which must be a mapping. Raises UsageError; `what` says of it what it is."""
    if isinstance(node, Mapping):
        return node
    raise node.place.error(f"{what} must be keys with values, and this is {kind(node)}")


def text(node: Node, what: str) -> str:
    """The words of a node, which must be a scalar and not empty. Raises UsageError."""
    if isinstance(node, Scalar) and not node.is_null and node.text.strip():
        return node.text
    raise node.place.error(f"{what} must be a word, and this is {kind(node)}")


def kind(node: Node) -> str:
    """What a node is, in words."""
    if isinstance(node, Scalar):
        return "empty" if node.is_null or not node.text.strip() else repr(_short(node.text))
    return "a list" if isinstance(node, Sequence) else "keys with values"


def truth(node: Node, what: str) -> bool:
    """``true`` or ``false``. Raises UsageError for another word."""
    word = text(node, what).lower()
    if word not in ("true", "false"):
        raise node.place.error(f"{what} is true or false, and not {word!r}")
    return word == "true"


def texts(node: Node, what: str) -> Iterator[Scalar]:
    """The words of a list, or the one word. Raises UsageError."""
    for item in node.items if isinstance(node, Sequence) else [node]:
        text(item, what)
        assert isinstance(item, Scalar)
        yield item


def unknown(place: Place, what: str, word: str, known: Collection[str]) -> PlacedError:
    """The error that there is no such word, with the nearest one, or else all that there are."""
    near = difflib.get_close_matches(word.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return place.error(f"there is no {what} {_short(word)}; {hint}")


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
