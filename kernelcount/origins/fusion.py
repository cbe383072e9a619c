"""The fusion map: which eager kernels each compiled kernel replaces, and why others stayed alone.

Kernels are aligned by what they compute: the op as it is dispatched, the user's line, the module,
the phase, and how many of these came before. Where ops differ, as a convolution may be called
otherwise, line and module decide, and that is said. A name of a kernel decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from kernelcount.model import Apart, Capture, Fused, Fusion, Origin, Phase, Source

REASONS = {
    "library-call": "a library computes it, and nothing is fused into its call",
    "beside-library-calls": "all that it shares data with are library calls",
    "nothing-shared": "no other kernel of its graph shares data with it",
    "graph-break": "nothing of its graph shares data with it, and the rest is in other graphs",
    "different-sizes": "its neighbours work on another number of elements",
    "reduction-boundary": "one of the two reduces, and the other does not fit into its loop",
    "different-order": "its neighbours go through their elements in another order",
    "reads-differently": "what is read is not what was written at the same place of the loop",
    "others-between": "other kernels must run between the two",
    "other-device": "the two are on different devices",
    "peak-memory": "together they would hold more memory",
    "not-worth-it": "a limit of the compiler's on what may be fused",
    "mutation": "one of the two changes an array in place",
    "kept-apart": "fusing is switched off for one of the two",
    "split": "the compiler makes several kernels of one op, as of a sum in two steps",
    "eager-code": "it ran outside of the compiled graphs, as code between graph breaks does",
    "removed": "its line was compiled, and no kernel computes anything of it: removed, or a view",
    "not-run": "the compiled variant has not its line at all: the code took another way",
    "other": "for a reason in the compiler's own words",
}
"""All reasons that there are, by code. Without one the reason is ``unknown``."""

UNKNOWN = "unknown"

# Inductor's own words, as in WhyNoFuse of torch/_inductor/scheduler.py, choices.py and
# codegen/simd.py (2.11 to 2.14), first that fits first.
_WORDS = tuple(
    (re.compile(words), code)
    for words, code in (
        (r"mutat|atomic", "mutation"),
        (r"extern|is nop|template|prologue|epilogue", "library-call"),
        (r"device mismatch", "other-device"),
        (r"numel(/rnumel)? incompat|for reduction|Split scan", "reduction-boundary"),
        (r"numel.*mismatch|buf layouts|same length", "different-sizes"),
        (r"tiling|loop order", "different-order"),
        (r"memory deps did not match|indexing mismatch", "reads-differently"),
        (r"intermediate nodes|must go before|cycle", "others-between"),
        (r"peak memory|too far away", "peak-memory"),
        (r"exceeds max|too_many|spilling|score_fusion|not increase", "not-worth-it"),
        (r"no shared data", "nothing-shared"),
        (r"grouped node|explicit disabled|foreach", "kept-apart"),
        (r".", "other"),
    )
)  # fmt: skip

_Key = tuple[object, ...]


def code_of(words: str) -> str:
    """The code of `REASONS` for Inductor's words on why it did not fuse; no words: unknown."""
    return next((code for pattern, code in _WORDS if pattern.search(words)), UNKNOWN)


def align(base: Capture, other: Capture) -> Fusion:
    """Which records of `base`, run as eager code, each record of `other`, compiled, replaces."""
    name = Fusion(other.name, base.name)
    if base.provenance is None or other.provenance is None:
        return replace(name, unknown="where the kernels come from was not looked for")
    index = _Index(other)
    sources = base.provenance.sources
    each = {i: index.of(source) for i, source in enumerate(sources) if source}
    each |= index.by_op(sources, each)
    replaced = {i: found for i, found in each.items() if found[0]}
    unreplaced = {i: source for i, source in enumerate(sources) if i not in replaced}
    unclaimed = index.unclaimed()
    left = [(position, index.why_not(s, unclaimed)) for position, s in unreplaced.items()]
    kernels = [i for i, w in enumerate(base.records.work) if _is_kernel(base, w)]
    unexplained = {position for position, code in left if code == UNKNOWN}
    known = [i for i in kernels if i in replaced or i not in unexplained]
    unknown = base.provenance.unknown or other.provenance.unknown
    if not base.provenance.sources:
        known = []
    return replace(
        name,
        kernels=tuple(_fused(other, replaced)),
        left=tuple(left),
        matched=len(known),
        total=len(kernels),
        unknown=unknown,
    )


def _is_kernel(capture: Capture, work: int) -> bool:
    return capture.records.works[work].activity == "kernel"


def _fused(other: Capture, replaced: dict[int, tuple[list[int], bool]]) -> Iterator[Fused]:
    """Every record of the compiled variant, with what it replaces."""
    by_record: dict[int, list[int]] = {}
    loosely: dict[int, list[int]] = {}
    for position, (records, by_line) in replaced.items():
        for record in records:
            by_record.setdefault(record, []).append(position)
            if by_line:
                loosely.setdefault(record, []).append(position)
    sources = other.provenance.sources if other.provenance else ()
    split = _split(sources)
    for record, source in enumerate(sources):
        own = tuple(by_record.get(record, ()))
        alone = _alone(source) if len(own) <= 1 else None
        if alone and record in split:
            alone = Apart("split")
        yield Fused(record, own, tuple(loosely.get(record, ())), alone)


def _is_generated(source: Source) -> bool:
    return source.graph is not None and not source.library


