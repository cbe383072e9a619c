"""Where the CPU waits for the GPU, and when the GPU waits for the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from kernelcount.model import Capture, Gap, Sync, note_codes
from kernelcount.render.figures import LISTED, Figures, Line, busy_share
from kernelcount.render.layout import Line as Text
from kernelcount.render.layout import Page, cells, columns, fit, pad, wrap
from kernelcount.render.names import short_label, short_name
from kernelcount.render.wording import clean, duration, joined, percent

_NAMED = 3  # places, or what the CPU did, that are named in a sentence


@dataclass(frozen=True, slots=True)
class Place:
    """All waits of one kind at one line. `idle_ns` None: it is not known of all of them."""

    sync: Sync
    count: int
    idle_ns: int | None

    @property
    def where(self) -> str:
        """File and line, as far as they are known: ``train.py:12``."""
        if self.sync.file is None or self.sync.line is None:
            return "unknown line"
        return clean(f"{PurePath(self.sync.file).name}:{self.sync.line}")

    @property
    def price(self) -> str:
        """How long the GPU was idle for them, or that it was not."""
        if self.idle_ns is None:
            return "unknown"
        return duration(self.idle_ns) if self.idle_ns else "free"


def places(syncs: Sequence[Sync]) -> list[Place]:
    """The waits by line and kind, those that cost the most first; else in order."""
    found: dict[tuple[object, ...], list[Sync]] = {}
    for sync in syncs:
        key = (sync.file, sync.line, sync.function, sync.kind, sync.op)
        found.setdefault(key, []).append(sync)
    every = [Place(own[0], len(own), _sum([s.idle_ns for s in own])) for own in found.values()]
    return sorted(every, key=lambda p: -(p.idle_ns or 0))


def _sum(times: Sequence[int | None]) -> int | None:
    known = [t for t in times if t is not None]
    return sum(known) if len(known) == len(times) else None


def known(entry: Figures) -> tuple[Sync, ...] | None:
    """The waits of a variant; None where they were not looked for or cannot be told."""
    return entry.capture.syncs if entry.capture and entry.reason is None else None


def lines(entries: Sequence[Figures]) -> list[Line]:
    """One line for waits and one for the GPU's idle time, where there are any."""
    shown: list[Line] = []
    found = [known(e) for e in entries]
    if any(found) or any(map(_may_be_more, entries)):
        texts = tuple(map(_number, entries))
        shown.append(Line("syncs", texts, _costliest(found)))
    gaps = [gap for e in entries for gap in _gaps(e)]
    if gaps:
        shares = [busy_share(e) for e in entries]
        texts = tuple("unknown" if s is None else percent(1 - s[0]) for s in shares)
        longest = max(gap.duration_ns for gap in gaps)
        shown.append(Line("GPU idle", texts, f"longest {duration(longest)}, profiled"))
    return shown


def _number(entry: Figures) -> str:
    syncs = known(entry)
    if syncs is None:
        return "unknown"
    return f"{'≥ ' if _may_be_more(entry) else ''}{len(syncs)}"


def _may_be_more(entry: Figures) -> bool:
    """Whether on paper there may be waits that are not listed, which a note then says."""
    return known(entry) is not None and "syncs-at-least" in note_codes(entry.notes)


def _costliest(found: Sequence[tuple[Sync, ...] | None]) -> str:
    every = places([sync for syncs in found for sync in syncs or ()])
    if not every:
        return ""
    if all(p.idle_ns == 0 for p in every):
        return "free"
    more = "" if len({p.where for p in every}) == 1 else ", ..."
    return f"{_named(every[0])}{more}"


def _named(place: Place) -> str:
    return place.sync.kind if place.sync.line is None else f"{place.sync.kind} at {place.where}"


def said(entry: Figures) -> str:
    """A sentence on the waits that cost time; empty where nothing is known of them."""
    found = known(entry)
    if found is None:
        return ""
    costly = [p for p in places(found) if p.idle_ns != 0]
    if not costly:
        return "No sync costs it time: look for Python between the kernels."
    named = [_named(p) for p in costly[:_NAMED]]
    rest = [f"{len(costly) - _NAMED} more"] if len(costly) > _NAMED else []
    return f"The CPU waits for the GPU: {joined([*named, *rest])}."


def texts(entries: Sequence[Figures]) -> list[str]:
    """All waits of each variant, line by line, as sentences of a list."""
    return [
        f"{_whose(entry, entries)}{_named(place)}"
        + (f" ×{place.count}" if place.count > 1 else "")
        + ("" if entry.on_paper else f" (GPU idle: {place.price})")
        for entry in entries
        for place in places(known(entry) or ())
    ]


def _whose(entry: Figures, entries: Sequence[Figures]) -> str:
    return f"{clean(entry.title)}: " if len(entries) > 1 else ""


def listing(entries: Sequence[Figures], page: Page) -> list[Text]:
    """All waits of each variant, line by line, and its longest gaps with what the CPU did."""
    shown: list[Text] = []
    for entry in entries:
        syncs = known(entry)
        if syncs:
            shown += _waits(entry, entries, page)
        if any(s.hideable and s.idle_ns != 0 for s in syncs or ()):
            shown += [
                ((f"  {text}", "dim"),) for text in wrap(_hidden(syncs or ()), page.width - 2)
            ]
        shown += _idle(entry, entries, page)
        if _is_beyond(entry):
            shown += [((f"  {text}", "dim"),) for text in wrap(_BEYOND, page.width - 2)]
    return shown


