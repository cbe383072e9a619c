"""Records whose rows stand in a trace twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernelcount.timeline.taking import Timeline
from kernelcount.traces.kineto import Event  # fmt: skip


def written_twice(timeline: Timeline, rows: Iterable[tuple[Event, str]] | None) -> set[int]:
    """Records whose rows stood there before, alike in every field.

    `rows` are the trace's device rows once more, each with all of its fields as text: not every
    field is kept. None: the trace cannot be read again, and what is kept has to do.
    """
    groups = timeline.alike()
    if not groups or rows is None:
        return {i for group in groups for i in group[1:]}
    differing: Counter[int] = Counter({hash(timeline.key(group[0])): 0 for group in groups})
    seen: set[tuple[int, int]] = set()
    for event, text in rows:
        if event.ph not in ("X", ""):
            continue
        key = hash(tuple(column[0] for column in timeline.columns([event], type(event))))
        if key in differing and (pair := (key, hash(text))) not in seen:
            seen.add(pair)
            differing[key] += 1
    return {i for g in groups for i in g[max(1, differing[hash(timeline.key(g[0]))]) :]}
