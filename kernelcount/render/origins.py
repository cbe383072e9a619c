"""Where each row comes from, in full: all lines, modules, phases; a section of ``--explain``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kernelcount.model import Place
from kernelcount.render.explain import Listing
from kernelcount.render.figures import Figures
from kernelcount.render.lines import key, number_of, numbered, short
from kernelcount.render.wording import caption, clean, plural, prose

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_HEAD = ("", "kernel", "line", "in", "module", "phase")


def section(entries: Sequence[Figures]) -> Iterator[Listing]:
    """The lines of each variant, a row for each line."""
    for entry in entries:
        known = entry.capture.provenance if entry.capture else None
        if known is None:
            continue
        origins = entry.origins
        rows = [_HEAD]
        left = 0
        numbers = numbered(entry.rows)
        for row in entry.rows:
            of_row = origins.get(key(row))
            if of_row is None:
                continue
            left += of_row.unknown
            label, name = caption(row)
            attention = f" ({', '.join(of_row.attention)})" if of_row.attention else ""
            phases = ", ".join(of_row.phases)
            pairs = zip(of_row.places, of_row.within, strict=True)
            lines: list[tuple[Place | None, tuple[str, ...]]] = list(pairs) or [(None, ())]
            for i, (place, within) in enumerate(lines):
                named = (number_of(row, numbers), f"{label or name}{attention}")
                first = named if i == 0 else ("", "")
                where = (*_where(place), ", ".join(patterns(within)))
                rows.append((*first, *where, phases if i == 0 else ""))
        yield _listing(f"{entry.title}: source lines", rows, _closing(left, known))


def _listing(title: str, rows: Sequence[tuple[str, ...]], closing: tuple[str, ...]) -> Listing:
    """The table; a phase that is that of all rows is told once."""
    phases = {row[-1] for row in rows[1:]} - {""}
    if len(phases) > 1:
        return Listing(title, tuple(rows), "rlllll", closing, whole=2)
    of_all = f", all {phases.pop()}" if phases else ""
    return Listing(f"{title}{of_all}", tuple(row[:-1] for row in rows), "rllll", closing, whole=2)


def _where(place: Place | None) -> tuple[str, str]:
    return ("unknown", "") if place is None else (short(place), clean(place.function))


def _closing(left: int, known: object) -> tuple[str, ...]:
    """What is not known, and why."""
    if not left:
        return ()
    why = getattr(known, "unknown", "") or "autograd or the compiler tells no line of theirs"
    return (prose(f"The line of {plural(left, 'record')} is not known: {why}"),)


def patterns(modules: Iterable[str]) -> list[str]:
    """Module paths, those that differ in numbers alone as one: ``layers.*.norm``."""
    groups: dict[str, list[str]] = {}
    for module in modules:
        groups.setdefault(_NUMBER.sub("*", module), []).append(module)
    return [clean(p if len(own) > 1 else own[0]) for p, own in groups.items()]
