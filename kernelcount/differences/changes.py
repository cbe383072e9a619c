"""One variant in two files: what appeared, vanished, runs more often, or takes longer.

Times of two runs were not taken in turn, so that what slows a machine down for a while may meet one
of them alone. They are told apart where the intervals of their medians do not meet, and only from
`noise.SAME_TIME` on. Of the kernel times of a profiled call no noise is known; they are told apart
from the same share on.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from math import inf
from statistics import median

from kernelcount import variants
from kernelcount.conclusions import noise
from kernelcount.differences.alignment import align
from kernelcount.errors import UsageError
from kernelcount.model import (
    EAGER_CODE,
    Activity,
    Break,
    Capture,
    Change,
    Note,
    Pair,
    Place,
    Records,
    Row,
    Side,
    Speed,
    Target,
    Timing,
    Total,
    Work,
)
from kernelcount.origins import changed, sources
from kernelcount.render.figures import Figures, figures
from kernelcount.rules import DOUBTED, MOVES_MORE, RULES, Counted, Reading

FIGURES = (
    "kernels", "generated", "library", "copies", "fills", "launches", "aten", "bytes", "transfers",
    "graph_breaks", "recompiles", "syncs", "peak_memory", "kernel_time", "call_time",
)  # fmt: skip
"""The figures of a variant, in the order in which they are shown: `rules.RULES` but for those that
compare variants, and ATen operations."""

_OF_COMPILING = ("graph_breaks", "recompiles")

_OTHER = {
    "target": Note("other-target", "another function: {} before, {} after"),
    "device": Note("other-device", "another GPU: {} before, {} after; times are not compared"),
    "architecture": Note("other-device", "another GPU: {} before, {} after"),
    "torch": Note("other-torch", "another torch: {} before, {} after"),
    "triton": Note("other-triton", "another Triton: {} before, {} after"),
    "libraries": Note("other-libraries", "other libraries: {} before, {} after"),
    "basis": Note("other-basis", "one is counted on paper: {} before, {} after"),
    "inputs": Note("other-inputs", "other inputs: {} before, {} after; times are not compared"),
}


def compare(before: Side, after: Side, name: str | None = None) -> Pair:
    """What changed in one variant; `name`: what both are called, `after`'s name by default."""
    pair = Pair(name or after.name, before, after)
    entries = [figures(side.outcome) for side in (before, after)]
    unknown = [
        f"{where}: {reason}"
        for where, entry in zip(("before", "after"), entries, strict=True)
        if (reason := _unknown(entry))
    ]
    captures = [e.capture for e in entries if e.capture is not None]
    if not unknown and captures[0].on_cpu != captures[1].on_cpu:
        unknown = ["one counts kernels on a GPU, the other operations on the CPU"]
    if unknown:
        return replace(pair, unknown="; ".join(unknown))
    old, new = captures
    timed = not (_setups(old, new, "device", "inputs") or "lock" in (before.kind, after.kind))
    inexact = _inexact(before, after)
    totals = tuple(_totals((before, after), inexact))
    if not timed:
        totals = tuple(t for t in totals if not t.name.endswith("_time"))
    return replace(
        pair,
        changes=_changes(before, after, old, new, timed=timed),
        totals=totals,
        call_speed=between_runs(old.timing, new.timing) if timed else None,
        kernel_speed=_kernel_speed(*entries) if timed else None,
        breaks=tuple(_new_breaks(old, new)),
        notes=tuple(_notes(old, new, inexact)),
    )


def between_runs(before: Timing | None, after: Timing | None) -> Speed | None:
    """How the time of a call in one run compares with that in another; None for too few samples.

    `ratio` is the time before over the time after, its bounds are from the intervals of both
    medians: at least 98 % confidence together (Bonferroni), as far as samples of two runs can tell.
    """
    if before is None or after is None:
        return None
    bounds = [noise.interval(t.samples_ns) for t in (before, after)]
    if bounds[0] is None or bounds[1] is None or min(bounds[1][0], bounds[0][0]) <= 0:
        return None
    (low, high), (least, most) = bounds[0], bounds[1]
    times = median(before.samples_ns), median(after.samples_ns)
    apart = (low > most or least > high) and not noise.same_time(*times)
    return _speed(*times, (low / most, high / least), apart=apart)


