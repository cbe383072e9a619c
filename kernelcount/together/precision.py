"""What is to be said of times: served by a cache, or not precise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from kernelcount.capture import Subject
from kernelcount.conclusions import noise
from kernelcount.model import Note
from kernelcount.probes import timing
from kernelcount.together.running import bytes_given
from kernelcount.together.turns import Timed


def served_by_cache(subject: Subject, candidates: Sequence[timing.Candidate]) -> list[Note]:
    """Say where the arrays fit into the cache: such times are not those of the GPU's memory."""
    cache, size = subject.device.l2(), bytes_given(subject)
    if cache is None and subject.cold:
        return [Note("not-cold", "--cold: how much the cache of this device holds is not known")]
    size *= max(len(c.calls) for c in candidates)
    if cache is None or not 0 < size < cache:
        return []
    detail = f"the inputs fit into the L2 cache ({cache >> 20} MB): --cold keeps them out of it"
    return [Note("served-by-l2", detail)]


def imprecise(candidate: timing.Candidate, turns: Iterable[Timed]) -> list[Note]:
    """Say where a time is not as precise as it was to be, and how much longer would do."""
    width = noise.half_width(candidate.samples)
    if width is not None and width <= noise.PRECISION:
        return []
    taken = len(candidate.samples)
    if taken >= noise.FEWEST:
        detail = (
            f"the time of a call is not known to ±{noise.PRECISION:.0%}: --seconds gives it more"
        )
        return [Note("imprecise", detail)]
    times = "once" if taken == 1 else f"{taken} times"
    candidates = [t.candidate for t in turns]
    enough = ceil(timing.enough(candidates) / timing.shares(len(candidates)))
    detail = f"timed {times}, too seldom to tell which is faster: --seconds {enough} is enough"
    return [Note("imprecise", detail)]
