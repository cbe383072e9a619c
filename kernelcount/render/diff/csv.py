"""A line for each row, figure and limit, for a spreadsheet. What is unknown is an empty cell."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from kernelcount.model import Diff, Pair, Row
from kernelcount.render.csv import as_text
from kernelcount.render.diff import facts

COLUMNS = (
    "kind",
    "variant",
    "name",
    "label",
    "activity",
    "line",
    "change",
    "before",
    "after",
    "before_ns",
    "after_ns",
    "why",
)


def render(diff: Diff) -> str:
    """Write all that changed and did not, below a line of column names."""
    page = StringIO()
    writer = csv.DictWriter(page, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for line in _lines(diff):
        writer.writerow({k: _cell(v) for k, v in line.items()})
    return page.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return as_text(value) if isinstance(value, str) else f"{value}"


def _lines(diff: Diff) -> Iterator[dict[str, object]]:
    """What is ``unknown``, each ``figure`` and ``row`` of a variant, and each ``limit``."""
    for pair in diff.pairs:
        if pair.unknown:
            yield {"kind": "unknown", "variant": pair.name, "why": " ".join(pair.unknown.split())}
        yield from _figures(pair)
        yield from _rows(pair)
    for decision in diff.decisions:
        times = decision.allowance.name == "slowdown"
        yield {
            "kind": "limit",
            "variant": decision.variant,
            "name": f"max-{decision.allowance.name} {decision.allowance.text}",
            "change": decision.status,
            **_both(decision.before, decision.after, times=times),
            "why": " ".join(decision.why.split()),
        }


def _figures(pair: Pair) -> Iterator[dict[str, object]]:
    for total in pair.known:
        times = total.name.endswith("_time")
        both = _both(total.before, total.after, times=times)
        yield {"kind": "figure", "variant": pair.name, "name": total.name, **both}


def _both(before: float | None, after: float | None, *, times: bool) -> dict[str, object]:
    if not times:
        return {"before": before, "after": after}
    whole = (None if value is None else round(value) for value in (before, after))
    return dict(zip(("before_ns", "after_ns"), whole, strict=True))


def _rows(pair: Pair) -> Iterator[dict[str, object]]:
    for change in pair.changes:
        row = change.row
        yield {
            "kind": "row",
            "variant": pair.name,
            "name": row.name,
            "label": row.label,
            "activity": row.activity,
            "line": facts.line(change),
            "change": change.change,
            "before": _count(change.before),
            "after": _count(change.after),
            "before_ns": change.before and change.before.time_ns,
            "after_ns": change.after and change.after.time_ns,
        }


def _count(row: Row | None) -> int:
    return row.count if row else 0
