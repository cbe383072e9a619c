"""The nouns: frozen, slotted dataclasses from the standard library alone.

A `Capture` keeps the raw record of one variant's run; every figure is derived from it. What could
not be measured is an `Unmeasured` with a reason, never a zero.
"""

from __future__ import annotations

from dataclasses import is_dataclass

from kernelcount.model.budgets import Bounds, Checked, Held, Status
from kernelcount.model.captures import (
    EAGER_CODE,
    NOT_TIMED,
    Capture,
    Environment,
    Outcome,
    Target,
    Unmeasured,
    note_codes,
)
from kernelcount.model.conclusions import (
    Beside,
    Crossing,
    Crossover,
    Difference,
    Evidence,
    Fused,
    Fusion,
    Holding,
    Verdict,
)
from kernelcount.model.differences import Allowance, Change, Decision, Diff, Pair, Side, Total
from kernelcount.model.figures import (
    Counters,
    LaunchCosts,
    Numerics,
    Paper,
    Price,
    Rates,
    Remedy,
    Speed,
    Timing,
)
from kernelcount.model.places import (
    Apart,
    Break,
    Cost,
    Gap,
    Origin,
    Phase,
    Place,
    Provenance,
    Recompilation,
    Source,
    Sync,
    SyncKind,
)
from kernelcount.model.records import (
    NO_TIME,
    Activity,
    DeviceTally,
    Lane,
    Note,
    Record,
    Records,
    Row,
    Step,
    Work,
)
from kernelcount.model.reports import Check, Diagnosis, Job, Report, Run, Scenario
from kernelcount.model.sealing import sealed

__all__ = [
    "EAGER_CODE", "NOT_TIMED", "NO_TIME", "Activity", "Allowance", "Apart", "Beside", "Bounds",
    "Break", "Capture", "Change", "Check", "Checked", "Cost", "Counters", "Crossing",
    "Crossover", "Decision", "DeviceTally", "Diagnosis", "Diff", "Difference", "Environment",
    "Evidence", "Fused", "Fusion", "Gap", "Held", "Holding", "Job", "Lane", "LaunchCosts",
    "Note", "Numerics", "Origin", "Outcome", "Pair", "Paper", "Phase", "Place", "Price",
    "Provenance", "Rates", "Recompilation", "Record", "Records", "Remedy", "Report", "Row",
    "Run", "Scenario", "Side", "Source", "Speed", "Status", "Step", "Sync", "SyncKind",
    "Target", "Timing", "Total", "Unmeasured", "Verdict", "Work", "note_codes", "sealed",
]  # fmt: skip

for _noun in list(globals().values()):
    if isinstance(_noun, type) and is_dataclass(_noun):
        sealed(_noun)
