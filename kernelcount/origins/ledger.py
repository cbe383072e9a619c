"""Which call on paper a measured record is, one by one, so that its bytes and its time meet.

Calls of one op are paired in the order in which they come, generated kernels by their names. Only
where nothing is in doubt: there are as many on paper as were measured, and the call is one kernel.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from kernelcount.model import Capture, Records, Work

GENERATED = "generated kernels"
"""What stands for the op of a kernel that Inductor generates."""

Calls = dict[Work, str]
"""What each kernel that was measured is called on paper."""


def ledger(measured: Capture, paper: Capture, calls: Calls) -> Records | None:
    """The measured records, with bytes and operations where a call on paper is theirs alone.

    `calls` says of each kernel to which op on paper it belongs. None where nothing is matched.
    """
    records = measured.records
    ours, theirs = _on_paper(paper), defaultdict[str, list[int]](list)
    for position, index in enumerate(records.work):
        work = records.works[index]
        if work.activity == "kernel":
            theirs[calls[work]].append(position)
        elif work.activity == "copy":
            name = call_of([_copy(op) for op in work.ops], ours)
            theirs[name or ""].append(position)
    found: dict[int, Work] = {}
    for name, positions in theirs.items():
        expected = ours.get(name, ())
        if len(expected) != len(positions):
            continue
        if name == GENERATED:
            found.update(_by_name(positions, expected, records))
        else:
            found.update(_in_order(positions, expected, records))
    return _with(records, found) if any(w.read is not None for w in found.values()) else None


def call_of(ops: Sequence[str], known: Container[str]) -> str | None:
    """Which of the ops that a kernel is in, from the outside in, is `known` on paper; None: none.

    One that is known in place alone, or alone not in place, is the same call: where a mode looks
    on, as on paper, some code of torch's leaves operands as they are (areAnyTensorSubclassLike).
    """
    twins = (op.removesuffix("_") if op.endswith("_") else f"{op}_" for op in ops)
    return next((op for op in (*ops, *twins) if op in known), None)


def _on_paper(paper: Capture) -> Mapping[str, Sequence[Work]]:
    """What paper has, by name, in order; without bytes where one call is several kernels.

    Those of such a call stand at its first kernel, and the further ones move nothing.
    """
    records = paper.records
    ordered = [records.works[index] for index in records.work]
    known: dict[str, list[Work]] = defaultdict(list)
    for work, following in zip_longest(ordered, ordered[1:]):
        in_parts = _goes_on(work) or (following is not None and _goes_on(following))
        entry = replace(work, read=None, written=None, flops=None) if in_parts else work
        name = GENERATED if work.label is None else work.label
        known[_copy(name) if work.activity == "copy" else name].append(entry)
    for work in paper.paper.own if paper.paper else ():
        known[work.label or work.name].append(work)
    return known


def _goes_on(work: Work) -> bool:
    return work.read == work.written == 0


def _copy(name: str | None) -> str:
    """The name of copies that an op makes: no kernel bears it."""
    return f"copies of {name}"


def _in_order(
    positions: Sequence[int], expected: Sequence[Work], records: Records
) -> Iterator[tuple[int, Work]]:
    """The first with the first, and so on; of several streams only where all are alike."""
    alike = len({(w.read, w.written, w.flops, w.precision) for w in expected}) == 1
    if alike or len({records.lane[p] for p in positions}) == 1:
        yield from zip(positions, expected, strict=True)


def _by_name(
    positions: Sequence[int], expected: Sequence[Work], records: Records
) -> Iterator[tuple[int, Work]]:
    """Kernels of one name; and of one other name on either side, what is left."""
    theirs, ours = defaultdict[str, list[int]](list), defaultdict[str, list[Work]](list)
    for position in positions:
        theirs[records.works[records.work[position]].name].append(position)
    for work in expected:
        ours[work.name].append(work)
    left = [name for name in theirs if name not in ours]
    missing = [name for name in ours if name not in theirs]
    if len(left) == len(missing) == 1:
        ours[left[0]] = ours.pop(missing[0])
    for name, of_name in theirs.items():
        if len(of_name) == len(ours.get(name, ())):
            yield from _in_order(of_name, ours[name], records)


def _with(records: Records, found: Mapping[int, Work]) -> Records:
    """The records with what was found of them, by their places."""
    works: dict[Work, int] = {}
    index = array("i")
    for position, number in enumerate(records.work):
        work, known = records.works[number], found.get(position)
        if known is not None:
            work = replace(
                work, read=known.read, written=known.written, flops=known.flops,
                precision=known.precision, at_most=known.at_most, at_least=known.at_least,
            )  # fmt: skip
        index.append(works.setdefault(work, len(works)))
    return replace(records, works=tuple(works), work=index)