def _speed(before: float, after: float, bounds: tuple[float, float], *, apart: bool) -> Speed:
    verdict = "no difference" if not apart else "faster" if after < before else "slower"
    return Speed(before / after, *bounds, verdict)  # type: ignore[arg-type]


def _kernel_speed(before: Figures, after: Figures) -> Speed | None:
    """How the sums of kernel times compare: a single figure each, with no interval."""
    old, new = before.kernel_time_ns, after.kernel_time_ns
    if not old or not new or before.untimed or after.untimed:
        return None
    ratio = old / new
    return _speed(old, new, (ratio, ratio), apart=not noise.same_time(old, new))


def _unknown(entry: Figures) -> str:
    """Why a count cannot be believed; empty where it can."""
    if entry.reason is not None:
        return entry.reason
    if entry.in_part:
        details = [n.detail for n in entry.notes if n.code in ("incomplete", "generated-unknown")]
        return details[0] if details else "not every launch has its device record"
    if entry.remembered:
        return "nothing ran in the counted call, since the result had been kept from an earlier one"
    return ""


def _inexact(before: Side, after: Side) -> str:
    """Why counts that differ, or do not, may not be the last word."""
    for where, side in (("before", before), ("after", after)):
        capture = side.capture
        if capture is None:
            continue
        if doubt := next((n.detail for n in capture.notes if n.code in DOUBTED), None):
            return f"{where}: {doubt}"
        if capture.stable is False:
            return f"{where}: repeated calls did not launch the same kernels"
    steps = [len(s.capture.steps) for s in (before, after) if s.capture]
    if steps[0] != steps[1] and max(steps) > 1:
        return (
            f"{steps[0]} profiler steps before and {steps[1]} after: --region 'ProfilerStep#N'"
            " compares one of each"
        )
    return ""


def _changes(
    before: Side, after: Side, old: Capture, new: Capture, *, timed: bool
) -> tuple[Change, ...]:
    was, now = _places(old), _places(new)
    if "lock" in (before.kind, after.kind):
        without = (*before.unknown, *after.unknown)
        old, new = as_locked(old, without), as_locked(new, without)
    ordered = before.kind != "lock" != after.kind
    timed = timed and not old.untimed_kernels and not new.untimed_kernels
    changes = [_change(*rows, timed=timed) for rows in align(old, new, ordered=ordered)]
    placed = [
        replace(c, places=(now if c.after else was).get((c.row.name, c.row.activity), ()))
        for c in changes
    ]
    return tuple(_changed_lines_first(placed, old, new))


def _changed_lines_first(changes: Sequence[Change], old: Capture, new: Capture) -> Iterator[Change]:
    """Of a kernel that is new, the lines of what none computed before those of the rest."""
    fused = [c for c in changes if len(c.places) > 1 and (c.change == "appeared" or c.renamed)]
    if not fused:
        yield from changes
        return
    was, now = changed.origins(old), changed.origins(new)
    gone = [c.before for c in changes if c.before and not c.after]
    for change in changes:
        if change not in fused:
            yield change
            continue
        before = [change.before] if change.before else gone
        ops = [o for row in before for o in was.get((row.name, row.activity), ())]
        here = now.get((change.row.name, change.row.activity), ())
        lines = changed.since(here, ops) if ops else ()
        if not lines:  # as of a lock file
            lines = changed.by_names(here, [row.name for row in before])
        yield replace(change, places=changed.first(change.places, lines))


def _places(capture: Capture) -> dict[tuple[str, str], tuple[Place, ...]]:
    """The lines that the records of one name and activity come from, as far as they are known."""
    found: dict[tuple[str, str], dict[Place, None]] = {}
    for (name, _, activity), of_row in sources.of_rows(capture).items():
        found.setdefault((name, activity), {}).update(dict.fromkeys(of_row.places))
    return {key: tuple(places) for key, places in found.items()}


def _change(before: Row | None, after: Row | None, *, timed: bool) -> Change:
    if before is None or after is None:
        return Change("appeared" if before is None else "vanished", before, after)
    if before.count != after.count:
        return Change("count", before, after)
    was, now = before.time_ns, after.time_ns
    apart = timed and was is not None and now is not None and not noise.same_time(was, now)
    return Change("time" if apart else "same", before, after)


