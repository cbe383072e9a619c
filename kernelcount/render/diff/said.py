"""What changed, in words and cells: the same in every format.

Nothing is called slower that may be noise, and where a count is unknown nothing is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from kernelcount.model import Break, Change, Decision, Diff, Pair, Row, Speed, Total
from kernelcount.noise import SAME_TIME
from kernelcount.render.answer import Statement
from kernelcount.render.figures import LISTED, compared
from kernelcount.render.findings import Finding, Findings, Place, tally
from kernelcount.render.wording import (
    caption,
    clean,
    duration,
    joined,
    percent,
    plural,
    prose,
    setting,
    size,
    transfers,
)

LABELS = {
    "kernels": "kernels",
    "generated": "generated kernels",
    "library": "library calls",
    "copies": "copies",
    "fills": "fills",
    "launches": "launches",
    "aten": "ATen operations",
    "bytes": "bytes moved",
    "transfers": "transfers",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "syncs": "waits for the GPU",
    "peak_memory": "peak memory",
    "kernel_time": "kernel time",
    "call_time": "time per call",
}
"""How figures are called, by their names."""

# Shown also where both are alike.
_ALWAYS = ("kernels", "launches", "aten", "transfers", "peak_memory", "kernel_time", "call_time")
_BYTES = ("bytes", "peak_memory")
_TIMES = ("kernel_time", "call_time")

_FROM = percent(SAME_TIME)

TWO_RUNS = (
    "The times are of two runs: what is slower in one may have been the machine. They are told"
    f" apart where the intervals of their medians do not meet, and from {_FROM} on."
)
ONE_CALL = (
    "Kernel times are of single profiled calls, whose noise is not known: they are told apart from"
    f" {_FROM} on."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a variant on both sides; `remark` stands beside it."""

    label: str
    before: str
    after: str
    remark: str = ""


def statements(diff: Diff) -> Iterator[Statement]:
    """What came of each variant, those of which the same is to be said together."""
    about: dict[tuple[str, bool], list[str]] = {}
    for pair in diff.pairs:
        said = _unknown(pair) if pair.unknown else _changed(pair)
        about.setdefault((said.text, said.loud), []).append(clean(pair.name))
    traces = [p.after.kind for p in diff.pairs] == ["trace"]
    for (text, loud), names in about.items():
        who = "" if traces else joined(names)
        if loud:
            yield Statement(f"Unknown{' for ' if who else ''}{who}: {text}", loud)
        else:
            yield Statement(f"{who}: {text}" if who else text[0].upper() + text[1:])
    for alone, file in ((diff.only_before, diff.before), (diff.only_after, diff.after)):
        if alone:
            yield Statement(f"In {clean(file)} alone: {joined(map(clean, alone))}.")


def where(diff: Diff) -> str:
    """Device and torch, where all that is compared has the same."""
    sides = [side for pair in diff.pairs for side in (pair.before, pair.after)]
    found = {
        setting(s.capture.environment, on_paper=s.capture.basis == "paper")
        for s in sides
        if s.capture and s.kind != "lock"
    }
    return found.pop() if len(found) == 1 else ""


def _unknown(pair: Pair) -> Statement:
    return Statement(f"{prose(pair.unknown)} Nothing is concluded.", loud=True)


def _changed(pair: Pair) -> Statement:
    """Counts first, then time: fewer kernels are not called faster."""
    parts = [_counted(pair), *_moved(pair), *_timed(pair)]
    return Statement(f"{'; '.join(parts)}.")


def _counted(pair: Pair) -> str:
    known = {t.name: t for t in pair.known}
    total = known.get("kernels") or known.get("aten")
    noun = "operation" if total and total.name == "aten" else "kernel"
    if total is None or total.before is None or total.after is None:
        return f"how many {noun}s is not known of both"
    kinds = Counter(c.change for c in pair.changes if c.change in ("appeared", "vanished", "count"))
    before, after = round(total.before), round(total.after)
    if before != after:
        least = "at least " if at_least(pair) else ""
        return f"{least}{plural(after, noun)} instead of {before or 'none'}"
    changed = [f"{n} {_KINDS[kind]}" for kind, n in kinds.items()]
    if changed:
        return f"as many {noun}s, {after}, but not the same ({joined(changed)})"
    return f"the same {plural(after, noun)}" if after else f"no {noun}, as before"


