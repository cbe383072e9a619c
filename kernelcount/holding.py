"""Budgets of tests: the limits that markers name, held against what a test has counted."""

from __future__ import annotations

import fcntl
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcount import variants
from kernelcount.budgets import checking, lockfile, nodes
from kernelcount.budgets.budget import Budget
from kernelcount.budgets.limits import OVER, Limit, bounds
from kernelcount.budgets.nodes import Node, Place, Scalar
from kernelcount.model import Checked, Job, Report
from kernelcount.render import check as render
from kernelcount.render import wording
from kernelcount.render.lines import key, said
from kernelcount.results import Count
from kernelcount.rules import RULES

OPTIONS = (
    "device", "gpu", "backward", "no_grad", "evaluate", "seconds", "reference", "cold", "size",
    "inputs", "maker", "dtype", "seed", "timeout", "variants",
)  # fmt: skip
"""What a marker may say of how to count, beside limits."""

WRITTEN = "kernelcount-lock"
"""The property of a test that says which lock file it has written."""


@dataclass(frozen=True)
class Marked:
    """What the markers of a test ask for: limits, and how to count. `place`: where the test is."""

    place: Place
    limits: tuple[Limit, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def limited(self) -> tuple[str, ...]:
        """The variants that have limits."""
        return tuple(dict.fromkeys(limit.variant for limit in self.limits))

    @property
    def variants(self) -> tuple[str, ...]:
        """All that it takes to decide: eager, what speedups are over, and what has limits."""
        over = (limit.bounds.over for limit in self.limits if limit.bounds.over)
        return tuple(dict.fromkeys((OVER, *over, *self.limited)))

    @property
    def is_timed(self) -> bool:
        """Whether calls must be timed for it."""
        return any(limit.rule.timed for limit in self.limits)


def marked(place: Place, *markers: Mapping[str, Any]) -> Marked:
    """Read the keywords of markers, those of the test after those of its class and module.

    They are limits, options, and a mapping of limits for a variant. Limits without a variant are
    those of `variant`, eager by default; ``budget={...}`` takes variants whose names are no names
    in Python. A limit is written as in YAML. Raises UsageError that names what is wrong.
    """
    limits: dict[tuple[str, str], Limit] = {}
    options: dict[str, Any] = {}
    for marker in markers:
        if not marker:
            raise place.error("it has no limit: write kernels=1, or compile={'kernels': 1}")
        given = dict(marker)
        alone = given.pop("variant", OVER)
        asked: dict[str, Any] = dict(given.pop("budget", {}))
        options |= {name: given.pop(name) for name in OPTIONS if name in given}
        for name, value in given.items():
            if isinstance(value, Mapping) and name not in RULES:
                asked[name] = {**asked.get(name, {}), **value}
            else:
                asked[alone] = {**asked.get(alone, {}), name: value}
        for variant, wanted in asked.items():
            limits |= {(variant, limit.name): limit for limit in _limits(place, variant, wanted)}
    return Marked(place, tuple(limits.values()), tuple(options.items()))


def _limits(place: Place, variant: str, asked: Any) -> Iterator[Limit]:
    if not isinstance(asked, Mapping) or not asked:
        raise place.error(f"{variant} has no limit: write limits, such as {{'kernels': 1}}")
    variants.parse(variant)
    for name, value in asked.items():
        if name not in RULES:
            raise nodes.unknown(place, "limit", name, RULES)
        allowed, digits = bounds(name, _node(place, value))
        yield Limit(variant, name, allowed, place, digits)


def _node(place: Place, value: Any) -> Node:
    """A value of Python's as the node of YAML that is written so."""
    if isinstance(value, Mapping):
        items = {str(key): _node(place, v) for key, v in value.items()}
        return nodes.Mapping(place, items, dict.fromkeys(items, place))
    return Scalar(place, value if isinstance(value, str) else repr(value))


def hold(
    asked: Marked, target: str, report: Report, counts: Sequence[Count], *, update: bool
) -> Checked:
    """Hold the limits of what was counted, and what the lock file beside the test has recorded.

    `update`: what was launched is recorded instead. Raises UsageError for a lock file that is none.
    """
    names = tuple(count.name for count in counts)
    limits = tuple(limit for limit in asked.limits if limit.variant in names)
    budget = Budget(asked.place, target, Job(target, variants=names), names, limits)
    options = checking.Options(update=update, listed=False)  # `listing` has all
    with _alone(Path(asked.place.file).parent / lockfile.NAME, needed=update):
        return checking.check([budget], lambda *_: (report, ()), options, lambda *_: None)


@contextmanager
def _alone(path: Path, *, needed: bool) -> Iterator[None]:
    """Be the only process that writes this file: tests may run in several."""
    if not needed:
        yield
        return
    name = f"kernelcount-{zlib.crc32(str(path.absolute()).encode()):08x}.lock"
    with Path(tempfile.gettempdir(), name).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def told(checked: Checked) -> list[str]:
    """A line for each limit that is not kept, with what changed below it."""
    lines: list[str] = []
    for held in checked.held:
        if held.status != "kept":
            lines.append(f"{held.status:9}  {held.variant}  {render.sentence(held)}")
            lines += (f"  {detail}" for detail in held.details)
    return [*lines, *checked.unwritten]


def listing(count: Count) -> list[str]:
    """What a call runs, in a few lines: how often, by which op or under which name, from where."""
    lines = [f"{count.name}, {wording.setting(count.environment)}:"]
    origins = count.figures.origins
    named = [label or name for label, name in map(wording.caption, count.rows)]
    width = max(map(len, named), default=0)
    for row, name in zip(count.rows, named, strict=True):
        place = said(origins.get(key(row)), row.label or "")
        kind = "" if row.activity == "kernel" else f"  ({row.activity})"
        lines.append(f"  {row.count}  {name:{width}}  {place}{kind}".rstrip())
    return [*lines, *(f"  note: {note.detail}" for note in count.notes)]
