"""The fusion map: which eager rows each compiled row replaces, and why others stayed alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernelcount.model import Apart, Capture, Fused, Fusion, Provenance, Source
from kernelcount.origins.fusion import REASONS, UNKNOWN
from kernelcount.origins.sources import Key, OfRow, key_of
from kernelcount.render import lines
from kernelcount.render.explain import Listing
from kernelcount.render.figures import Figures
from kernelcount.render.lines import Numbers, key, number_of, numbered
from kernelcount.render.wording import caption, percent, plural, prose

_HEAD = ("", "kernel", "replaces", "why no more")


def section(entries: Sequence[Figures]) -> Iterator[Listing]:
    """A table for each compiled variant, and one of the eager kernels that none replaces."""
    base = entries[0]
    for entry in entries[1:]:
        found = entry.fusion
        if found is None or entry.capture is None or base.capture is None:
            continue
        yield _of_variant(entry, base, found)
        if found.left:
            yield _left(base, base.capture, found)


def _of_variant(entry: Figures, base: Figures, found: Fusion) -> Listing:
    numbers = numbered(base.rows)
    instead = lines.replaced(entry, base, numbers, most=len(numbers))
    reasons = _reasons(entry.capture, found) if entry.capture else {}
    rows = [_HEAD]
    own = numbered(entry.rows)
    for row in entry.rows:
        label, name = caption(row)
        times = f" ×{row.count}" if row.count > 1 else ""
        said = ", ".join(reasons.get(key(row), ()))
        number = number_of(row, own)
        rows.append((number, f"{label or name}{times}", instead.get(key(row), "–"), said))
    used = dict.fromkeys(code for own in reasons.values() for code in own)
    closing = [f"{code}: {REASONS[code]}." for code in used if code in REASONS]
    if UNKNOWN in used:
        closing.append(f"{UNKNOWN}: the compiler does not say.")
    title = f"{entry.title}: what it replaces, by the numbers of {base.title}"
    return Listing(title, tuple(rows), "rlll", (_share(found), *closing))


def _share(found: Fusion) -> str:
    if not found.total:
        return "There is no eager kernel."
    why = f" ({found.unknown})" if found.unknown else ""
    share = percent(found.matched / found.total)
    kernels = plural(found.total, "eager kernel")
    are = "is" if found.matched == 1 else "are"
    said = f"Of {kernels}, {found.matched} ({share}) {are} replaced or left for a reason{why}"
    return prose(said)


def _reasons(capture: Capture, found: Fusion) -> Mapping[Key, dict[str, None]]:
    """Why each row stayed apart from what it shares data with, by code."""
    records = capture.records
    sources = capture.provenance.sources if capture.provenance else ()
    reasons: dict[Key, dict[str, None]] = {}
    for fused in found.kernels:
        own = reasons.setdefault(key_of(records.works[records.work[fused.record]]), {})
        given = [fused.alone] if fused.alone else _apart(sources[fused.record])
        own |= dict.fromkeys(apart.code for apart in given)
    return reasons


def _apart(source: Source | None) -> list[Apart]:
    return list(source.apart) if source else []


def _left(base: Figures, capture: Capture, found: Fusion) -> Listing:
    """Eager kernels that no compiled one replaces."""
    records, origins = capture.records, base.origins
    numbers: Numbers = numbered(base.rows)
    by_row: dict[tuple[Key, str], int] = {}
    for position, code in found.left:
        row = key_of(records.works[records.work[position]])
        by_row[row, code] = by_row.get((row, code), 0) + 1
    named = {key(row): caption(row) for row in base.rows}
    rows = [("", "kernel", "line", "why")]
    for (row, code), count in by_row.items():
        label, name = named[row]
        times = f" ×{count}" if count > 1 else ""
        place = lines.said(origins.get(row)) or "unknown"
        number = str(numbers.get(row, ""))
        rows.append((number, f"{label or name}{times}", place, code))
    used = dict.fromkeys(code for _, code in by_row)
    closing = tuple(f"{code}: {REASONS[code]}." for code in used if code in REASONS)
    title = f"kernels of {base.title} that {found.variant} has none for"
    return Listing(title, tuple(rows), "rlll", closing)


def document(entry: Figures, base: Capture | None) -> list[dict[str, Any]] | None:
    """The map as JSON, an entry for each record of the variant, and each eager one that is left.

    Null where there is none: for eager code, and where there is nothing to align with.
    """
    found, capture = entry.fusion, entry.capture
    if found is None or capture is None or base is None:
        return None
    records, theirs = capture.records, base.records
    sources = (capture.provenance or Provenance()).sources
    before = (base.provenance or Provenance()).sources
    shown = [
        {
            "kernel": records.works[records.work[fused.record]].name,
            "record": fused.record,
            **_of_source(sources[fused.record]),
            "replaces": [
                {
                    **_eager(theirs.works[theirs.work[p]], p, before[p]),
                    "by": "line" if p in fused.by_line else "op",
                }
                for p in fused.replaces
            ],
            "alone": _document(fused),
            "apart": [_of_apart(apart) for apart in _apart(sources[fused.record])],
        }
        for fused in found.kernels
    ]
    return shown + [
        {
            "kernel": None,
            "record": None,
            **_of_source(None),
            "replaces": [{**_eager(theirs.works[theirs.work[p]], p, before[p]), "by": None}],
            "alone": {"code": code, "detail": REASONS.get(code), "kernel": None, "said": None},
            "apart": [],
        }
        for p, code in found.left
    ]


def _eager(work: Any, position: int, source: Source | None) -> dict[str, Any]:
    return {
        "record": position,
        "name": work.name,
        "label": work.caption,
        **_of_source(source),
    }


def _of_source(source: Source | None) -> dict[str, Any]:
    """Lines, module and phase of one record."""
    origins = source.origins if source else ()
    places = tuple(dict.fromkeys(o.place for o in origins if o.place))
    modules = tuple(dict.fromkeys(o.module for o in origins if o.module))
    known = lines.document(OfRow(places, modules))
    return {
        "lines": known["lines"],
        "module": known["module"],
        "modules": known["modules"],
        "phase": source.phase if source else None,
        "attention": source.attention if source else None,
    }


def _document(fused: Fused) -> dict[str, Any] | None:
    return None if fused.alone is None else _of_apart(fused.alone)


def _of_apart(apart: Apart) -> dict[str, Any]:
    return {
        "code": apart.code,
        "detail": REASONS.get(apart.code),
        "kernel": apart.kernel or None,
        "said": apart.said or None,
    }


def matched(found: Fusion | None) -> dict[str, Any] | None:
    """How many eager kernels are replaced, or left for a reason that is known."""
    if found is None:
        return None
    return {"matched": found.matched, "total": found.total, "unknown": found.unknown or None}
