"""Which record of a capture is which kernel of a log.

`ncu` has another demangler than torch's profiler, so only the name of the function is compared, and
where it is of use, the grid and the block. It runs kernels one by one in the order in which they
were launched; a trace has them in the order in which they ran, which with several streams is
another. So the first of a name is the first of that name, whatever stands between.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence

from kernelcount.model import Capture, Work
from kernelcount.ncu.log import Profiled

# Namespaces without a name, as the demanglers of GCC and of NVIDIA write them.
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)")


def match(capture: Capture, kernels: Sequence[Profiled]) -> list[int | None] | None:
    """The index of the kernel for each record; None for a copy or a fill.

    None for all where it is not known which kernel is which: other ones ran, or not as often.
    """
    works = [capture.records.works[w] for w in capture.records.work]
    own = [i for i, work in enumerate(works) if work.activity == "kernel"]
    for of_record, of_kernel in ((_launch, _profiled_launch), (_name, _profiled_name)):
        found = _matched([of_record(works[i]) for i in own], list(map(of_kernel, kernels)))
        if found is not None:
            places = dict(zip(own, found, strict=True))
            return [places.get(i) for i in range(len(works))]
    return None


def _matched(wanted: Sequence[object], there: Sequence[object]) -> list[int] | None:
    """For each that is wanted the first of those there that is alike and not taken yet."""
    if Counter(wanted) != Counter(there):
        return None
    places: dict[object, deque[int]] = {}
    for place, key in enumerate(there):
        places.setdefault(key, deque()).append(place)
    return [places[key].popleft() for key in wanted]


def function(name: str) -> str:
    """The name of a kernel's function: no return type, namespaces, template or other arguments."""
    bare = _UNNAMED.sub("unnamed", name)
    head = re.split(r"[<(]", bare, maxsplit=1)[0].strip()
    return head.rpartition("::")[2].rpartition(" ")[2] or name


def _name(work: Work) -> object:
    return function(work.name)


def _launch(work: Work) -> object:
    return function(work.name), work.grid, work.block


def _profiled_name(kernel: Profiled) -> object:
    return function(kernel.name)


def _profiled_launch(kernel: Profiled) -> object:
    return function(kernel.name), kernel.grid, kernel.block