_KINDS = {"appeared": "new", "vanished": "gone", "count": "more or less often"}


def at_least(pair: Pair) -> bool:
    """Whether a count on paper is a lower bound."""
    captures = [side.capture for side in (pair.before, pair.after)]
    return any(c and c.paper and (c.paper.at_least or c.paper.at_most) for c in captures)


def _moved(pair: Pair) -> Iterator[str]:
    total = pair.total("transfers")
    if total and total.before is not None and total.after is not None:
        before, after = transfers(total.before), transfers(total.after)
        if before != after:
            yield f"{after} array transfers instead of {before}"


def _timed(pair: Pair) -> Iterator[str]:
    """How the time of a call compares, or that of its kernels where calls were not timed."""
    of_call = pair.call_speed is not None
    speed = pair.call_speed or pair.kernel_speed
    what = "a call" if of_call else "kernel time"
    if speed is None:
        return
    if speed.verdict == "no difference":
        yield f"{what} takes as long, as far as can be told" if of_call else f"{what} as before"
    else:
        yield f"{what} is {compared(speed)}"


def noise(pairs: Sequence[Pair]) -> str:
    """What has to be known of the times that were compared; empty where none were."""
    if any(p.call_speed for p in pairs):
        return TWO_RUNS
    return ONE_CALL if any(p.kernel_speed for p in pairs) else ""


def broken_at(at: Break) -> str:
    """Where a graph breaks, and what breaks it."""
    line = "" if at.line is None else f":{at.line}"
    return f"graph break at {at.file}{line} ({at.reason})"


def notes(diff: Diff) -> list[str]:
    """What has to be known of the variants, each once, with those that it is about."""
    about: dict[str, list[str]] = {}
    for pair in diff.pairs:
        breaks = [f"new: {broken_at(at)}" for at in pair.breaks]
        for detail in (*breaks, *(note.detail for note in pair.notes)):
            about.setdefault(prose(detail), []).append(clean(pair.name))
    every = len(diff.pairs)
    return [
        text if len(names) == every else f"{joined(names)}: {text}" for text, names in about.items()
    ]


def worth_showing(pair: Pair) -> bool:
    """Whether there is more to be seen of a variant than that it is as before."""
    if any(c.change != "same" or c.renamed for c in pair.changes):
        return True
    speeds = [s.verdict for s in (pair.call_speed, pair.kernel_speed) if s]
    exact = [t for t in pair.known if t.name not in _TIMES]
    return any(t.before != t.after for t in exact) or set(speeds) > {"no difference"}


def lines(pair: Pair, *, full: bool = False) -> list[Line]:
    """The figures of one variant, without those that say nothing."""
    shown = []
    for total in pair.known:
        alike = total.before == total.after
        if alike and not full and (total.name not in _ALWAYS):
            continue
        speed = {"call_time": pair.call_speed, "kernel_time": pair.kernel_speed}.get(total.name)
        before, after = _least(total, 0, total.before), _least(total, 1, total.after)
        shown.append(Line(LABELS[total.name], before, after, _remark(total, speed)))
    return shown


def _least(total: Total, side: int, value: float | None) -> str:
    """A figure of one side, marked where it is a lower bound."""
    low, high = total.bounds[side] if total.bounds else (-inf, inf)
    open_above = isfinite(low) and high == inf
    return f"≥ {figure(total.name, value)}" if open_above else figure(total.name, value)


def figure(name: str, value: float | None) -> str:
    """One figure in the unit that suits it."""
    if value is None:
        return "unknown"
    if name in _TIMES:
        return duration(value)
    if name in _BYTES:
        return size(round(value))
    return transfers(value) if name == "transfers" else str(round(value))


def _remark(total: Total, speed: Speed | None) -> str:
    if speed is not None:
        return compared(speed)
    if total.before is None or total.after is None or total.before == total.after:
        return ""
    if total.name in _TIMES:
        return ""
    grown = total.after - total.before
    if total.name in _BYTES:
        return f"{'+' if grown > 0 else '-'}{size(abs(round(grown)))}"
    return f"{grown:+.1f}" if total.name == "transfers" else f"{round(grown):+d}"


