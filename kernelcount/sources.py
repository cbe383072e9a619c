"""Which line each measured record comes from, by the count on paper of the same call.

Paper knows of each op and each generated kernel which lines it is of. A measured record is joined
to it by its order: generated kernels by their names, the others by the op that launched them, op
after op as they were launched. What a library call launches is as many kernels as stand in a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from pathlib import Path

from kernelcount import attention
from kernelcount.ledger import GENERATED, Calls
from kernelcount.model import (
    Activity,
    Capture,
    Origin,
    Phase,
    Place,
    Provenance,
    Source,
    Work,
)

_SEVERAL_STREAMS = (
    "the kernels ran on several streams: in which order they were launched is unknown"
)


def joined(measured: Capture, paper: Capture, calls: Calls) -> Provenance | None:
    """Where the measured records come from; None where paper itself does not know.

    `calls` says of each kernel to which op on paper it belongs.
    """
    known = paper.provenance
    if known is None or len(known.sources) != len(paper.records):
        return known
    ours, theirs = _paper_names(paper), _measured_names(measured, calls, set(_paper_names(paper)))
    found = dict(_generated(measured, ours, theirs, known.sources))
    if len(set(measured.records.lane)) > 1:
        sources = tuple(found.get(i) for i in range(len(theirs)))
        return replace(known, sources=sources, unknown=known.unknown or _SEVERAL_STREAMS)
    works = [measured.records.works[i] for i in measured.records.work]
    others = [
        i for i, (name, _) in enumerate(theirs) if name != GENERATED and works[i].activity != "fill"
    ]
    rest = [i for i, (name, _) in enumerate(ours) if name != GENERATED]
    pairs = _by_runs([theirs[i][0] for i in others], [ours[i][0] for i in rest])
    found |= {others[a]: known.sources[rest[b]] for a, b in pairs}
    found |= dict(_fills(works, found))
    sources = tuple(found.get(i) for i in range(len(theirs)))
    left = sum(s is None for s in sources)
    why = f"{left} of {len(sources)} records are not joined to a call on paper" if left else ""
    return replace(known, sources=sources, unknown=known.unknown or why)


def _fills(
    works: Sequence[Work], found: Mapping[int, Source | None]
) -> Iterator[tuple[int, Source | None]]:
    """Fills, which paper does not see, are of the op's next record: they make ready for it."""
    for i, (work, following) in enumerate(pairwise(works)):
        if work.activity == "fill" and work.label == following.label and i + 1 in found:
            yield i, found[i + 1]


_Names = list[tuple[str, str]]
"""Of each record the op that it belongs to, or `GENERATED`, and its own name."""


def _paper_names(paper: Capture) -> _Names:
    works = [paper.records.works[i] for i in paper.records.work]
    return [
        (GENERATED if w.label is None else _with_kind(w.label, w.activity), w.name) for w in works
    ]


def _measured_names(measured: Capture, calls: Calls, known: set[tuple[str, str]]) -> _Names:
    names = {name for name, _ in known}
    found: _Names = []
    for index in measured.records.work:
        work = measured.records.works[index]
        own = calls.get(work)
        if own is None:
            of_op = [_with_kind(n, work.activity) for n in (work.label, work.op) if n]
            own = next((n for n in of_op if n in names), next(iter(of_op), work.name))
        found.append((own, work.name))
    return found


def _with_kind(name: str, activity: str) -> str:
    return name if activity == "kernel" else f"{activity} of {name}"


