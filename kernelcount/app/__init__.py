"""The use cases: options in, Report out. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcount.app.answers import Answer, draw, save, trace_files, undrawn
from kernelcount.app.asked import check_files, check_job, check_options, check_plot
from kernelcount.app.counting import run
from kernelcount.app.limits import budgets, check, examined, hold, scenarios
from kernelcount.app.recorded import diff, read

if TYPE_CHECKING:
    from kernelcount.model import Diagnosis

__all__ = [
    "Answer", "budgets", "check", "check_files", "check_job", "check_options", "check_plot",
    "diff", "doctor", "draw", "examined", "hold", "read", "run", "save", "scenarios", "trace_files",
    "undrawn",
]  # fmt: skip


def doctor(atlas: Path | None, progress: Callable[[str], None]) -> Diagnosis:
    """What can be measured on this machine, and what its GPU reaches, which is kept.

    With `atlas`, one is recorded on the GPU, too.
    """
    from kernelcount.examination.child import examine

    return examine(atlas, progress)
