"""Random numbers: the same ones for each variant, and whether any are drawn.

Of torch, of Python's ``random``, and of NumPy where that is imported.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelcount.settings import generators

_NUMPYS = 2**32  # seeds that NumPy takes


@dataclass(frozen=True)
class Drawn:
    """What a call has drawn of random numbers: true where that is any.

    `left`: the states of all generators afterwards; none where another generator, as that of
    compiled code, may have drawn from their numbers.
    """

    any: bool
    left: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return self.any

    def is_as(self, other: Drawn) -> bool:
        """Whether another call has drawn the same, as far as the generators tell."""
        return bool(self.left and other.left) and _same(self.left, other.left)


@contextmanager
def fixed(seed: int) -> Iterator[Callable[[], Drawn]]:
    """Begin with the same random numbers whenever it is entered; the user's own go on afterwards.

    Gives a function that tells what was drawn since.
    """
    import torch

    known = list(generators())
    before = [get() for get, _ in known]
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        numpy.seed(seed % _NUMPYS)
    started = [get() for get, _ in known]
    try:
        yield lambda: _drawn([get() for get, _ in known], started)
    finally:
        for (_, put), state in zip(known, before, strict=True):
            put(state)


def _drawn(now: Sequence[Any], started: Sequence[Any]) -> Drawn:
    return Drawn(not _same(now, started), tuple(now))


def _same(one: Any, other: Any) -> bool:
    """Whether two states of one generator are: tensors, arrays, numbers, and sequences of them."""
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(_same, one, other))
    equal: Any = one == other
    return bool(equal.all()) if hasattr(equal, "all") else bool(equal)