def as_locked(capture: Capture, without: Sequence[Activity] = ()) -> Capture:
    """The capture as a lock file has it: kernels by name alone, copies and fills by number.

    `without` the records of these activities.
    """

    def plain(work: Work) -> Work:
        kept = work.activity not in ("copy", "fill")
        return Work(work.name if kept else work.activity, work.activity)

    r = capture.records
    kept = [r.works[w].activity not in without for w in r.work]
    columns = (r.work, r.lane, r.start_ns, r.duration_ns)
    work, lane, start, duration = (array(c.typecode, compress(c, kept)) for c in columns)
    records = Records(tuple(map(plain, r.works)), r.lanes, work, lane, start, duration)
    return replace(capture, records=records, counters=(), provenance=None)


def _totals(sides: Sequence[Side], inexact: str) -> Iterator[Total]:
    """The figures of both, also those that neither has: why they are not known."""
    locked = "lock" in {side.kind for side in sides}
    compiled = any(map(_is_compiled, sides))
    for name in FIGURES:
        if locked and name not in ("kernels", "copies", "fills"):
            yield Total(name, None, None, None, "a lock file does not say")
            continue
        if name in _OF_COMPILING and not compiled:
            yield Total(name, None, None, None, "nothing is compiled", applies=False)
            continue
        before, after = (_reading(name, side) for side in sides)
        whys = [f"{w}: {r.reason}" for w, r in (("before", before), ("after", after)) if r.reason]
        if before.reason == after.reason:
            whys = [before.reason] if before.reason else []
        bounds = ((before.low, before.high), (after.low, after.high))
        if before.at_least or after.at_least:
            moved = name in ("bytes", "transfers")
            whys.append(
                MOVES_MORE if moved else "calls on paper may launch more kernels than are counted"
            )
        if inexact and (name == "aten" or RULES[name].of_record):
            bounds, whys = ((-inf, inf), (-inf, inf)), [inexact]
        yield Total(name, before.value, after.value, bounds, "; ".join(whys))


def _is_compiled(side: Side) -> bool:
    """Whether it may be: a trace does not say."""
    try:
        return side.kind != "captures" or variants.parse(side.name).kind == "compile"
    except UsageError:  # no name of a variant: somebody else wrote the file
        return True


def _new_breaks(old: Capture, new: Capture) -> Iterator[Break]:
    """Where graphs break that did not, as far as that is known of both; lines may have moved."""
    if old.breaks is None or new.breaks is None:
        return
    known = Counter((b.function, b.reason) for b in old.breaks)
    for found in new.breaks:
        if known[found.function, found.reason] <= 0:
            yield found
        known[found.function, found.reason] -= 1


def _reading(name: str, side: Side) -> Reading:
    capture = side.capture
    assert capture is not None
    if {"copies": "copy", "fills": "fill"}.get(name) in side.unknown:
        return Reading(reason="the lock file does not say")
    if name != "aten":
        return RULES[name].read(Counted(capture))
    if not capture.on_cpu:
        return Reading(reason="a GPU was involved")
    ran = capture.count("aten")
    return Reading(ran, ran, ran)


def _setups(old: Capture, new: Capture, *names: str) -> dict[str, tuple[str, str]]:
    """Those of the names of what figures depend on in which both differ, as far as it is known."""
    found = {}
    for name in names:
        was, now = _setup(old, name), _setup(new, name)
        if was and now and was != now:
            found[name] = (was, now)
    if "device" in found:
        found.pop("architecture", None)
    return found


def _setup(capture: Capture, name: str) -> str | None:
    if name == "basis":
        return capture.basis
    if name in ("inputs", "target"):
        target = capture.target or Target("")
        return ", ".join(target.inputs) if name == "inputs" else target.spec.rpartition(":")[2]
    if name == "libraries":
        return ", ".join(map(" ".join, capture.environment.libraries))
    known: str | None = getattr(capture.environment, name)
    return known


def _notes(old: Capture, new: Capture, inexact: str) -> Iterator[Note]:
    for name, (was, now) in _setups(old, new, *_OTHER).items():
        note = _OTHER[name]
        yield replace(note, detail=note.detail.format(was, now))
    for where, capture in (("before", old), ("after", new)):
        for note in capture.notes:
            if note.code in EAGER_CODE:
                yield Note(note.code, f"{where}: {note.detail}")
    if inexact:
        yield Note("inexact", inexact)
    if any(c.paper and (c.paper.at_least or c.paper.at_most) for c in (old, new)):
        yield Note(
            "at-least",
            "calls on paper may launch more kernels than are counted: calls are compared",
        )
