"""A sweep: one table with a row for each size, and from which size on a variant is faster.

What is the same at all sizes is said once, in a sentence; what differs stands in the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelcount.model import Crossing, Crossover, Report, Run
from kernelcount.render import answer, paper
from kernelcount.render.answer import Statement, answer_run
from kernelcount.render.figures import Figures, Line, change, compared, figures_of, side_by_side
from kernelcount.render.wording import about, amount, clean, duration, joined, prose

Sized = Sequence[tuple[Run, list[Figures]]]

MORE = "--full lists the kernels and all figures of each size."
"""Where the rest is."""

# Figures of `side_by_side` that are shown for each size: what is counted, and what is worked out.
_COUNTS = ("kernels", "ATen operations", "generated kernels", "transfers", "at least")


@dataclass(frozen=True, slots=True)
class Group:
    """One figure: a column for each of some variants, `heads`, with a cell for each row.

    `figure`: whether these are numbers, which stand below each other by their last digit.
    """

    label: str
    heads: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    figure: bool = True


@dataclass(frozen=True, slots=True)
class Sheet:
    """The table of a sweep: `sizes` and, for those without a reason, a row of every group.

    `reasons`: why nothing was measured, for the sizes at which that is so; else empty.
    """

    sizes: tuple[str, ...]
    reasons: tuple[str, ...]
    groups: tuple[Group, ...]


def sized(report: Report) -> Sized:
    """The runs of a report that hold anything, with their figures."""
    return [(run, figures_of(run)) for run in report.runs if run.outcomes]


def statements(report: Report, runs: Sized) -> list[Statement]:
    """What the sweep comes to, then what holds at each size, once with the sizes it holds for."""
    crossed = [Statement(crossover(found)) for found in report.crossovers]
    return [*crossed, *_at_sizes(runs)]


def crossover(found: Crossover) -> str:
    """One sentence on the sizes at which a variant is faster, within what was timed."""
    name, base = clean(found.variant), clean(found.over)
    said = _several(found, name, base) if len(found.crossings) > 1 else _once(found, name, base)
    if not found.unknown:
        return said
    return f"{said} It is not known at {joined(map(amount, found.unknown))}."


def notes(runs: Sized) -> list[str]:
    """The notes of all sizes, each once, with the sizes it is about."""
    at: dict[str, list[int | None]] = {}
    for run, entries in runs:
        for note in answer.notes(entries):
            at.setdefault(note, []).append(run.size)
    every = len(runs)
    return [
        note if len(sizes) == every else f"at {named(sizes)}: {note}" for note, sizes in at.items()
    ]


def sheet(runs: Sized) -> Sheet | None:
    """The table; None where nothing was measured at any size."""
    known = [(run, entries) for run, entries in runs if not _reason(entries)]
    if not known:
        return None
    return Sheet(
        tuple(named([run.size]) for run, _ in runs),
        tuple(_reason(entries) for _, entries in runs),
        tuple(_groups(known)),
    )


def _once(found: Crossover, name: str, base: str) -> str:
    """The sentence where there is one crossing, or none."""
    if not found.crossings:
        return _throughout(found, name, base)
    (crossing,) = found.crossings
    verdicts = dict(zip(found.sizes, found.verdicts, strict=True))
    low, high = amount(crossing.low), amount(crossing.high)
    ends = f"{verdicts[crossing.low]} at {low}, {verdicts[crossing.high]} at {high}"
    faster, last = f"faster per call than {base}", amount(found.sizes[-1])
    begins = found.holds == "from"
    # The largest size timed is the end of what is known.
    until = f" on, as far as {last}" if begins else ""
    if crossing.about is not None:
        to = "from" if begins else "up to"
        return f"{name} is {faster} {to} a size of about {about(crossing.about)}{until}: {ends}."
    verb = "begins" if begins else "ceases"
    return f"{name} {verb} to be {faster} between sizes {low} and {high}: {ends}."


def _throughout(found: Crossover, name: str, base: str) -> str:
    """The sentence where it is faster at all sizes that were timed, or at none."""
    first, *between, last = map(amount, found.sizes)
    every = f"all {len(found.sizes)}" if between else "both"
    among = f"sizes timed, {first} {'to' if between else 'and'} {last}"
    if found.holds == "all":
        return f"{name} is faster per call than {base} at {every} {among}."
    if set(found.verdicts) == {"slower"}:
        return f"{name} is slower per call than {base} at {every} {among}."
    if set(found.verdicts) == {"no difference"}:
        said = f"{name} takes as long per call as {base} at {every} {among}"
        return f"{said}, within what can be told."
    return f"{name} is faster per call than {base} at none of the {among}."


def _several(found: Crossover, name: str, base: str) -> str:
    """The sentence where it is faster here and there."""
    pairs = list(zip(found.sizes, found.verdicts, strict=True))
    faster = joined(amount(size) for size, verdict in pairs if verdict == "faster")
    others = joined(amount(size) for size, verdict in pairs if verdict != "faster")
    return (
        f"{name} is faster per call than {base} at {faster}, and not at {others}: "
        f"there is no one size that parts them."
    )


def marked(crossing: Crossing) -> str:
    """Where a crossing is, in a few words: ``at about 3.1e6``, or ``between 1e4 and 1e6``."""
    if crossing.about is not None:
        return f"at about {about(crossing.about)}"
    return f"between {amount(crossing.low)} and {amount(crossing.high)}"


def _speed_cell(base: Figures, entry: Figures) -> str:
    """How its time compares with that of the first: ``1.68x faster``, the factor above 1."""
    if base.eager_code or entry.eager_code:
        return "eager code"
    return compared(entry.speed) or "unknown"


def _at_sizes(runs: Sized) -> Iterator[Statement]:
    """What is said of the counts: where it holds at all sizes, and every warning with its sizes."""
    measured = any(not _reason(entries) for _, entries in runs)
    sizes: dict[Statement, list[int | None]] = {}
    for run, entries in runs:
        if measured and _reason(entries):
            continue  # its row says so
        for statement in answer_run(_untimed(entries), times=False):
            sizes.setdefault(statement, []).append(run.size)
    whole = {run.size for run, entries in runs if _is_whole(entries)}
    said: dict[tuple[str, bool], list[str]] = {}
    for statement, at in sizes.items():
        if statement.loud or whole <= set(at):
            where = "every size" if len(at) == len(runs) else named(at)
            said.setdefault((where, statement.loud), []).append(statement.text)
    for (where, loud), texts in said.items():
        said_so = " ".join(texts)
        if said_so.startswith(paper.NO_KERNEL):  # a sentence goes on behind a colon
            said_so = said_so[0].lower() + said_so[1:]
        yield Statement(f"At {where}: {said_so}", loud=loud)


def _untimed(entries: Sequence[Figures]) -> list[Figures]:
    """Entries without what is said of their speed: that differs from size to size."""
    return [replace(e, speed=None) for e in entries]


def _is_whole(entries: Sequence[Figures]) -> bool:
    return all(e.reason is None for e in entries)


def _reason(entries: Sequence[Figures]) -> str:
    """Why nothing at all was measured at a size; empty where something was."""
    if any(e.reason is None for e in entries):
        return ""
    whose: dict[str, list[str]] = {}
    for entry in entries:
        whose.setdefault(prose(entry.reason or ""), []).append(clean(entry.name))
    if len(whose) == 1:
        return f"unmeasured: {next(iter(whose))}"
    return " ".join(f"{', '.join(names)} unmeasured: {why}" for why, names in whose.items())


def _groups(runs: Sized) -> Iterator[Group]:
    """The figures that stand in the table."""
    flat = [e for _, entries in runs for e in entries]
    timed = any(e.call_time_ns is not None for e in flat)
    lines = {line.label: line for line in side_by_side(flat)}
    shown = [lines[label] for label in _COUNTS if label in lines]
    if not timed or not _same_counts(runs):
        yield from (_of_line(line, runs) for line in shown)
    if timed:
        cells = tuple(
            "unknown" if e.call_time_ns is None else duration(e.call_time_ns) for e in flat
        )
        yield _of_line(Line("time per call", cells), runs)
        speeds = [_speed_cell(entries[0], e) for _, entries in runs for e in entries]
        yield from _beside_first("speed over", speeds, runs)
    elif "kernel time" in lines:
        yield _of_line(lines["kernel time"], runs)
        cells = tuple(change(entries[0], e) for _, entries in runs for e in entries)
        yield from _beside_first("beside", cells, runs)
    if (result := lines.get("result")) and set(result.cells) - {"", "equal"}:
        yield from _beside_first("result beside", result.cells, runs)


def _same_counts(runs: Sized) -> bool:
    """Whether one sentence says the counts of all sizes at which they are whole."""
    said = [
        tuple(s.text for s in answer_run(_untimed(entries), times=False) if not s.loud)
        for _, entries in runs
        if _is_whole(entries)
    ]
    return len(set(said)) == 1


def _of_line(line: Line, runs: Sized) -> Group:
    """A figure of every variant."""
    return Group(line.label, _heads(runs), _upright(line.cells, runs))


def _beside_first(label: str, cells: Sequence[str], runs: Sized) -> Iterator[Group]:
    """What compares the other variants with the first; nothing where there is nothing to show."""
    first, *others = _heads(runs)
    columns = _upright(cells, runs)[1:]
    if any(any(column) for column in columns):
        yield Group(f"{label} {first}", tuple(others), columns, figure=False)


def _heads(runs: Sized) -> tuple[str, ...]:
    """The variants; what ran as eager code at all sizes is not passed off as compiled."""
    upright = zip(*(entries for _, entries in runs), strict=True)
    return tuple(
        every[0].title if all(e.eager_code for e in every) else clean(every[0].name)
        for every in upright
    )


def _upright(cells: Sequence[str], runs: Sized) -> tuple[tuple[str, ...], ...]:
    """Cells of all variants size by size, as a column for each variant."""
    variants = len(runs[0][1])
    return tuple(tuple(cells[i::variants]) for i in range(variants))


def named(sizes: Sequence[int | None]) -> str:
    """``100, 1e4 and 1e6``."""
    return joined("unknown" if s is None else amount(s) for s in sizes)
