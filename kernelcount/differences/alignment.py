"""Which row of one capture is which row of another.

Rows of one name and op are the same. Inductor numbers its kernels as it writes them, so that one
more in front renames all that follow (``triton_poi_fused_add_1`` was ``..._0``): kernels that fuse
the same ops are taken in the order in which they first ran, and of the ways to pair them the one is
chosen in which most of what is known of them agrees: bytes, launch configuration, how often they
ran, their number last. What is left over is paired where as many rows are left on both sides that
compute the same ops of the same lines, or that one op launched: another kernel does the same now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from kernelcount.conclusions.details import Detail, of_rows
from kernelcount.model import Capture, Row
from kernelcount.origins.sources import Key, key_of

# torch/_inductor/codegen: triton.py and simd.py end a kernel's name with a running number, cpp.py
# and its profiling begin it with that of the graph, too.
_NUMBERED = re.compile(r"(?:graph_\d+_)?((?:triton|cpp)_\w*?)_?(\d+)")

_FACT, _NUMBER = 4, 1  # a fact of the work weighs more than any number in its name


Origins = frozenset[tuple[str, str | None, int | None, str | None, str]]
"""Ops, each with the name of its file, its line, its module and its phase."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A row and what is known of it; `place` is where it stands among its own.

    `origins`: what it computes, empty where that is not known.
    """

    place: int
    row: Row
    detail: Detail
    origins: Origins = frozenset()

    @property
    def key(self) -> Hashable:
        """What rows must share to be the same, the number of a generated kernel aside."""
        stem, number = numbered(self.row.name)
        label = None if number is not None else self.row.label
        return self.row.activity, stem, label


def numbered(name: str) -> tuple[str, int | None]:
    """The name without the number that Inductor gave it, and that; None for any other name."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


def align(
    before: Capture, after: Capture, *, ordered: bool = True
) -> list[tuple[Row | None, Row | None]]:
    """Rows of both, in the order of `after`, those that are gone where they were.

    `ordered`: both have their rows in the order in which they ran; else a generated kernel's number
    says which comes first.
    """
    ours, theirs = _items(before, ordered), _items(after, ordered)
    found: dict[int, int] = {}  # the place of a row after -> that of its row before
    for key in (_by_key, _by_name, _by_origin, _by_op):
        taken = set(found.values())
        left = [i for i in ours if i.place not in taken]
        new = [i for i in theirs if i.place not in found]
        found.update(key(left, new))
    return _merged(ours, theirs, found)


def _items(capture: Capture, ordered: bool) -> list[_Item]:
    rows = list(zip(capture.rows(), of_rows(capture), strict=True))
    if not ordered:
        rows.sort(key=lambda pair: (numbered(pair[0].name)[1] or 0, pair[0].name))
    origins = _origins(capture)
    return [
        _Item(place, row, detail, origins.get((row.name, row.label, row.activity), frozenset()))
        for place, (row, detail) in enumerate(rows)
    ]


def _origins(capture: Capture) -> dict[Key, Origins]:
    """What the records of each row compute, as far as it is known of all of them."""
    records, known = capture.records, capture.provenance
    found: dict[Key, set[tuple[str, str | None, int | None, str | None, str]]] = {}
    untold: set[Key] = set()
    sources = known.sources if known and len(known.sources) == len(records) else ()
    for work, source in zip(records.work, sources, strict=False):
        key = key_of(records.works[work])
        untold |= set() if source is not None and source.origins else {key}
        for origin in source.origins if source is not None else ():
            file = PurePath(origin.place.file).name if origin.place else None
            line = origin.place.line if origin.place else None
            own = found.setdefault(key, set())
            own.add((origin.op, file, line, origin.module, origin.phase))
    return {key: frozenset(own) for key, own in found.items() if key not in untold}


def _by_key(ours: Sequence[_Item], theirs: Sequence[_Item]) -> dict[int, int]:
    found: dict[int, int] = {}
    for old, new in _grouped(ours, theirs, lambda item: item.key):
        found.update(_best(old, new))
    return found


def _by_name(ours: Sequence[_Item], theirs: Sequence[_Item]) -> dict[int, int]:
    """The same kernel, launched by what calls itself otherwise, as in the replay of a graph."""
    return _in_order(ours, theirs, lambda item: (item.row.activity, item.row.name))


