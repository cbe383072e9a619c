"""Which lines of a kernel's are those of what it computes now and did not before.

A fused kernel is of many lines. Where one op of it was put in the place of another, the others stay
what they were, and are found again by what they are: their lines may have moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from kernelcount.model import Capture, Origin, Place

Origins = Mapping[tuple[str, str], Sequence[Origin]]
"""The ops that the records of one name and activity compute, in the order of their lines."""


def origins(capture: Capture) -> Origins:
    """What each row computes, as far as it is known at which lines."""
    records = capture.records
    found: dict[tuple[str, str], dict[Origin, None]] = {}
    known = capture.provenance.sources if capture.provenance else ()
    for index, source in zip(records.work, known, strict=False):
        work = records.works[index]
        own = found.setdefault((work.name, work.activity), {})
        own |= dict.fromkeys(o for o in (source.origins if source else ()) if o.place)
    return {key: sorted(own, key=_line) for key, own in found.items()}


def since(now: Sequence[Origin], before: Sequence[Origin]) -> tuple[Place, ...]:
    """The lines of what is computed `now` and was not `before`; empty where that cannot be told.

    It cannot where the two have nothing in common, or nothing was added.
    """
    ours, theirs = [_what(o) for o in now], [_what(o) for o in sorted(before, key=_line)]
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    same = {i for block in blocks for i in range(block.a, block.a + block.size)}
    return _places(o for i, o in enumerate(now) if i not in same) if same else ()


def by_names(now: Sequence[Origin], gone: Iterable[str]) -> tuple[Place, ...]:
    """The same where of what was before only the names of kernels are known.

    Inductor names a kernel for the ops in it: torch/_inductor/utils.py, get_fused_kernel_name.
    """
    names = [f"_{name}_" for name in gone]
    same = {o.op for o in now if any(f"_{o.op}_" in name for name in names)}
    return _places(o for o in now if o.op not in same) if same else ()


def first(places: Sequence[Place], other: Sequence[Place]) -> tuple[Place, ...]:
    """The lines of a kernel, those that are other than they were before all others."""
    return (*(p for p in other if p in places), *(p for p in places if p not in other))


def _line(origin: Origin) -> tuple[str, int]:
    return (origin.place.file, origin.place.line) if origin.place else ("", 0)


def _what(origin: Origin) -> tuple[str, str, str | None, str]:
    function = origin.place.function if origin.place else ""
    return origin.op, function, origin.module, origin.phase


def _places(found: Iterable[Origin]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(o.place for o in found if o.place))
