"""Source lines beside rows: ``add_relu.py:5``, and which rows a compiled kernel replaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from kernelcount.model import Place, Row
from kernelcount.origins.sources import Key, OfRow, key_of
from kernelcount.render.figures import Figures
from kernelcount.render.wording import clean, joined, plural

Numbers = Mapping[Key, int]
"""The numbers under which the kernels of a variant stand on the screen. A copy or fill has none."""

_NO_KERNELS = ("copy", "fill")
_MOST = 3  # numbers, or ranges of them, that are shown beside a row
_RANGE = 3  # numbers in a row from which on they are written ``2 to 4``


def key(row: Row) -> Key:
    """What tells a row apart."""
    return row.name, row.label, row.activity


def numbered(rows: Sequence[Row]) -> Numbers:
    """The kernels among the rows as they are shown, by their numbers."""
    kernels = (row for row in rows if row.activity not in _NO_KERNELS)
    return {key(row): number for number, row in enumerate(kernels, start=1)}


def number_of(row: Row, numbers: Numbers) -> str:
    """What stands before a row; nothing before what is no kernel."""
    return str(numbers.get(key(row), ""))


def short(place: Place) -> str:
    """``add_relu.py:5``."""
    return clean(f"{PurePath(place.file).name}:{place.line}")


def said(known: OfRow | None, label: str = "") -> str:
    """The first line of a row and how many more there are; the backend of attention beside it.

    Empty where nothing is known. `label`: what the row is called, which may tell the backend.
    """
    if known is None:
        return ""
    shown = list(dict.fromkeys(map(short, known.places)))
    more = f" +{len(shown) - 1}" if len(shown) > 1 else ""
    backends = [b for b in known.attention if b not in label]
    beside = f" ({', '.join(backends)})" if backends else ""
    return f"{shown[0] if shown else ''}{more}{beside}".strip()


def replaced(
    entry: Figures, base: Figures, numbers: Numbers, *, most: int = _MOST
) -> dict[Key, str]:
    """Beside each row of a compiled variant the rows of `base` that it replaces: ``1 and 2``.

    `numbers`: those of the base that are shown. What is not, or beyond `most`, is only counted.
    """
    if entry.fusion is None or entry.capture is None or base.capture is None:
        return {}
    ours, theirs = entry.capture.records, base.capture.records
    found: dict[Key, dict[Key, None]] = {}
    for fused in entry.fusion.kernels:
        own = found.setdefault(key_of(ours.works[ours.work[fused.record]]), {})
        own |= dict.fromkeys(key_of(theirs.works[theirs.work[p]]) for p in fused.replaces)
    return {row: listed(keys, numbers, most) for row, keys in found.items() if keys}


def listed(keys: Collection[Key], numbers: Numbers, most: int) -> str:
    """Rows by their numbers, `most` of them: ``1 and 2``, ``3 and a copy``, ``2 and 4 more``."""
    words = ranges(sorted(numbers[k] for k in keys if k in numbers))
    shown = dict(list(words.items())[:most])
    others = [activity for _, _, activity in keys if activity in _NO_KERNELS]
    left = len(keys) - len(others) - sum(shown.values())
    rest = [f"{left} more" if shown else plural(left, "row")] if left else []
    rest += [f"a {what}" for what in dict.fromkeys(others)]
    return joined([*shown, *rest])


def ranges(numbers: Iterable[int]) -> dict[str, int]:
    """``1``, ``3 to 7``: ascending numbers in few words, and how many each stands for."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    words: dict[str, int] = {}
    for run in runs:
        whole = len(run) >= _RANGE
        words |= {f"{run[0]} to {run[-1]}": len(run)} if whole else {str(n): 1 for n in run}
    return words


def document(known: OfRow | None) -> dict[str, Any]:
    """What a row of the JSON says of where it comes from; null where it is not known.

    ``module`` and ``phase`` are null where there are several: see ``modules`` and ``phases``.
    """
    known = known or OfRow()
    return {
        "lines": [line(p) for p in known.places] or None,
        "module": known.modules[0] if len(known.modules) == 1 else None,
        "modules": list(known.modules),
        "phase": known.phases[0] if len(known.phases) == 1 else None,
        "phases": list(known.phases),
        "attention": known.attention[0] if len(known.attention) == 1 else None,
    }


def line(place: Place) -> dict[str, Any]:
    """A line of code as JSON."""
    return {"file": place.file, "line": place.line, "function": place.function}