def _by_origin(ours: Sequence[_Item], theirs: Sequence[_Item]) -> dict[int, int]:
    """The same ops of the same lines, computed by another kernel."""

    def computed(item: _Item) -> Hashable:
        return (item.row.activity, item.origins) if item.origins else None

    return _in_order(ours, theirs, computed)


def _by_op(ours: Sequence[_Item], theirs: Sequence[_Item]) -> dict[int, int]:
    """The same op, done by another kernel."""

    def op(item: _Item) -> Hashable:
        row = item.row
        return (row.activity, row.label) if row.label not in (None, row.name) else None

    return _in_order(ours, theirs, op)


def _in_order(
    ours: Sequence[_Item], theirs: Sequence[_Item], key: Callable[[_Item], Hashable]
) -> dict[int, int]:
    """One after the other, where as many are left on both sides: else it cannot be told which."""
    return {
        b.place: a.place
        for old, new in _grouped(ours, theirs, key)
        if len(old) == len(new)
        for a, b in zip(old, new, strict=True)
    }


def _grouped(
    ours: Sequence[_Item], theirs: Sequence[_Item], key: Callable[[_Item], Hashable]
) -> list[tuple[list[_Item], list[_Item]]]:
    """The rows of both that have the same key, where both have some; None is no key."""
    groups: dict[Hashable, tuple[list[_Item], list[_Item]]] = {}
    for side, items in enumerate((ours, theirs)):
        for item in items:
            if (found := key(item)) is not None:
                groups.setdefault(found, ([], []))[side].append(item)
    return [group for group in groups.values() if all(group)]


def _best(ours: Sequence[_Item], theirs: Sequence[_Item]) -> dict[int, int]:
    """Pairs that cross no other, as many as there can be, in which the most agrees.

    The longest common subsequence, weighted (Needleman and Wunsch, J. Mol. Biol. 48, 1970).
    """
    if len(ours) == len(theirs):
        return {b.place: a.place for a, b in zip(ours, theirs, strict=True)}
    width = len(theirs)
    # best[i][j]: what pairing ours from i on with theirs from j on comes to.
    best = [[0] * (width + 1) for _ in range(len(ours) + 1)]
    for i in range(len(ours) - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            paired = _likeness(ours[i], theirs[j]) + best[i + 1][j + 1]
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    found, i, j = {}, 0, 0
    while i < len(ours) and j < width:
        if best[i][j] == _likeness(ours[i], theirs[j]) + best[i + 1][j + 1]:
            found[theirs[j].place] = ours[i].place
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(one: _Item, other: _Item) -> int:
    """How much of what is known of both agrees; never nothing, as both fuse the same ops."""
    facts = (
        (one.row.read, other.row.read),
        (one.row.written, other.row.written),
        (one.detail.grid, other.detail.grid),
        (one.detail.block, other.detail.block),
        (one.detail.registers, other.detail.registers),
        (one.detail.shared_memory, other.detail.shared_memory),
        (one.row.count, other.row.count),
        (one.origins or None, other.origins or None),
    )
    agreeing = sum(1 for a, b in facts if a is not None and a == b)
    most = len(facts) * _FACT + _NUMBER  # so that one pair more outweighs all that may agree
    same_number = _NUMBER * (one.row.name == other.row.name)
    return most + 1 + agreeing * _FACT + same_number


def _merged(
    ours: Sequence[_Item], theirs: Sequence[_Item], found: dict[int, int]
) -> list[tuple[Row | None, Row | None]]:
    """All rows in the order of theirs, each that is gone behind the one that it followed."""
    kept = {place: at for at, place in found.items()}
    gone: dict[int, list[Row]] = {}
    last = -1
    for item in ours:
        last = kept.get(item.place, last)
        if item.place not in kept:
            gone.setdefault(last, []).append(item.row)
    merged: list[tuple[Row | None, Row | None]] = [(row, None) for row in gone.get(-1, ())]
    for item in theirs:
        row = ours[found[item.place]].row if item.place in found else None
        merged.append((row, item.row))
        merged += [(row, None) for row in gone.get(item.place, ())]
    return merged
