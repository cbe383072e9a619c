"""torch.compile as a remedy: fewer kernels and fewer bytes, or, by CUDA graphs, fewer launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from kernelcount import capture, variants
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Numerics
from kernelcount.probes.compiler import CompilerWatch
from kernelcount.remedies.facts import Attempt, Facts


def compiling(name: str) -> Callable[[Facts], AbstractContextManager[Attempt]]:
    """How the variant of this name is put to work on what another variant runs."""
    return partial(_compiled, name=name)


@contextmanager
def _compiled(facts: Facts, name: str) -> Iterator[Attempt]:
    """The function compiled, and watched: what ran as eager code is no remedy."""
    with CompilerWatch() as watch:
        way = capture.way(variants.parse(name), facts.way.function)
        yield Attempt(way, facts.subject, remark=partial(_remark, watch))


def _remark(watch: CompilerWatch, _: Numerics) -> str:
    if watch.graphs == 0:
        raise NotMeasuredError("0 graphs compiled: it ran as eager code")
    if watch.limit:
        return f"it ran in part as eager code: the {watch.limit} was reached"
    if watch.cudagraph_skips:
        return f"CUDA graphs skipped: {'; '.join(watch.skip_reasons) or 'for reasons of torch'}"
    return ""
