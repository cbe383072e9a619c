"""Which line each measured record comes from, by the count on paper of the same call.

Paper knows of each op and each generated kernel which lines it is of. A measured record is joined
to it by its order: generated kernels by their names, the others by the op that launched them, op
after op as they were launched. Which kernels one call launched the trace knows, or else how many
stand in a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

from kernelcount.model import (
    NO_TIME,
    Activity,
    Capture,
    Phase,
    Place,
    Provenance,
    Source,
    Work,
)
from kernelcount.origins import attention
from kernelcount.origins.ledger import GENERATED, Calls, call_of

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
    one_stream = len(set(measured.records.lane)) <= 1
    if one_stream:
        found |= _library(measured, paper, ours, theirs)
        found |= _copies(measured, paper, known.sources)
    found |= dict(_fills(measured, found))
    sources = tuple(found.get(i) for i in range(len(theirs)))
    left = sources.count(None)
    why = f"{left} of {len(sources)} records are not joined to a call on paper" if left else ""
    return replace(
        known,
        sources=sources,
        unknown=known.unknown or (why if one_stream or not left else _SEVERAL_STREAMS),
    )


_Found = dict[int, Source | None]
_Names = list[tuple[str, str]]
"""Of each record the op that it belongs to, or `GENERATED`, and its own name."""


def _library(measured: Capture, paper: Capture, ours: _Names, theirs: _Names) -> _Found:
    """Kernels that Inductor did not generate, call by call."""
    sources = paper.provenance.sources if paper.provenance else ()
    kernels = [i for i in _of_kind(measured, "kernel") if theirs[i][0] != GENERATED]
    expected = [i for i in _of_kind(paper, "kernel") if ours[i][0] != GENERATED]
    calls = measured.records.call
    ids = [calls[i] if calls and calls[i] != NO_TIME else -i for i in kernels]
    seen = _units(kernels, [theirs[i][0] for i in kernels], ids)
    made = _units(expected, [ours[i][0] for i in expected], [sources[i] or i for i in expected])
    pairs = _by_runs([u.name for u in seen], [u.name for u in made])
    return {i: sources[made[b].records[0]] for a, b in pairs for i in seen[a].records}


def _copies(measured: Capture, paper: Capture, sources: Sequence[Source | None]) -> _Found:
    """Copies, of which a trace does not say whose they are: in order, where there are as many."""
    ran, expected = _of_kind(measured, "copy"), _of_kind(paper, "copy")
    if len(ran) != len(expected):
        return {}
    return {a: sources[b] for a, b in zip(ran, expected, strict=True)}


def _of_kind(capture: Capture, activity: Activity) -> list[int]:
    works = capture.records.works
    return [i for i, w in enumerate(capture.records.work) if works[w].activity == activity]


def _activity(capture: Capture, record: int) -> Activity:
    return capture.records.works[capture.records.work[record]].activity


def _fills(measured: Capture, found: _Found) -> Iterator[tuple[int, Source | None]]:
    """Fills, which paper does not see: they are of the call that launched what they make ready."""
    calls = measured.records.call
    if not calls:
        return
    by_call = {calls[i]: source for i, source in found.items() if calls[i] != NO_TIME}
    for i, call in enumerate(calls):
        if _activity(measured, i) == "fill" and call in by_call:
            yield i, by_call[call]


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
            of_op = [_with_kind(op, work.activity) for op in work.ops]
            own = call_of(of_op, names) or next(iter(of_op), work.name)
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
class _Unit:
    """One call of an op: the places of what it launched."""

    name: str
    records: list[int]


def _units(records: Sequence[int], names: Sequence[str], ids: Sequence[object]) -> list[_Unit]:
    """The records by the calls that launched them, in order; `ids` are the same for one call."""
    units: list[_Unit] = []
    for key, group in groupby(zip(names, ids, records, strict=True), key=itemgetter(0, 1)):
        units.append(_Unit(key[0], [record for _, _, record in group]))
    return units


@dataclass(frozen=True, slots=True)
class _Run:
    """Calls of one op that stand in a row."""

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


@dataclass(frozen=True, slots=True)
class OfRow:
    """Where the records of one row come from: lines, modules and phases, each once, in order.

    `unknown`: how many of the records it is not known of. `attention`: the backends that ran, where
    all of the records are of attention. `within`: the modules of each line.
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
        (source and source.attention) or attention.backend(*reversed(works[index].ops))
        for index, source in own
    ]
    within: dict[Place, dict[str, None]] = {}
    for origin in origins:
        if origin.place:
            modules = within.setdefault(origin.place, {})
            modules |= {origin.module: None} if origin.module else {}
    if None in backends:  # of ops that attention is made of, others run elsewhere, too
        backends = []
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