def _split(sources: Sequence[Source | None]) -> set[int]:
    """The generated kernels that compute the very same ops as another, as a sum in two steps."""
    by_ops: dict[tuple[Origin, ...], list[int]] = {}
    for record, source in enumerate(sources):
        if source and source.origins and _is_generated(source):
            by_ops.setdefault(source.origins, []).append(record)
    return {record for alike in by_ops.values() if len(alike) > 1 for record in alike}


def _alone(source: Source | None) -> Apart:
    """Why a kernel was fused with no other: the first reason that is one of the compiler's."""
    if source is None:
        return Apart(UNKNOWN)
    if source.graph is None:
        return Apart("eager-code")
    if source.library:
        return Apart("library-call")
    own = [a for a in source.apart if a.code != "library-call"]
    if not own:
        beside = next((a.kernel for a in source.apart), "")
        return Apart("beside-library-calls" if source.apart else "nothing-shared", beside)
    return next((a for a in own if a.code != UNKNOWN), own[0])


class _Index:
    """The records of a compiled variant by what they compute."""

    def __init__(self, other: Capture) -> None:
        self._by: dict[_Key, dict[int, None]] = {}
        provenance = other.provenance
        self._traced = {(p.file, p.line) for p in provenance.traced} if provenance else set()
        self._hidden = {(p.file, p.line) for p in provenance.hidden} if provenance else set()
        # Only what is known of every record says that a line is missing.
        self._whole = bool(provenance and all(provenance.sources) and not provenance.unknown)
        self._taken: set[_Key] = set()
        self._origins: dict[Origin, None] = {}
        for record, source in enumerate(provenance.sources if provenance else ()):
            for origin in source.origins if source else ():
                self._origins[origin] = None
                for key in _keys(origin):
                    self._by.setdefault(key, {})[record] = None

    def of(self, source: Source) -> tuple[list[int], bool]:
        """The records that compute what an eager one does, and whether the line alone says so."""
        records: dict[int, None] = {}
        by_line = False
        for origin in source.origins:
            for place, key in enumerate(_keys(origin)):
                if key in self._by:
                    records |= self._by[key]
                    by_line = by_line or place > 0
                    self._taken.add(key)
                    break
        return list(records), by_line

    def by_op(
        self, sources: Sequence[Source | None], each: dict[int, tuple[list[int], bool]]
    ) -> dict[int, tuple[list[int], bool]]:
        """What the op alone settles in backward, of what it and its line have not; or that nothing.

        There the two may tell an op's line otherwise: gradients of two uses are added where the
        later one is made, and a gradient in a graph has the line that asks for it. As many as are
        left in eager code are what is left in the compiled, where that is in the same kernels. A
        line of which nothing has the op is no answer where there is the op in another kernel.
        """
        waiting: dict[str, list[int]] = {}
        for position, (found, by_line) in each.items():
            origins = sources[position].origins if sources[position] else ()  # type: ignore[union-attr]
            if (by_line or not found) and len(origins) == 1 and origins[0].phase == "backward":
                waiting.setdefault(_plain(origins[0].op), []).append(position)
        left: dict[str, list[Origin]] = {}
        for origin in self._origins:
            if origin.phase == "backward" and next(_keys(origin)) not in self._taken:
                left.setdefault(_plain(origin.op), []).append(origin)
        settled: dict[int, tuple[list[int], bool]] = {}
        for op, positions in waiting.items():
            keys = [next(_keys(o)) for o in left.get(op, ())]
            kernels = {tuple(self._by[key]) for key in keys}
            if len(keys) == len(positions) and len(kernels) == 1:
                self._taken.update(keys)
                settled |= dict.fromkeys(positions, (list(kernels.pop()), False))
            else:
                others = (i for i in positions if keys and kernels != {tuple(each[i][0])})
                settled |= dict.fromkeys(others, ([], False))
        return settled

    def unclaimed(self) -> set[tuple[str, Phase]]:
        """The ops, and their phases, that replace no eager one of all that were asked for."""
        left = (o for o in self._origins if self._taken.isdisjoint(_keys(o)))
        return {(_plain(o.op), o.phase) for o in left}

    def why_not(
        self, source: Source | None, unclaimed: Set[tuple[str, Phase]] = frozenset()
    ) -> str:
        """Why no record computes it, by code: not known where it may be what is `unclaimed`.

        In backward the two may tell one op's line otherwise: no stack of the user's led to it. Of
        a line in a branch the kernels are not among the records, nor those of its backward.
        """
        origins = source.origins if source else ()
        places = [o.place for o in origins if o.place]
        if any(_may_be(o, unclaimed) for o in origins):
            return UNKNOWN
        if any((p.file, p.line) in self._hidden for p in places):
            return UNKNOWN
        if places and all((p.file, p.line) in self._traced for p in places):
            return "removed"
        return "not-run" if places and self._whole else UNKNOWN


def _may_be(origin: Origin, others: Set[tuple[str, Phase]]) -> bool:
    phases: tuple[Phase, ...] = ("backward",)
    if origin.phase == "backward":
        phases = ("forward", "backward", "optimizer")
    return any((_plain(origin.op), phase) in others for phase in phases)


def _plain(op: str) -> str:
    return op.rstrip("_")


def _keys(origin: Origin) -> Iterator[_Key]:
    """What an op is known by, the narrowest first; by a line only where there is one."""
    place = origin.place and (origin.place.file, origin.place.line)
    op = _plain(origin.op)
    if place is None and origin.module is None:
        yield op, origin.phase, origin.number
        return
    yield op, place, origin.module, origin.phase, origin.number
    if place is not None:
        yield place, origin.module, origin.phase
        yield place, origin.phase
