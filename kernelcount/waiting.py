"""What the trace of one call and what torch tells of another -> each wait with its line.

The trace has what a wait costs and what kind it is, torch's warnings have the line. Both are in the
order in which the CPU waited; where one has more than the other, no line is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from kernelcount.model import Note, Sync
from kernelcount.origins.callers import Site

_UNTOLD = re.compile(r"(cuda|cu|hip)(Device|Event|Ctx)Synchronize\w*")
_MOST_LISTED = 5  # lines spelt out in a sentence; the rest are counted


@dataclass(frozen=True, slots=True)
class Told:
    """Waits that torch told of, in order: in ops and of streams; and those that were asked for.

    None for one that no line of the user's made.
    """

    waits: tuple[Site | None, ...] = ()
    asked: tuple[Site | None, ...] = ()


def asks(traced: Sequence[Sync]) -> bool:
    """Whether there are waits of which torch does not warn: for the device, or for an event."""
    return any(_is_untold(s) for s in traced)


def merged(traced: Sequence[Sync], told: Told) -> tuple[tuple[Sync, ...], tuple[Note, ...]]:
    """The waits of a trace with the lines that torch told of, and what is to be said of them."""
    untold = [i for i, s in enumerate(traced) if _is_untold(s)]
    # What the driver waits for in a copy of pageable memory has no call of its own.
    warned = [i for i, s in enumerate(traced) if s.call and i not in untold]
    # A library may wait inside of an op, and torch does not know.
    torchs = [i for i in warned if traced[i].kind != "inside an op" or traced[i].copy_ns]
    if not warned and told.waits:
        return (*_alone(told.waits), *traced), ()
    placed: dict[int, Site | None] = {}
    notes: list[Note] = []
    for choices, sites in (((warned, torchs), told.waits), ((untold,), told.asked)):
        found = next((c for c in choices if len(c) == len(sites)), None)
        if found is not None:
            placed.update(zip(found, sites, strict=True))
        elif len(set(sites)) == 1:
            placed.update(dict.fromkeys(choices[0], sites[0]))
        elif sites:
            notes.append(_unplaced(sites, len(choices[0])))
    return tuple(_at(s, placed[i]) if i in placed else s for i, s in enumerate(traced)), (*notes,)


def _is_untold(sync: Sync) -> bool:
    return sync.call is not None and _UNTOLD.fullmatch(sync.call) is not None


def _at(sync: Sync, site: Site | None) -> Sync:
    seen_by = (*sync.seen_by, "debug mode")
    if site is None:
        return replace(sync, seen_by=seen_by)
    return replace(
        sync,
        file=site.file,
        line=site.line,
        function=site.function,
        seen_by=seen_by,
        compiled=site.compiled,
    )


def _alone(sites: Sequence[Site | None]) -> list[Sync]:
    """Waits that torch alone tells of: what they are and what they cost is not known."""
    return [_at(Sync("inside an op"), site) for site in sites]


def _unplaced(sites: Sequence[Site | None], traced: int) -> Note:
    lines = [f"{PurePath(s.file).name}:{s.line}" for s in dict.fromkeys(sites) if s is not None]
    more = ", ..." if len(lines) > _MOST_LISTED else ""
    detail = (
        f"the CPU waited {traced} times in the profiled call and {len(sites)} times in another, at "
        f"{', '.join(lines[:_MOST_LISTED])}{more}: which wait is at which line cannot be told"
    )
    return Note("syncs-unplaced", detail)
