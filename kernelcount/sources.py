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

from kernelcount.ledger import GENERATED, Calls
from kernelcount.model import Capture, Origin, Place, Provenance, Source, Work

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


def by_row(capture: Capture) -> Mapping[object, list[Source | None]]:
    """The sources of the records of each row, by name, caption and activity as `rows` has them."""
    found: dict[object, list[Source | None]] = {}
    provenance = capture.provenance
    if provenance is None or len(provenance.sources) != len(capture.records):
        return found
    works = capture.records.works
    for index, source in zip(capture.records.work, provenance.sources, strict=True):
        work = works[index]
        found.setdefault((work.name, work.caption, work.activity), []).append(source)
    return found