_BEYOND = (
    "A wait is longer than all that the GPU was idle: it counts from the call of its copy, and "
    "idle times from the start of the first record."
)


def _is_beyond(entry: Figures) -> bool:
    """Whether what a wait cost is more than the gaps come to, which begin with the first record."""
    idle_ns = entry.capture.idle_ns if entry.capture else None
    waits = (s.idle_ns for s in known(entry) or ())
    return idle_ns is not None and any(ns is not None and ns > idle_ns for ns in waits)


def _of(entry: Figures, entries: Sequence[Figures]) -> str:
    return f", {clean(entry.title)}" if len(entries) > 1 else ""


def _waits(entry: Figures, entries: Sequence[Figures], page: Page) -> Iterator[Text]:
    every = places(known(entry) or ())
    idle = "" if entry.on_paper else "GPU idle"
    title = f"where the CPU waits{_of(entry, entries)}"
    yield ((f"  {pad(title, page.width - 4 - cells(idle))}  {idle}".rstrip(), "bold"),)
    rows = [[p.where, p.sync.kind, _how(p)] for p in every]
    tails = ["" if entry.on_paper else p.price for p in every]
    for text, tail in zip(columns(rows, "lll"), tails, strict=True):
        yield ((f"  {pad(text, page.width - 4 - cells(tail))}  {tail}".rstrip(), ""),)


def _how(place: Place) -> str:
    """The function, what torch was asked for, and how often."""
    parts = [
        f"in {clean(place.sync.function)}" if place.sync.function else "",
        clean(short_label(place.sync.op or "")),
        "compiled" if place.sync.compiled else "",
        f"×{place.count}" if place.count > 1 else "",
    ]
    return "  ".join(filter(None, parts))


def _hidden(syncs: Sequence[Sync]) -> str:
    """What would hide the copies to the GPU."""
    wheres = [p.where for p in places([s for s in syncs if s.hideable and s.file])]
    at = f" at {joined(wheres)}" if wheres else ""
    return f"pin_memory() and non_blocking=True would hide the copies{at}."


def _idle(entry: Figures, entries: Sequence[Figures], page: Page) -> Iterator[Text]:
    gaps, share = _gaps(entry), busy_share(entry)
    if not gaps:
        return
    of = "of a call" if share and share[1] == "call" else "of the time"
    told = f": {percent(1 - share[0])} {of}" if share else ""
    title = f"when the GPU is idle{_of(entry, entries)}{told}"
    yield ((fit(f"  {title}", page.width), "bold"),)
    heads = [[duration(g.duration_ns), f"before {_name(g.after)}"] for g in gaps[:LISTED]]
    for text, gap in zip(columns(heads, "rl"), gaps, strict=False):
        start = fit(f"  {text}", page.width)
        yield ((start, ""), (_doing(gap, page.width - cells(start) - 3), "dim"))


def _name(text: str) -> str:
    return clean(short_label(short_name(text)))


def _doing(gap: Gap, room: int) -> str:
    """What the CPU did meanwhile, as much of it as there is room for."""
    text = ""
    for what, ns in gap.doing:
        longer = f"{text}{', ' if text else '   '}{_name(what)} {duration(ns)}"
        if cells(longer) > room + 3:
            break
        text = longer
    return text


def _gaps(entry: Figures) -> tuple[Gap, ...]:
    return (entry.capture.gaps or ()) if entry.capture and entry.reason is None else ()


def document(entry: Figures) -> dict[str, Any]:
    """Show waits and idle time; null where they were not looked for or cannot be told."""
    capture, syncs, share = entry.capture, known(entry), busy_share(entry)
    looked = capture if capture and entry.reason is None else Capture(entry.name)
    return {
        "syncs": None if syncs is None else [_sync(s, entry) for s in syncs],
        "syncs_at_least": None if syncs is None else _may_be_more(entry),
        "gaps": None if looked.gaps is None else [_gap(g) for g in looked.gaps],
        "idle_ns": looked.idle_ns,
        "busy_share": None if share is None else share[0],
        "busy_share_of": None if share is None else share[1],
    }


def _sync(sync: Sync, entry: Figures) -> dict[str, Any]:
    return {
        "file": sync.file,
        "line": sync.line,
        "kind": sync.kind,
        "idle_ns": sync.idle_ns,
        "free": sync.free,
        "function": sync.function,
        "compiled": sync.compiled,
        "op": sync.op,
        "call": sync.call or None,
        "wait_ns": sync.wait_ns,
        "copy_ns": sync.copy_ns,
        "hideable": sync.hideable,
        "basis": entry.basis,
        "seen_by": list(sync.seen_by),
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "start_ns": gap.start_ns,
        "duration_ns": gap.duration_ns,
        "before": gap.before,
        "after": gap.after,
        "doing": [{"what": what, "time_ns": ns} for what, ns in gap.doing],
    }
