"""The sentence that answers, what spoils it, and what is worth a note.

Nothing is claimed here that was not measured: fewer kernels are not called faster, zero kernels
never win, and where one side is unknown nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelcount.conclusions.noise import same_time
from kernelcount.model import EAGER_CODE, NOT_TIMED, Note, Speed, note_codes
from kernelcount.render import breaks, paper
from kernelcount.render.figures import UNDERSTATED, Figures, by_values, timed
from kernelcount.render.wording import clean, duration, plural, prose, ratio

SPOILING = EAGER_CODE | {
    "recompiled",
    "compiled-in-profile",
    "unstable",
    "memoised",
    "incomplete",
    NOT_TIMED,
}
"""Notes without which the figures would be misread: they stand right after the sentence."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One paragraph of the answer; `loud` where it warns."""

    text: str
    loud: bool = False


def answer_run(entries: Sequence[Figures], *, times: bool = True) -> list[Statement]:
    """Say what the variants of one target come to, beside the first of them."""
    base, *others = entries
    said = [*_unknown(entries), *_no_achievement(entries)]
    compared = [e for e in others if e.comparable]
    if base.comparable and compared:
        said += [Statement(_compared(base, e, times=times)) for e in compared]
    else:
        said += [Statement(_alone(e, times=times)) for e in (base, *compared) if e.comparable]
    if any(e.on_cpu for e in entries):
        said.append(Statement("No GPU was involved: these are CPU operations, not GPU kernels."))
    return [*said, *_spoilt(entries)]


def answer_read(entry: Figures) -> list[Statement]:
    """Say what one trace or saved capture holds."""
    if entry.in_part:
        said = Statement(f"Unknown: {prose(_why(entry))}", loud=True)
    elif entry.on_paper:
        said = Statement(paper.alone(entry))
    elif entry.on_cpu:
        said = Statement(f"{plural(entry.total or 0, 'operation')} on the CPU, not GPU kernels.")
    else:
        said = Statement(_held(entry))
    return [said, *_no_achievement([entry]), *_spoilt([entry])]


def notes(entries: Sequence[Figures]) -> list[str]:
    """Word the notes that no statement has told, each once, with the variants it is about."""
    about: dict[str, list[str]] = {}
    for entry in entries:
        details = [note.detail for note in entry.notes if _is_left(entry, note)]
        details += [d for d in (paper.difference(entry), breaks.line(entry)) if d]
        for detail in map(prose, details):
            names = about.setdefault(detail, [])
            names += [entry.name] if entry.name not in names else []
    return [f"{_whose(names, entries)}{detail}" for detail, names in about.items()]


def legend(entries: Sequence[Figures]) -> str:
    """Explain the words of the table to somebody who meets them for the first time."""
    if any(e.on_cpu for e in entries):
        return (
            "ATen operations are PyTorch's own CPU routines; generated kernels are CPU code "
            "written by torch.compile."
        )
    if any(e.on_paper for e in entries):
        return paper.closing(next(e.capture.environment for e in entries if e.capture))
    if not any(e.capture for e in entries):
        return ""
    graphs = any(e.graph_launches for e in entries)
    moved = any(e.copies or e.fills for e in entries)
    return (
        "A kernel is one run of a GPU function; a launch is one CPU call that starts "
        + ("kernels, many at once for a CUDA graph" if graphs else "it")
        + ("; copies and fills move or set memory and are not kernels." if moved else ".")
        + (f" {paper.TRANSFER}" if any(e.modelled and e.modelled.unit for e in entries) else "")
    )


def _unknown(entries: Sequence[Figures]) -> Iterator[Statement]:
    why = {e.name: prose(_why(e)) for e in entries if e.in_part}
    if len(why) == len(entries) and len(set(why.values())) == 1:
        yield Statement(f"Unknown: {why[entries[0].name]} Nothing is concluded.", loud=True)
        return
    for name, reason in why.items():
        yield Statement(f"Unknown for {clean(name)}: {reason} Nothing is concluded.", loud=True)


