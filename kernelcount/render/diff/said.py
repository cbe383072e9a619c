"""What changed, in words and cells: the same in every format.

Nothing is called slower that may be noise, and where a count is unknown nothing is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isclose, isinf
from pathlib import PurePath

from kernelcount.conclusions.noise import SAME_TIME
from kernelcount.model import Break, Change, Decision, Diff, Pair, Place
from kernelcount.render.answer import Statement
from kernelcount.render.diff import facts
from kernelcount.render.figures import LISTED, compared
from kernelcount.render.findings import Finding, Findings, tally
from kernelcount.render.wording import (
    clean,
    joined,
    percent,
    plural,
    prose,
    setting,
    transfers,
)

_FROM = percent(SAME_TIME)

TWO_RUNS = (
    "The times are of two runs: what is slower in one may have been the machine. They are told"
    f" apart where the intervals of their medians do not meet, and from {_FROM} on."
)
ONE_CALL = (
    "Kernel times are of single profiled calls, whose noise is not known: they are told apart from"
    f" {_FROM} on."
)


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
        if any(isinf(high) for _, high in total.bounds or ()):
            return  # a lower bound is no figure to compare with
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
    return f"graph break at {PurePath(at.file).name}{line} ({at.reason})"


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
    exact = [t for t in pair.known if t.name not in facts.TIMES]
    return any(t.before != t.after for t in exact) or set(speeds) > {"no difference"}


def decided(decision: Decision) -> str:
    """What an allowance says, and what there is."""
    name = decision.figure
    allowed = decision.allowance.text
    if decision.before is None and decision.after is None:
        return f"--max-{decision.allowance.name} {allowed}"
    before, after = facts.figure(name, decision.before), facts.figure(name, decision.after)
    return f"{facts.LABELS[name]} {after}, {before} before, {_grown(decision)}{allowed} allowed"


def _grown(decision: Decision) -> str:
    """By how much, in as many digits as tell it from what is allowed, and from what may be noise.

    Three are enough for what is measured in nanoseconds.
    """
    if not decision.allowance.relative or not decision.before or decision.after is None:
        return ""
    share = decision.after / decision.before - 1
    ends = [end for end in (decision.allowance.amount, SAME_TIME) if not isclose(end, share)]
    digits = (d for d in range(3) if percent(share, d) not in (percent(end, d) for end in ends))
    return f"{percent(share, next(digits, 3))} more, "


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
    appeared = [c for c in changes if facts.word(c) in ("new", "more", "slower")][:LISTED]
    places = [
        *(Place(at.file, at.line) for at in breaks if at.line is not None),
        *(place for c in appeared for place in c.places[:1]),
    ]
    return Finding(
        _group(diff),
        f"{decision.variant}: --max-{decision.allowance.name} {decision.allowance.text}",
        decision.status,
        "" if decision.status == "kept" else message,
        (*(f"new: {broken_at(at)}" for at in breaks), *map(_detail, appeared)),
        tuple({(place.file, place.line): place for place in places}.values()),
        allowed=diff.allow_undecided and not unknown,
    )


def _detail(change: Change) -> str:
    parts = (f"{facts.word(change)}:", *facts.named(change), facts.line(change))
    return " ".join(filter(None, parts))
