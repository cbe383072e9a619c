"""Numbers and names that know what they are of, so that a failed assertion can show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernelcount.model import sealed

if TYPE_CHECKING:
    from kernelcount.results.counts import Count


@sealed
class Whole(int):
    """A count that knows what it is of, so that a failed assertion can show it."""

    of: Count

    def __new__(cls, value: int, of: Count) -> Whole:
        """The count `value`, of `of`."""
        made = super().__new__(cls, value)
        object.__setattr__(made, "of", of)
        return made

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


@sealed
class Ratio(float):
    """A number of transfers that knows what it is of."""

    of: Count

    def __new__(cls, value: float, of: Count) -> Ratio:
        """The number `value`, of `of`."""
        made = super().__new__(cls, value)
        object.__setattr__(made, "of", of)
        return made

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


@sealed
class Names(dict[str, int]):
    """Kernels by their names, that know what they are of."""

    __slots__ = ("of",)
    of: Count

    def __init__(self, names: Mapping[str, int], of: Count) -> None:
        """How often each ran, of `of`."""
        super().__init__(names)
        object.__setattr__(self, "of", of)

    def __reduce__(self) -> tuple[type[dict[str, int]], tuple[dict[str, int]]]:
        return dict, (dict(self),)