def rows(pair: Pair, *, full: bool) -> tuple[list[Change], str]:
    """The changes to show, in their order, and a line that sums up the rest.

    Where there are too many, those are shown that change most of the time, or of the count.
    """
    changed = [c for c in pair.changes if c.change != "same" or c.renamed]
    same = len(pair.changes) - len(changed)
    if full:
        return list(pair.changes), ""
    shown = sorted(changed, key=_weight, reverse=True)[:LISTED]
    shown.sort(key=changed.index)
    cut = len(changed) - len(shown)
    rest = [f"{cut} more that changed"] if cut else []
    rest += [f"{same} the same"] if same and changed else []
    return shown, f"… and {joined(rest)}: --full shows all" if rest else ""


def _weight(change: Change) -> tuple[int, int]:
    """By which changes are ranked: nanoseconds between before and after, then executions."""
    before, after = change.before, change.after
    times = [(row.time_ns or 0) if row else 0 for row in (before, after)]
    counts = [row.count if row else 0 for row in (before, after)]
    return abs(times[1] - times[0]), abs(counts[1] - counts[0])


def word(change: Change) -> str:
    """What happened to a row, in one word."""
    if change.change == "same":
        return "renamed" if change.renamed else "same"
    if change.change == "count":
        more = change.before and change.after and change.after.count > change.before.count
        return "more" if more else "fewer"
    if change.change == "time":
        before, after = (r.time_ns or 0 for r in (change.before, change.after) if r)
        return "slower" if after > before else "faster"
    return {"appeared": "new", "vanished": "gone"}[change.change]


def named(change: Change, *, full: bool = False) -> tuple[str, str]:
    """The op and the name of a row; of one that has another name now, both names."""
    label, name = caption(change.row, full=full)
    if change.renamed and change.before is not None:
        was = caption(change.before, full=full)[1]
        name = f"{name}, was {was}" if was != name else name
    return label, name


def cell(row: Row | None) -> str:
    """How often a row ran, and how long it took in all."""
    if row is None:
        return ""
    often = f"×{row.count}"
    return f"{often} {duration(row.time_ns)}" if row.time_ns is not None else often


def decided(decision: Decision) -> str:
    """What an allowance says, and what there is."""
    name = decision.figure
    allowed = decision.allowance.text
    if decision.before is None and decision.after is None:
        return f"--max-{decision.allowance.name} {allowed}"
    before, after = figure(name, decision.before), figure(name, decision.after)
    return f"{LABELS[name]} {after}, {before} before, {_grown(decision)}{allowed} allowed"


def _grown(decision: Decision) -> str:
    if not decision.allowance.relative or not decision.before or decision.after is None:
        return ""
    return f"{percent(decision.after / decision.before - 1)} more, "


def findings(diff: Diff) -> Findings:
    """Every allowance and what came of it; what is unknown is undecided, with limits or without."""
    every = [_finding(diff, decision) for decision in diff.decisions]
    if not diff.decisions:
        every = [
            Finding(_group(diff), f"{p.name}: counts", "undecided", said.text)
            for p in diff.pairs
            if p.unknown and (said := _unknown(p))
        ]
    summary = tally(every) if diff.decisions else " ".join(s.text for s in statements(diff))
    return Findings("diff", tuple(every), summary)


def _group(diff: Diff) -> str:
    return f"{diff.before} → {diff.after}"


def _finding(diff: Diff, decision: Decision) -> Finding:
    pair = next((p for p in diff.pairs if p.name == decision.variant), None)
    unknown = bool(pair and pair.unknown)
    why = pair.unknown if pair and pair.unknown else decision.why
    message = decided(decision) + (f": {' '.join(why.split())}" if why else "")
    broken = decision.status == "broken"
    changes, breaks = (pair.changes, pair.breaks) if pair and broken else ((), ())
    appeared = [c for c in changes if word(c) in ("new", "more", "slower")]
    return Finding(
        _group(diff),
        f"{decision.variant}: --max-{decision.allowance.name} {decision.allowance.text}",
        decision.status,
        "" if decision.status == "kept" else message,
        (*(f"new: {broken_at(at)}" for at in breaks), *map(_detail, appeared[:LISTED])),
        tuple(Place(at.file, at.line) for at in breaks if at.line is not None),
        allowed=diff.allow_undecided and not unknown,
    )


def _detail(change: Change) -> str:
    return " ".join(filter(None, (f"{word(change)}:", *named(change))))
