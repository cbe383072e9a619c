"""What a variant launches, beside a limit that it breaks: the kernels and the lines they are of.

Where a lock file tells what has changed, that is nearer to the cause, and these are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernelcount.model import Capture, Held, Outcome, Place, Row
from kernelcount.origins import sources
from kernelcount.render.lines import key, said
from kernelcount.render.wording import caption
from kernelcount.rules import RULES

MOST = 9
"""Kernels that are listed. GitHub shows ten annotations of a kind for a step of a job (its limits
on workflow commands); one is at the limit itself.
"""

_ALONE = {"copies": ("copy",), "fills": ("fill",), "kernels": ("kernel", "generated")}
"""What a limit counts, where it does not count all of a record."""


def beside(held: Sequence[Held], outcomes: Mapping[str, Outcome]) -> Iterator[Held]:
    """The rows, with what was launched where a limit on it is broken and no lock tells why."""
    told = {h.variant for h in held if h.limit == "lock" and h.status == "broken"}
    for row in held:
        rule = RULES.get(row.limit)
        outcome = outcomes.get(row.variant)
        asked = row.status == "broken" and rule is not None and rule.of_record
        if not asked or row.variant in told or not isinstance(outcome, Capture):
            yield row
            continue
        details, places = _launched(outcome, row.limit)
        yield replace(row, details=(*row.details, *details), places=(*row.places, *places))


def _launched(capture: Capture, limit: str) -> tuple[list[str], list[Place]]:
    """A line for each row of what the limit counts, and the first line of code of each."""
    of_rows = sources.of_rows(capture)
    wanted = _ALONE.get(limit)
    rows = [r for r in capture.rows() if wanted is None or r.activity in wanted]
    shown = rows[:MOST]
    names = [label or name for label, name in map(caption, shown)]
    width = max(map(len, names), default=0)
    details = [
        _line(row, f"{name:{width}}", of_rows.get(key(row)))
        for row, name in zip(shown, names, strict=True)
    ]
    if left := sum(row.count for row in rows[MOST:]):
        details.append(f"and {left} more")
    known = (of_rows.get(key(row)) for row in shown)
    places = dict.fromkeys(k.places[0] for k in known if k is not None and k.places)
    return details, list(places)


def _line(row: Row, name: str, known: sources.OfRow | None) -> str:
    """``1 add   model.py:6``."""
    return f"{row.count} {name}   {said(known, row.label or '')}".rstrip()
