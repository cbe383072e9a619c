"""What tests ask of an outcome."""

from collections import Counter
from pathlib import Path

from kernelcount.model import Capture, Outcome, Unmeasured

CASES = Path(__file__).parent / "cases"


def operations(outcome: Outcome) -> dict[str, int]:
    """What was counted, by name."""
    assert isinstance(outcome, Capture), outcome
    names: Counter[str] = Counter()
    for row in outcome.rows():
        names[row.name.removeprefix("aten::")] += row.count
    return dict(names)


def codes(outcome: Outcome) -> list[str]:
    """The codes of an outcome's notes, of what was seen in part too."""
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    return [] if capture is None else [note.code for note in capture.notes]
