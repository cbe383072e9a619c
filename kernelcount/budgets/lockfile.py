"""The text of ``kernelcount.lock``: what each target launched, one entry a target, variant, setup.

It is made to be reviewed in a diff: entries are sorted, each kernel has a line of its own, and what
did not change keeps its text, comments included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcount.budgets import nodes
from kernelcount.budgets.nodes import Mapping, Node, Scalar

NAME = "kernelcount.lock"

_HEADER = """\
# What each target launches, as `kernelcount check --update` saw it. A check on the same setup says
# what has changed since.

"""
_SETUP = ("gpu", "torch", "triton", "cuda", "hip", "cublas", "cudnn", "basis")
_NEEDED = ("gpu", "torch", "basis")
_KEYS = ("target", "variant", "inputs", "setup", "kernels", "copies", "fills")
# What YAML takes for text without quotation marks, kept narrow: words of YAML's and numbers are no
# text to it.
_PLAIN = re.compile(r"[A-Za-z_][\w./=-]*(?::[\w./=-]+)*", re.ASCII)
_LONGEST_KEY = 1000  # characters; YAML reads a longer key (from 1024 on) only where it is marked
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Entry:
    """What a variant of a target launched on one setup.

    `setup` and `kernels` (name and number) are in order. `copies` and `fills` None: not known.
    `inputs`: its arguments, where another budget has the same target. `line` is where it stands.
    `whole`: it says all that is written of one, be it that something is not known.
    """

    target: str
    variant: str
    setup: tuple[tuple[str, str], ...]
    kernels: tuple[tuple[str, int], ...]
    copies: int | None = None
    fills: int | None = None
    inputs: tuple[str, ...] = ()
    line: int = 0
    whole: bool = True

    @property
    def key(self) -> tuple[str, str, tuple[str, ...], tuple[tuple[str, str], ...]]:
        """What is recorded once."""
        return self.target, self.variant, self.inputs, self.setup


def setup(pairs: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    """What is known of a setup, in the order in which it is written."""
    known = {name: value for name, value in pairs if value is not None}
    return tuple((name, known[name]) for name in _SETUP if name in known)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> list[Entry]:
    """The entries of a lock file, none where there is no such file. Raises UsageError."""
    return _entries(nodes.read(path, str(path))) if path.exists() else []


def _entries(documents: Sequence[Node]) -> list[Entry]:
    entries: list[Entry] = []
    seen: dict[object, int] = {}
    for document in documents:
        if isinstance(document, Scalar) and document.is_null:
            continue
        if not isinstance(document, nodes.Sequence):
            raise document.place.error("a lock file is a list of entries")
        for node in document.items:
            entry = _entry(nodes.mapping(node, "an entry"))
            if (first := seen.setdefault(entry.key, entry.line)) != entry.line:
                raise node.place.error(f"the same is recorded twice, first in line {first}")
            entries.append(entry)
    return entries


def _entry(node: Mapping) -> Entry:
    for key, place in node.keys.items():
        if key not in _KEYS:
            raise nodes.unknown(place, "key", key, _KEYS)
    for key in ("target", "variant", "setup", "kernels"):
        if key not in node.items:
            raise node.place.error(f"there is no {key} in this entry")
    return Entry(
        nodes.text(node.items["target"], "target"),
        nodes.text(node.items["variant"], "variant"),
        _read_setup(nodes.mapping(node.items["setup"], "setup")),
        _read_kernels(nodes.mapping(node.items["kernels"], "kernels")),
        _read_count(node.items.get("copies"), "copies"),
        _read_count(node.items.get("fills"), "fills"),
        tuple(x.text for x in nodes.texts(node.items["inputs"], "inputs"))
        if "inputs" in node.items
        else (),
        node.place.line,
        "copies" in node.items and "fills" in node.items,
    )


def _read_setup(node: Mapping) -> tuple[tuple[str, str], ...]:
    for key, place in node.keys.items():
        if key not in _SETUP:
            raise nodes.unknown(place, "key of setup:", key, _SETUP)
    for key in _NEEDED:
        if key not in node.items:
            raise node.place.error(f"setup does not say {key}")
    return setup((key, nodes.text(value, key)) for key, value in node.items.items())


def _read_kernels(node: Mapping) -> tuple[tuple[str, int], ...]:
    counts = ((name, _read_count(value, "kernels")) for name, value in node.items.items())
    return tuple(sorted((name, n) for name, n in counts if n is not None))


def _read_count(node: Node | None, what: str) -> int | None:
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return None
    word = nodes.text(node, what)
    if not re.fullmatch("[0-9]{1,15}", word):
        raise node.place.error(f"{what} must be a whole number, and this is {nodes.kind(node)}")
    return int(word)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Chunk:
    """An entry with its lines, and those above it that belong to it: comments."""

    entry: Entry
    lead: tuple[str, ...]
    lines: tuple[str, ...]


def updated(text: str, shown: str, entries: Iterable[Entry]) -> str:
    """The text of a lock file with these entries in it, and all else as it was.

    Raises UsageError where the text is none.
    """
    header, chunks, end = _chunks(text, shown)
    kept = {chunk.entry.key: chunk for chunk in chunks}
    for entry in entries:
        if entry.inputs:  # one that does not say of which arguments is of no use any more
            kept.pop((entry.target, entry.variant, (), entry.setup), None)
        old = kept.get(entry.key)
        if old is None:
            kept[entry.key] = _Chunk(entry, (), tuple(_written(entry)))
        elif replace(old.entry, line=0) != replace(entry, line=0):
            inside = tuple(x.strip() for x in old.lines if x.lstrip().startswith("#"))
            kept[entry.key] = _Chunk(entry, old.lead + inside, tuple(_written(entry)))
    lines = [*header, *(x for key in sorted(kept) for x in (*kept[key].lead, *kept[key].lines))]
    return "".join(f"{line}\n" for line in (*lines, *end))


def _chunks(text: str, shown: str) -> tuple[list[str], list[_Chunk], list[str]]:
    """The lines before the entries, the entries, and the lines after them."""
    entries = _entries(nodes.parse(text, shown))
    lines = text.removeprefix("\ufeff").splitlines()
    if not entries:
        own = [x for x in lines if x.lstrip().startswith("#") or not x.strip()]
        return own if any(own) else _HEADER.splitlines(), [], []
    starts = [entry.line - 1 for entry in entries]
    margin = lines[starts[0]].partition("-")[0]  # a list may be indented
    if margin.isspace():
        lines = [line.removeprefix(margin) for line in lines]
    if not all(lines[start].startswith("- ") for start in starts):
        # It is not in the form in which it is written here: made anew, the text is lost.
        return _HEADER.splitlines(), [_Chunk(e, (), tuple(_written(e))) for e in entries], []
    ends = [*(_lead(lines, start) for start in starts[1:]), len(lines)]
    last = _lead(lines, len(lines))
    ends[-1] = last
    first = _lead(lines, starts[0])
    head = max((i + 1 for i in range(starts[0]) if not lines[i].strip()), default=0)
    head = max(head, first)
    leads = [lines[head : starts[0]], *(lines[e:s] for e, s in zip(ends, starts[1:], strict=False))]
    chunks = [
        _Chunk(entry, tuple(lead), tuple(lines[start:end]))
        for entry, lead, start, end in zip(entries, leads, starts, ends, strict=True)
    ]
    return lines[:head], chunks, lines[last:]


def _lead(lines: Sequence[str], start: int) -> int:
    """The first of the comments and blank lines that stand right above a line."""
    while start > 0 and (lines[start - 1].startswith("#") or not lines[start - 1].strip()):
        start -= 1
    return start


def _written(entry: Entry) -> Iterator[str]:
    yield f"- target: {_quoted(entry.target)}"
    yield f"  variant: {_quoted(entry.variant)}"
    if entry.inputs:
        yield f"  inputs: [{', '.join(map(_quoted, entry.inputs))}]"
    yield f"  setup: {{{', '.join(f'{name}: {_quoted(value)}' for name, value in entry.setup)}}}"
    named = [(_quoted(name), n) for name, n in entry.kernels]
    if len(named) > 1 or any(len(name) > _LONGEST_KEY for name, _ in named):
        yield "  kernels:"
        for name, n in named:
            yield from _pair(name, n)
    else:
        yield f"  kernels: {{{', '.join(f'{name}: {n}' for name, n in named)}}}"
    yield f"  copies: {'null' if entry.copies is None else entry.copies}"
    yield f"  fills: {'null' if entry.fills is None else entry.fills}"


def _pair(name: str, n: int) -> Iterator[str]:
    if len(name) <= _LONGEST_KEY:
        yield f"    {name}: {n}"
    else:
        yield f"    ? {name}"
        yield f"    : {n}"


def _quoted(text: str) -> str:
    """The text as YAML has it: with quotation marks where it would be something else without."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"
