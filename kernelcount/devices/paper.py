"""Paper: a GPU that is not there. This row names it; the room `paper` does the counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Environment, Note


class OnPaper:
    """What `--device paper` stands for, until a card is chosen."""

    kind = "paper"
    summary = "a GPU that need not be there: counted, not run"

    def missing(self) -> str | None:
        """None: paper is always at hand."""
        return None

    def prepare(self) -> AbstractContextManager[None]:
        """Raises NotMeasuredError: the card, not this row, is what code runs on."""
        raise NotMeasuredError("no card was chosen to count for")

    def synchronize(self) -> None:
        """Nothing runs on it."""

    def profile(self, call: Callable[[], object], trace: Path) -> None:  # noqa: ARG002
        """Raises NotMeasuredError: nothing runs on paper, so there is no trace."""
        raise NotMeasuredError("nothing runs on paper, so there is no trace")

    def time(
        self,
        calls: Sequence[Callable[[], object]],  # noqa: ARG002
        between: Callable[[], object] | None = None,  # noqa: ARG002
    ) -> float:
        """Raises NotMeasuredError: what does not run takes no time."""
        raise NotMeasuredError("nothing runs on paper, so nothing takes time")

    def l2(self) -> int | None:
        """None: no card is chosen."""
        return None

    def disturbed(self) -> list[Note]:
        """Nothing is asked."""
        return []

    def peak_memory(self, call: Callable[[], object]) -> int | None:  # noqa: ARG002
        """None: nothing is allocated."""
        return None

    def environment(self) -> Environment:
        """Of paper as such, no more than its name."""
        return Environment(kind=self.kind)
