"""Saved captures: what `--save` writes, what a worker sends, and what `read` takes back.

JSON, never pickle: a capture may come from somebody else. The columns of a capture's records stand
as lists, null where a time is missing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import msgspec

from kernelcount.errors import UnreadableError
from kernelcount.model import NO_TIME, Capture, Lane, Outcome, Records, Unmeasured, Work
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


_HERE = ("name", "records")  # fields of a capture that are not saved as they are
_AS_THEY_ARE = tuple(f for f in fields(Capture) if f.name not in _HERE)
_TYPES = get_type_hints(Capture)

# A capture's own fields beside what there is of a variant that was not measured.
_Outcome: Any = msgspec.defstruct(
    "_Outcome",
    [
        ("name", str),
        ("reason", str | None, None),
        ("code", int, 3),
        ("seen", bool, True),
        ("raised", bool, False),
        ("records", _Records | None, None),
        *((f.name, _TYPES[f.name], f.default) for f in _AS_THEY_ARE),
    ],
    omit_defaults=True,
)


_File: Any = msgspec.defstruct("_File", [(KEY, int), ("captures", list[_Outcome])])


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


def _packed(outcome: Outcome) -> Any:
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    reason, code, raised = None, 3, False
    if isinstance(outcome, Unmeasured):
        reason, code, raised = outcome.reason, outcome.code, outcome.raised
    if capture is None:
        return _Outcome(outcome.name, reason, code, seen=False, raised=raised)
    r = capture.records
    records = _Records(
        r.works,
        r.lanes,
        r.work.tolist(),
        r.lane.tolist(),
        [None if t == NO_TIME else t for t in r.start_ns],
        [None if t == NO_TIME else t for t in r.duration_ns],
        r.call.tolist(),
    )
    return _Outcome(outcome.name, reason, code, records=records, **_fields_of(capture))


def _fields_of(whole: Any) -> dict[str, Any]:
    """The fields that a capture and what is saved of it have alike."""
    return {f.name: getattr(whole, f.name) for f in _AS_THEY_ARE}


def _unpacked(saved: Any) -> Outcome:
    """The outcome again. Raises IndexError or OverflowError where its numbers cannot be right."""
    code = saved.code if saved.code in _CODES else 3
    if not saved.seen:
        return Unmeasured(saved.name, saved.reason or "not known", None, code, saved.raised)
    records = _columns(saved.records) if saved.records else Records()
    capture = Capture(saved.name, records=records, **_fields_of(saved))
    _check(_counts(capture))
    _check_fit(capture)
    if saved.reason is None:
        return capture
    return Unmeasured(saved.name, saved.reason, capture, code)


def _counts(capture: Capture) -> Iterator[int | None]:
    """Numbers in it that are counts, sizes or times."""
    yield from (capture.launches, capture.graph_launches, capture.idle_ns)
    for step in capture.steps:
        yield from (step.kernels, step.kernel_time_ns)
    for sync in capture.syncs or ():
        yield from (sync.line, sync.idle_ns, sync.wait_ns, sync.copy_ns)
    for gap in capture.gaps or ():
        yield from (gap.start_ns, gap.duration_ns, *(ns for _, ns in gap.doing))
    for counted in filter(None, capture.counters):
        yield from (counted.dram_read, counted.dram_written, counted.time_ns)


def _check(counts: Iterable[int | None]) -> None:
    if any(n is not None and not 0 <= n < 1 << 63 for n in counts):
        raise OverflowError("a count that nothing can have counted")


def _check_fit(capture: Capture) -> None:
    """Raises IndexError where what is told of each record is not of as many."""
    sources = capture.provenance.sources if capture.provenance else ()
    for what, told in (("counters", capture.counters), ("sources", sources)):
        if told and len(told) != len(capture.records):
            raise IndexError(f"the {what} are not one for each record")


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