def _generated(
    measured: Capture, ours: _Names, theirs: _Names, sources: Sequence[Source | None]
) -> Iterator[tuple[int, Source | None]]:
    """Kernels of one name with those of that name, where there are as many of them."""
    on_paper, seen = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for i, (kind, name) in enumerate(ours):
        if kind == GENERATED:
            on_paper[name].append(i)
    for i, (kind, name) in enumerate(theirs):
        if (
            kind == GENERATED
            and measured.records.works[measured.records.work[i]].activity == "kernel"
        ):
            seen[name].append(i)
    for name, positions in seen.items():
        if len(positions) == len(on_paper.get(name, ())):
            yield from zip(positions, (sources[i] for i in on_paper[name]), strict=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """Records of one op that stand in a row."""

    name: str
    start: int
    count: int


def _runs(names: Sequence[str]) -> list[_Run]:
    runs, start = [], 0
    for name, group in groupby(names):
        count = len(list(group))
        runs.append(_Run(name, start, count))
        start += count
    return runs


def _by_runs(theirs: Sequence[str], ours: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of places: in a run that both have, the first with the first, and so on.

    Where there are more kernels than calls, each call has equally many of them; else it is unknown
    which are whose.
    """
    one, two = _runs(theirs), _runs(ours)
    for a, b in _paired(one, two):
        if a.count % b.count == 0:
            each = a.count // b.count
            yield from ((a.start + i, b.start + i // each) for i in range(a.count))


def _paired(one: Sequence[_Run], two: Sequence[_Run]) -> Iterator[tuple[_Run, _Run]]:
    first, second = [r.name for r in one], [r.name for r in two]
    if first == second:  # as nearly always; else it takes a search
        yield from zip(one, two, strict=True)
        return
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        yield from zip(one[block.a :][: block.size], two[block.b :][: block.size], strict=True)


def relative(provenance: Provenance | None, folder: Path) -> Provenance | None:
    """The same with files relative to `folder` where they are inside of it."""
    if provenance is None:
        return None
    known: dict[Place, Place] = {}

    def shown(place: Place | None) -> Place | None:
        if place is None:
            return None
        if place not in known:
            path = Path(place.file)
            inside = path.is_relative_to(folder)
            known[place] = replace(place, file=str(path.relative_to(folder))) if inside else place
        return known[place]

    def of(origin: Origin) -> Origin:
        return replace(origin, place=shown(origin.place))

    return replace(
        provenance,
        sources=tuple(
            s and replace(s, origins=tuple(map(of, s.origins))) for s in provenance.sources
        ),
        traced=tuple(p for p in map(shown, provenance.traced) if p),
    )


@dataclass(frozen=True, slots=True)
class OfRow:
    """Where the records of one row come from: lines, modules and phases, each once, in order.

    `unknown`: how many of the records it is not known of. `attention`: the backends that ran.
    `within`: the modules of each line.
    """

    places: tuple[Place, ...] = ()
    modules: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    attention: tuple[str, ...] = ()
    unknown: int = 0
    within: tuple[tuple[str, ...], ...] = ()


Key = tuple[str, str | None, Activity]
"""What tells rows apart: name, caption and activity."""


def key_of(work: Work) -> Key:
    """The key of the row that a record of this work is in."""
    return work.name, work.caption, work.activity


def of_rows(capture: Capture) -> dict[Key, OfRow]:
    """Where each row of a capture comes from, as far as it is known."""
    records = capture.records
    known = capture.provenance.sources if capture.provenance else ()
    sources = known or (None,) * len(records)
    by_key: dict[Key, dict[tuple[int, Source | None], int]] = {}
    for index, source in zip(records.work, sources, strict=True):
        own = by_key.setdefault(key_of(records.works[index]), {})
        own[index, source] = own.get((index, source), 0) + 1
    return {key: _of_row(records.works, own) for key, own in by_key.items()}


def _of_row(works: Sequence[Work], own: Mapping[tuple[int, Source | None], int]) -> OfRow:
    sources = [source for _, source in own if source is not None]
    origins = [origin for source in sources for origin in source.origins]
    backends = [
        (source and source.attention) or attention.backend(works[index].op, works[index].label)
        for index, source in own
    ]
    within: dict[Place, dict[str, None]] = {}
    for origin in origins:
        if origin.place:
            modules = within.setdefault(origin.place, {})
            modules |= {origin.module: None} if origin.module else {}
    return OfRow(
        tuple(within),
        tuple(dict.fromkeys(o.module for o in origins if o.module)),
        tuple(dict.fromkeys(s.phase for s in sources if s.phase)),
        tuple(dict.fromkeys(b for b in backends if b)),
        sum(n for (_, source), n in own.items() if not _has_line(source)),
        tuple(map(tuple, within.values())),
    )


def _has_line(source: Source | None) -> bool:
    return source is not None and any(origin.place for origin in source.origins)
