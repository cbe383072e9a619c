"""Saved captures: what `--save` writes, what a worker sends, and what `read` takes back.

JSON, never pickle: a capture may come from somebody else. The columns of a capture's records stand
as lists, null where a time is missing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import msgspec

from kernelcount.errors import UnreadableError
from kernelcount.model import (
    NO_TIME,
    Break,
    Capture,
    Cost,
    Counters,
    Environment,
    Gap,
    Lane,
    Note,
    Numerics,
    Outcome,
    Paper,
    Price,
    Provenance,
    Recompilation,
    Records,
    Remedy,
    Step,
    Sync,
    Target,
    Timing,
    Unmeasured,
    Work,
)  # fmt: skip
from kernelcount.traces.source import Source

VERSION = 1
_CODES = (2, 3)  # of what was not measured
KEY = "kernelcount_capture"
HEAD = f'{{"{KEY}":'.encode()


class _Records(msgspec.Struct, omit_defaults=True):
    works: tuple[Work, ...]
    lanes: tuple[Lane, ...]
    work: list[int]
    lane: list[int]
    start_ns: list[int | None]
    duration_ns: list[int | None]
    call: list[int] = []


class _Outcome(msgspec.Struct, omit_defaults=True):
    name: str
    reason: str | None = None
    code: int = 3
    seen: bool = True
    environment: Environment = Environment()
    target: Target | None = None
    records: _Records | None = None
    launches: int | None = None
    graph_launches: int | None = None
    complete: bool | None = None
    stable: bool | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    basis: str = "measured"
    paper: Paper | None = None
    timing: Timing | None = None
    price: Price | None = None
    peak_memory: int | None = None
    numerics: Numerics | None = None
    remedies: tuple[Remedy, ...] = ()
    counters: tuple[Counters | None, ...] = ()
    provenance: Provenance | None = None
    breaks: tuple[Break, ...] | None = None
    breaks_cost: Cost | None = None
    recompilations: tuple[Recompilation, ...] | None = None
    skipped_graphs: tuple[str, ...] | None = None
    syncs: tuple[Sync, ...] | None = None
    gaps: tuple[Gap, ...] | None = None
    idle_ns: int | None = None


class _File(msgspec.Struct):
    kernelcount_capture: int
    captures: list[_Outcome]


def dump(outcomes: Iterable[Outcome]) -> bytes:
    """The outcomes as one JSON document, a final newline included."""
    file = _File(VERSION, [_packed(o) for o in outcomes])
    return msgspec.json.encode(file) + b"\n"


def load(data: bytes, name: str) -> tuple[Outcome, ...]:
    """The outcomes that `dump` wrote.

    Raises UnreadableError, naming the file `name`, where the document is not one of ours.
    """
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get(KEY)
        if version is None or bytes(version).strip() != str(VERSION).encode():
            raise UnreadableError(
                f"{name}: saved captures of another version; this kernelcount reads {VERSION}"
            )
        file = msgspec.json.decode(data, type=_File)
        return tuple(_unpacked(o) for o in file.captures)
    except (msgspec.DecodeError, IndexError, OverflowError, RecursionError) as error:
        raise UnreadableError(f"{name}: damaged saved captures: {error}") from None


def read(source: Source) -> tuple[Outcome, ...]:
    """The outcomes in a file that `--save` wrote, compressed or not.

    Raises UnreadableError where it cannot be read whole.
    """
    data = b"".join(source.blocks())
    if source.cut_short:
        raise UnreadableError(f"{source.path}: {source.cut_short}")
    return load(data, str(source.path))


def recognises(head: bytes) -> bool:
    """Whether a file that begins with these bytes is one of ours."""
    return b"".join(head[:200].split()).startswith(HEAD)


def _packed(outcome: Outcome) -> _Outcome:
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    reason, code = None, 3
    if isinstance(outcome, Unmeasured):
        reason, code = outcome.reason, outcome.code
    if capture is None:
        return _Outcome(outcome.name, reason, code, seen=False)
    r = capture.records
    return _Outcome(
        name=outcome.name,
        reason=reason,
        code=code,
        environment=capture.environment,
        target=capture.target,
        records=_Records(
            r.works,
            r.lanes,
            r.work.tolist(),
            r.lane.tolist(),
            [None if t == NO_TIME else t for t in r.start_ns],
            [None if t == NO_TIME else t for t in r.duration_ns],
            r.call.tolist(),
        ),
        launches=capture.launches,
        graph_launches=capture.graph_launches,
        complete=capture.complete,
        stable=capture.stable,
        steps=capture.steps,
        notes=capture.notes,
        basis=capture.basis,
        paper=capture.paper,
        timing=capture.timing,
        price=capture.price,
        peak_memory=capture.peak_memory,
        numerics=capture.numerics,
        remedies=capture.remedies,
        counters=capture.counters,
        provenance=capture.provenance,
        breaks=capture.breaks,
        breaks_cost=capture.breaks_cost,
        recompilations=capture.recompilations,
        skipped_graphs=capture.skipped_graphs,
        syncs=capture.syncs,
        gaps=capture.gaps,
        idle_ns=capture.idle_ns,
    )


def _unpacked(saved: _Outcome) -> Outcome:
    """The outcome again. Raises IndexError or OverflowError where its numbers cannot be right."""
    counts = [saved.launches, saved.graph_launches]
    counts += [n for step in saved.steps for n in (step.kernels, step.kernel_time_ns)]
    counts += _of_waits(saved)
    _check(counts)
    code = saved.code if saved.code in _CODES else 3
    if not saved.seen:
        return Unmeasured(saved.name, saved.reason or "not known", None, code)
    records = _columns(saved.records) if saved.records else Records()
    capture = Capture(
        name=saved.name,
        environment=saved.environment,
        target=saved.target,
        records=records,
        launches=saved.launches,
        graph_launches=saved.graph_launches,
        complete=saved.complete,
        stable=saved.stable,
        steps=saved.steps,
        notes=saved.notes,
        basis="paper" if saved.basis == "paper" else "measured",
        paper=saved.paper,
        timing=saved.timing,
        price=saved.price,
        peak_memory=saved.peak_memory,
        numerics=saved.numerics,
        remedies=saved.remedies,
        counters=_counters(saved.counters, records),
        provenance=_provenance(saved.provenance, records),
        breaks=saved.breaks,
        breaks_cost=saved.breaks_cost,
        recompilations=saved.recompilations,
        skipped_graphs=saved.skipped_graphs,
        syncs=saved.syncs,
        gaps=saved.gaps,
        idle_ns=saved.idle_ns,
    )
    if saved.reason is None:
        return capture
    return Unmeasured(saved.name, saved.reason, capture, code)


def _of_waits(saved: _Outcome) -> Iterator[int | None]:
    yield saved.idle_ns
    for sync in saved.syncs or ():
        yield from (sync.line, sync.idle_ns, sync.wait_ns, sync.copy_ns)
    for gap in saved.gaps or ():
        yield from (gap.start_ns, gap.duration_ns, *(ns for _, ns in gap.doing))


def _check(counts: Iterable[int | None]) -> None:
    if any(n is not None and not 0 <= n < 1 << 63 for n in counts):
        raise OverflowError("a count that nothing can have counted")


def _counters(saved: tuple[Counters | None, ...], records: Records) -> tuple[Counters | None, ...]:
    """The counters again. Raises IndexError where they are not one for each record."""
    if saved and len(saved) != len(records):
        raise IndexError("the counters are not one for each record")
    known = [c for c in saved if c is not None]
    amounts = [n for c in known for n in (c.dram_read, c.dram_written, c.time_ns)]
    _check(amounts)
    return saved


def _provenance(saved: Provenance | None, records: Records) -> Provenance | None:
    """The provenance again. Raises IndexError where its sources are not one for each record."""
    if saved is not None and saved.sources and len(saved.sources) != len(records):
        raise IndexError("the sources are not one for each record")
    return saved


def _columns(saved: _Records) -> Records:
    """The columns again. Raises IndexError where an index or a length does not fit."""
    n = len(saved.work)
    if {len(saved.lane), len(saved.start_ns), len(saved.duration_ns)} != {n}:
        raise IndexError("the columns are not of one length")
    if saved.call and len(saved.call) != n:
        raise IndexError("the calls are not one for each record")
    for column, table in ((saved.work, saved.works), (saved.lane, saved.lanes)):
        if column and not 0 <= min(column) <= max(column) < len(table):
            raise IndexError("a record names what is not in its table")
    return Records(
        saved.works,
        saved.lanes,
        array("i", saved.work),
        array("i", saved.lane),
        array("q", [NO_TIME if t is None else t for t in saved.start_ns]),
        array("q", [NO_TIME if t is None else max(t, 0) for t in saved.duration_ns]),
        array("q", saved.call),
    )