def _why(entry: Figures) -> str:
    if entry.reason is not None:
        return entry.reason
    lost = "not every launch has its device record"
    return next((n.detail for n in entry.notes if n.code in UNDERSTATED), lost)


def _no_achievement(entries: Sequence[Figures]) -> Iterator[Statement]:
    """Variants whose counts are real and yet say nothing about what was asked."""
    for entry in entries:
        codes = EAGER_CODE if entry.eager_code else {"memoised"} if entry.remembered else set()
        for note in entry.notes:
            if note.code in codes and not entry.in_part:
                yield Statement(_disclaimer(entry, note), loud=True)


def _disclaimer(entry: Figures, note: Note) -> str:
    detail = prose(note.detail)
    if note.code == "memoised":
        return f"{clean(entry.name)} launched nothing in the counted call: {detail}"
    ran = "ran as eager code"
    return detail if ran in detail else f"'{clean(entry.name)}' {ran}: {detail}"


def _compared(base: Figures, other: Figures, *, times: bool) -> str:
    """One sentence on the counts and, where both are known, one on the kernel time."""
    if base.on_paper and other.on_paper:
        return paper.compared(base, other)
    if base.on_cpu != other.on_cpu:
        return f"{_alone(base, times=times)} {_alone(other, times=times)}"
    if other.speed is not None:
        return _per_call(base, other, other.speed)
    said = _counts(base, other)
    if moved := paper.moves(base, other, "makes"):
        said = f"{said} It {moved}."
    if not times or not timed(base, other):
        return said
    before, after = base.kernel_time_ns or 0, other.kernel_time_ns or 0
    now, then = duration(after), duration(before)
    it_takes = "Its kernel takes" if other.kernels == 1 else "Its kernels take"
    if same_time(before, after):
        return f"{said} {it_takes} about as long: {now}{f' and {then}' if then != now else ''}."
    return f"{said} {it_takes} {now} instead of {then}."


def _per_call(base: Figures, other: Figures, speed: Speed) -> str:
    """Whether a call is faster, and then what that comes from; fewer kernels alone are not it."""
    first, name = clean(base.name), clean(other.name)
    now, then = duration(other.call_time_ns), duration(base.call_time_ns)
    moved = paper.moves(base, other, "makes")
    if speed.verdict == "faster":
        through = f" It {moved}." if moved else ""
        return f"{name} is {ratio(speed.ratio)} faster per call: {_fewer(base, other)}.{through}"
    if speed.verdict == "slower":
        said = f"{name} is slower per call than {first}, {now} against {then}"
        after, before = other.total or 0, base.total or 0
        although = f", although it has {_fewer(base, other)}" if 0 < after < before else ""
        return f"{said}{although}{_waiting(other)}."
    both = now if now == then else f"{now} and {then}"
    said = f"{name} takes as long per call as {first}, {both}, within what can be told"
    return f"{said}: {_fewer(base, other)}{_waiting(other)}."


def _fewer(base: Figures, other: Figures) -> str:
    """How many kernels, or operations, beside how many."""
    before, after = base.total or 0, other.total or 0
    noun = "operation" if other.on_cpu else "kernel"
    if before == after:
        return f"as many {noun}s, {after}{_of_which(other)}" if after else f"no {noun} in either"
    return f"{plural(after, noun) if after else f'no {noun}'} instead of {before or 'none'}"


def _of_which(entry: Figures) -> str:
    """How many of a variant's operations on the CPU torch.compile has written."""
    if not entry.generated:
        return ""
    return f", {'all' if entry.generated == entry.total else entry.generated} generated"


def _waiting(entry: Figures) -> str:
    """Whether the GPU is idle for the most of a call: then it is launching that takes the time.

    Unless the verdict knows better, or knows that this cannot be told.
    """
    busy, call = entry.busy_ns, entry.call_time_ns
    if busy is None or call is None or busy * 2 > call:
        return ""
    bound = entry.verdict is None or entry.verdict.verdict == "launch-bound"
    so = ", so the call is launch-bound" if bound else ""
    return f"; the GPU is busy for {duration(busy)} of that{so}"


