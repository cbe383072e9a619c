"""Budgets of tests: limits that a marker names, held against what the test has counted."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from kernelcount import rules
from kernelcount.errors import UsageError
from kernelcount.model import Bounds, Capture, Held, Outcome
from kernelcount.render import wording
from kernelcount.results import Count

OPTIONS = (
    "device", "gpu", "backward", "no_grad", "evaluate", "seconds", "reference", "cold", "size",
    "inputs", "maker", "dtype", "seed", "timeout", "variants",
)  # fmt: skip
"""What a marker may say of how to count, beside limits."""

Limits = dict[str, Bounds]


@dataclass(frozen=True)
class Budget:
    """What a marker asks for: limits by variant, in order, and how to count."""

    limits: dict[str, Limits]
    options: dict[str, Any]

    @property
    def variants(self) -> list[str]:
        """All that it takes to decide it: eager, what speedups are over, and what has limits."""
        over = [b.over for limits in self.limits.values() for b in limits.values() if b.over]
        return list(dict.fromkeys(("eager", *over, *self.limits)))

    @property
    def is_timed(self) -> bool:
        """Whether calls must be timed for it."""
        return any(rules.RULES[name].timed for limits in self.limits.values() for name in limits)


def budget(*markers: Mapping[str, Any]) -> Budget:
    """Read the keywords of markers, those of the test after those of its class and module.

    They are limits, options, and a mapping of limits for a variant. Limits without a variant are
    those of `variant`, eager by default; ``budget={...}`` takes variants whose names are no Python
    names. Raises UsageError that names the word that is wrong, or where a marker says nothing.
    """
    limits: dict[str, Limits] = {}
    options: dict[str, Any] = {}
    for marker in markers:
        if not marker:
            raise UsageError("it has no limit: write kernels=1, or compile={'kernels': 1}")
        given = dict(marker)
        alone = given.pop("variant", "eager")
        asked: dict[str, Any] = dict(given.pop("budget", {}))
        options |= {name: given.pop(name) for name in OPTIONS if name in given}
        for name, value in given.items():
            if isinstance(value, Mapping) and name not in rules.RULES:
                asked[name] = {**asked.get(name, {}), **value}
            else:
                asked[alone] = {**asked.get(alone, {}), name: value}
        for variant, wanted in asked.items():
            limits[variant] = limits.get(variant, {}) | _limits(variant, wanted)
    return Budget(limits, options)


def _limits(variant: str, asked: Any) -> Limits:
    if not isinstance(asked, Mapping) or not asked:
        raise UsageError(f"{variant} has no limit: write limits, such as {{'kernels': 1}}")
    found: Limits = {}
    for name, value in asked.items():
        rule = rules.RULES.get(name)
        if rule is None:
            near = difflib.get_close_matches(name, rules.RULES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(rules.RULES)}"
            raise UsageError(f"{name!r} is no limit: {hint}")
        found[name] = _bounds(name, value, measured=rule.measured)
    return found


def _bounds(name: str, value: Any, *, measured: bool) -> Bounds:
    """A number alone is exact; what varies from run to run has `min` or `max`."""
    if isinstance(value, Mapping):
        keys = {"min", "max", *(["over"] if name == "speedup" else [])}
        numbers = [v for k, v in value.items() if k != "over"]
        if not numbers or set(value) - keys or not all(map(_is_number, numbers)):
            raise UsageError(f"{name}: write {{'max': 1}}, of {', '.join(sorted(keys))}")
        over = value.get("over", "eager") if name == "speedup" else ""
        return Bounds(value.get("min"), value.get("max"), over)
    if not _is_number(value):
        raise UsageError(f"{name}: {value!r} is not a number")
    if measured:
        raise UsageError(f"{name} varies from run to run: write {{'min': ...}} or {{'max': ...}}")
    return Bounds(value, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def held(budget: Budget, counts: Sequence[Count], file: str, line: int) -> list[Held]:
    """Each limit of the variants that were counted, held against them."""
    outcomes = {c.name: c.report.outcomes[0] for c in counts}
    found: list[Held] = []
    for i, count in enumerate(counts):
        for name, bounds in budget.limits.get(count.name, {}).items():
            reading, code = _read(name, count, bounds, outcomes, first=i == 0)
            status = rules.status(reading, bounds)
            target = wording.target_name(count.target.spec) if count.target else count.name
            found.append(
                Held(
                    file,
                    line,
                    target,
                    count.name,
                    name,
                    status,
                    reading.value,
                    bounds,
                    why=reading.reason,
                    unit=rules.RULES[name].unit,
                    at_least=reading.at_least,
                    code=code,
                )
            )
    return found


def _read(
    name: str, count: Count, bounds: Bounds, outcomes: Mapping[str, Outcome], *, first: bool
) -> tuple[rules.Reading, int]:
    outcome = outcomes[count.name]
    if not isinstance(outcome, Capture):
        return rules.Reading(reason=outcome.reason), outcome.code
    run = count.report.runs[0]
    beside = run.besides[0] if run.besides else None
    over = outcomes.get(bounds.over) if bounds.over else None
    return rules.read(name, rules.Counted(outcome, beside, first, over)), 3


def sentences(found: Sequence[Held]) -> list[str]:
    """A line for each limit that is not kept."""
    return [_sentence(h) for h in found if h.status != "kept"]


def _sentence(h: Held) -> str:
    actual = "unknown" if h.actual is None else _amount(h.actual, h.unit)
    if h.at_least and h.actual is not None:
        actual = f"at least {actual}"
    why = f": {h.why}" if h.why else ""
    return f"{h.status}  {h.variant}  {h.limit} {actual}, {_allowed(h)}{why}"


def _allowed(h: Held) -> str:
    bounds = h.bounds or Bounds()
    if bounds.exact is not None:
        return f"allowed {_amount(bounds.exact, h.unit)}"
    low = [] if bounds.low is None else [f"at least {_amount(bounds.low, h.unit)}"]
    high = [] if bounds.high is None else [f"at most {_amount(bounds.high, h.unit)}"]
    over = f" over {bounds.over}" if bounds.over else ""
    return f"allowed {' and '.join([*low, *high])}{over}"


def _amount(value: float, unit: str) -> str:
    if unit == "ns":
        return wording.duration(value)
    if unit == "bytes":
        return wording.size(round(value))
    return f"{value:g}{unit}"


def listing(count: Count) -> list[str]:
    """What a call runs, in a few lines: how often, by what op, under which name."""
    lines = [f"{count.name}, {wording.setting(count.environment)}:"]
    for row in count.rows:
        label, name = wording.caption(row)
        kind = "" if row.activity == "kernel" else f"  ({row.activity})"
        lines.append(f"  {row.count}  {label or name}{kind}")
    return [*lines, *(f"  note: {note.detail}" for note in count.notes)]