def _counts(base: Figures, other: Figures) -> str:
    first, name = clean(base.name), clean(other.name)
    before, after = base.total or 0, other.total or 0
    verb, noun = ("runs", "operation") if other.on_cpu else ("launches", "kernel")
    if before == after == 0:
        return f"No {noun}: neither {first} nor {name} {verb} any."
    if before == after:
        return f"{name} {verb} as many {noun}s as {first}: {after}{_of_which(other)}."
    if after == 0:
        return f"{name} {verb} no {noun}, {first} {before}."
    if after < before:
        return f"{name} {verb} {plural(after, noun)} instead of {before}."
    return f"{name} {verb} {plural(after, noun)}, {first} {before or 'none'}."


def _alone(entry: Figures, *, times: bool) -> str:
    count = entry.total or 0
    if entry.on_paper:
        return paper.alone(entry)
    if entry.on_cpu:
        return (
            f"{clean(entry.name)} runs {plural(count, 'operation') if count else 'no operation'}."
        )
    said = f"{clean(entry.name)} launches {plural(count, 'kernel') if count else 'no kernel'}."
    if not times or not entry.kernel_time_ns or entry.untimed:
        return said
    return f"{said} {'It takes' if count == 1 else 'They take'} {duration(entry.kernel_time_ns)}."


def _held(entry: Figures) -> str:
    said = plural(entry.kernels or 0, "kernel")
    if not entry.kernels:
        return f"{said}."
    if entry.kernel_time_ns is None:
        return f"{said}, their time unknown."
    least = "at least " if entry.untimed else ""
    return f"{said}, {least}{duration(entry.kernel_time_ns)} of kernel time."


def _spoilt(entries: Sequence[Figures]) -> Iterator[Statement]:
    """Warn of what makes the comparison doubtful, in the same words only once."""
    about: dict[str, list[str]] = {}
    for entry in entries:
        if entry.in_part:
            continue
        details = [n.detail for n in entry.notes if n.code in SPOILING - _told(entry)]
        unstable = entry.capture and entry.capture.stable is False
        if unstable and "unstable" not in note_codes(entry.notes):
            details.append("repeated calls did not launch the same kernels")
        details += _unlike(entry)
        for detail in details:
            about.setdefault(prose(detail), []).append(entry.name)
    for detail, names in about.items():
        whose = _whose(names, entries)
        yield Statement(f"Careful{' with ' if whose else ': '}{whose}{detail}", loud=True)


def _unlike(entry: Figures) -> list[str]:
    """Say that its results are not those of the first variant, and how."""
    found = entry.numerics
    if found is None or found.verdict not in ("different", "unknown"):
        return []
    if found.verdict == "unknown":
        return [f"its results could not be compared: {'; '.join(found.notes)}"]
    how = [*found.notes]
    if by_values(found):
        how.insert(0, f"by {found.max_abs:.2g} at the most")
    return [f"its results differ from those of the first variant: {'; '.join(how)}"]


def _is_left(entry: Figures, note: Note) -> bool:
    """Whether a note still has to be shown after the statements."""
    if prose(note.detail) == prose(entry.reason or ""):
        return False
    return note.code not in _told(entry) and (entry.in_part or note.code not in SPOILING)


def _told(entry: Figures) -> frozenset[str]:
    """Codes whose notes are already part of a statement on this entry."""
    if entry.in_part:
        return UNDERSTATED if entry.reason is None else frozenset()
    if entry.eager_code:
        return EAGER_CODE
    return frozenset({"memoised"}) if entry.remembered else frozenset()


def _whose(names: Sequence[str], entries: Sequence[Figures]) -> str:
    """Variants that a note is about; nothing where it is about all of them."""
    every = {e.name for e in entries}
    return "" if set(names) == every else f"{', '.join(clean(n) for n in names)}: "
