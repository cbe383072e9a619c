"""The numbers that are shown of an outcome, the same ones in every format.

What is unknown is None here, null in JSON, an empty cell in CSV and "unknown" on a screen; nowhere
does it become a zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from kernelcount.conclusions.details import Detail, of_rows
from kernelcount.conclusions.noise import same_time
from kernelcount.model import (
    EAGER_CODE,
    NO_TIME,
    Beside,
    Capture,
    Environment,
    Fusion,
    Note,
    Numerics,
    Outcome,
    Paper,
    Row,
    Run,
    Speed,
    Unmeasured,
    Verdict,
    note_codes,
)
from kernelcount.origins import sources
from kernelcount.origins.sources import Key, OfRow
from kernelcount.render.wording import clean, duration, percent, plural, ratio, setting, size

UNDERSTATED = frozenset({"incomplete", "generated-unknown"})
"""Notes which say that more ran than was counted, or may have."""

LISTED = 12
"""Rows of a variant that are shown before the rest is summed up."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of one outcome. `reason` is given where it could not be measured.

    `capture` holds what was recorded, be it in part; times are in nanoseconds. `untimed` kernels
    are counted, and left out of the times. `aten` and `generated` replace all other counts where
    CPU operations were counted. `beside` is what paper says of what was measured, `speed` how its
    time compares with that of the first variant, `verdict` what holds it back, `fusion` which
    eager kernels its own replace.
    """

    name: str
    reason: str | None
    capture: Capture | None
    rows: tuple[Row, ...] = ()
    kernels: int | None = None
    copies: int | None = None
    fills: int | None = None
    launches: int | None = None
    graph_launches: int | None = None
    kernel_time_ns: int | None = None
    busy_ns: int | None = None
    untimed: int = 0
    aten: int | None = None
    generated: int | None = None
    beside: Beside | None = None
    speed: Speed | None = None
    verdict: Verdict | None = None
    fusion: Fusion | None = None

    @property
    def title(self) -> str:
        """What stands above the figures; it does not pass eager code off as compiled."""
        return f"{clean(self.name)} (eager code)" if self.eager_code else clean(self.name)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The capture's notes."""
        return self.capture.notes if self.capture else ()

    @property
    def details(self) -> tuple[Detail, ...]:
        """What stands behind each row, in their order."""
        return of_rows(self.capture) if self.capture else ()

    @property
    def origins(self) -> dict[Key, OfRow]:
        """Where each row comes from, by what tells rows apart."""
        return sources.of_rows(self.capture) if self.capture else {}

    @property
    def on_cpu(self) -> bool:
        """Whether CPU operations were counted."""
        return self.aten is not None

    @property
    def on_paper(self) -> bool:
        """Whether nothing ran on a GPU: the figures are worked out, not measured."""
        return bool(self.capture and self.capture.basis == "paper")

    @property
    def paper(self) -> Paper | None:
        """What was worked out for a GPU on which nothing ran."""
        return self.capture.paper if self.capture else None

    @property
    def basis(self) -> str:
        """Where the counts are from: ``measured`` or ``paper``."""
        return self.capture.basis if self.capture else "measured"

    @property
    def modelled(self) -> Paper | None:
        """What was worked out of the bytes, be it beside a measurement."""
        return self.beside.paper if self.beside else self.paper

    @property
    def call_time_ns(self) -> float | None:
        """The median time of a call, without a profiler."""
        timing = self.capture.timing if self.capture else None
        return median(timing.samples_ns) if timing and timing.samples_ns else None

    @property
    def peak_memory(self) -> int | None:
        """Bytes that a call holds at its peak above its inputs."""
        return self.capture.peak_memory if self.capture else None

    @property
    def numerics(self) -> Numerics | None:
        """Whether its results are those of the first variant."""
        return self.capture.numerics if self.capture else None

    @property
    def in_part(self) -> bool:
        """Whether the counts are only what was seen, there being more or perhaps more."""
        lost = self.capture is not None and self.capture.complete is False
        return self.reason is not None or lost or bool(note_codes(self.notes) & UNDERSTATED)

    @property
    def eager_code(self) -> bool:
        """Whether a variant that was to be compiled ran as eager code."""
        return bool(note_codes(self.notes) & EAGER_CODE)

    @property
    def remembered(self) -> bool:
        """Whether nothing ran since the result had been kept from an earlier call."""
        return not self.total and "memoised" in note_codes(self.notes)

    @property
    def comparable(self) -> bool:
        """Whether the counts say something about this variant."""
        return not (self.in_part or self.eager_code or self.remembered)

    @property
    def total(self) -> int | None:
        """Kernels, or operations where no GPU was involved."""
        return self.aten + (self.generated or 0) if self.aten is not None else self.kernels

    def where(self, otherwise: Environment) -> str:
        """Name the device: a saved capture knows its own, a trace may know none."""
        own = setting(self.capture.environment, on_paper=self.on_paper) if self.capture else ""
        return own or setting(otherwise)


def figures_of(run: Run) -> list[Figures]:
    """The figures of every outcome of a run, with what paper says of each."""
    nothing = (None,) * len(run.outcomes)
    all_of = zip(
        run.outcomes,
        run.besides or nothing,
        run.speeds or nothing,
        run.verdicts or nothing,
        run.fusions or nothing,
        strict=True,
    )
    return [
        replace(_with(figures(o), beside), speed=speed, verdict=verdict, fusion=fusion)
        for o, beside, speed, verdict, fusion in all_of
    ]


def _with(entry: Figures, beside: Beside | None) -> Figures:
    """The figures with what paper says of them, row by row too."""
    rows = entry.rows
    if beside and beside.ledger and entry.capture:
        rows = replace(entry.capture, records=beside.ledger).rows()
    return replace(entry, beside=beside, rows=rows)


def figures(outcome: Outcome) -> Figures:
    """Read all figures off the records of one outcome."""
    reason = outcome.reason if isinstance(outcome, Unmeasured) else None
    capture = outcome.seen if isinstance(outcome, Unmeasured) else outcome
    if capture is None:
        return Figures(outcome.name, reason, None)
    rows = capture.rows()
    count: Counter[str] = Counter()
    for row in rows:
        count[row.activity] += row.count
    if capture.on_cpu:
        # Of what was seen in part, a zero may only mean that the records were lost.
        known = reason is None or count.total() > 0
        aten, generated = (count[a] if known else None for a in ("aten", "generated"))
        if not generated and "generated-unknown" in note_codes(capture.notes):
            generated = None
        return Figures(outcome.name, reason, capture, rows, aten=aten, generated=generated)
    kernels, copies, fills = (
        count[a] if reason is None or count[a] else None for a in ("kernel", "copy", "fill")
    )
    if capture.paper is not None:
        # The rules do not see the copies and fills inside of library calls.
        copies = None if capture.paper.at_least else copies
        return Figures(outcome.name, reason, capture, rows, kernels, copies)
    time = _kernel_time(rows) if kernels else kernels
    return Figures(
        outcome.name,
        reason,
        capture,
        rows,
        kernels,
        copies,
        fills,
        capture.launches,
        capture.graph_launches,
        time,
        capture.busy_ns if time is not None else None,
        capture.untimed_kernels,
    )


def busy_share(entry: Figures) -> tuple[float, str] | None:
    """The share of the time for which anything runs on the GPU, 0 to 1, and of which time.

    Of a ``call``, where these were timed; else of the ``record``, from the start of the first to
    the end of the last. None where not everything that ran has its time.
    """
    capture = entry.capture
    if capture is None or entry.in_part or entry.on_cpu or entry.on_paper:
        return None
    r, call = capture.records, entry.call_time_ns
    if NO_TIME in r.start_ns or NO_TIME in r.duration_ns:
        return None
    whole, of = (call, "call") if call else (capture.span_ns, "record")
    return (min(1.0, capture.occupied_ns / whole), of) if whole else None


def _kernel_time(rows: Iterable[Row]) -> int | None:
    """Sum over the kernels that have a valid time; None where none has."""
    times = [r.time_ns for r in rows if r.activity == "kernel" and r.time_ns is not None]
    return sum(times) if times else None


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of every variant, ready to be shown.

    `remark` stands beside it where there is room; one to be `kept` stands below it otherwise.
    `of_each`: the parts of the remark by column, where it is made of such.
    """

    label: str
    cells: tuple[str, ...]
    remark: str = ""
    kept: bool = False
    of_each: tuple[str, ...] = ()


# Label, attribute, and whether the line is shown although every variant has a zero there.
_CPU_COUNTS = (("ATen operations", "aten", True), ("generated kernels", "generated", True))
_GPU_COUNTS = (
    ("kernels", "kernels", True),
    ("copies", "copies", False),
    ("fills", "fills", False),
    ("launches", "launches", True),
    ("graph launches", "graph_launches", False),
)

# On paper nothing is launched, and the fills inside of library calls are not known.
_PAPER_COUNTS = (("kernels", "kernels", True), ("copies", "copies", False))


def side_by_side(entries: Sequence[Figures]) -> list[Line]:
    """Put the figures of all variants in lines, without those that say nothing here."""
    on_cpu = any(e.on_cpu for e in entries)
    on_gpu = any(e.capture and not e.on_cpu for e in entries) or not on_cpu
    gpu_counts = _PAPER_COUNTS if any(e.on_paper for e in entries) else _GPU_COUNTS
    counts = (_CPU_COUNTS if on_cpu else ()) + (gpu_counts if on_gpu else ())
    lines = [
        Line(label, tuple(_count(e, key) for e in entries))
        for label, key, always in counts
        if always or any(getattr(e, key) for e in entries)
    ]
    from kernelcount.render import counters, paper, syncs

    if any(e.on_paper for e in entries):
        return lines + syncs.lines(entries) + paper.lines(entries)
    lines += paper.beside(entries) + counters.lines(entries)
    called = any(e.call_time_ns is not None for e in entries)
    if any(e.kernels for e in entries):
        sums = tuple(_time(e, e.kernel_time_ns) for e in entries)
        busy = tuple(_time(e, e.busy_ns) for e in entries)
        base, *others = entries
        remark = change(base, others[0]) if len(others) == 1 and not called else ""
        lines.append(Line("kernel time", sums, remark))
        if busy != sums:
            lines.append(Line("busy", busy, "overlap counted once"))
    return lines + syncs.lines(entries) + _of_calls(entries)


def _of_calls(entries: Sequence[Figures]) -> list[Line]:
    """What was found by calling the variants in turn, without a profiler."""
    lines = []
    called = any(e.call_time_ns is not None for e in entries)
    alone = len(entries) == 2  # noqa: PLR2004  one variant beside the first
    if called:
        cells = tuple(
            "unknown" if e.call_time_ns is None else duration(e.call_time_ns) for e in entries
        )
        lines.append(Line("time per call", cells, _precisely(entries[1].speed) if alone else ""))
    if not alone and any(e.speed for e in entries):
        cells = tuple(compared(e.speed) for e in entries)
        lines.append(Line(f"beside {entries[0].title}", cells))
    if any(_first_call(e) for e in entries) and called:
        cells = tuple(duration(_first_call(e)) for e in entries)
        lines.append(Line("first call", cells, _paid_off(entries)))
        lines += _compiling(entries)
    if any(e.peak_memory is not None for e in entries):
        cells = tuple("unknown" if e.peak_memory is None else size(e.peak_memory) for e in entries)
        lines.append(Line("peak memory", cells, "above the inputs"))
    return lines + _of_results(entries)


def _of_results(entries: Sequence[Figures]) -> list[Line]:
    """Whether the results agree, and how far they are from the same in float64 where that is known.

    The first variant is what the others are held against: of its own there is only the distance.
    """
    base, *others = entries
    lines = []
    if any(e.numerics for e in others):
        odd = [_of_result(e.numerics) for e in others]
        if len(others) > 1:
            odd = [said and f"{e.title}: {said}" for e, said in zip(others, odd, strict=True)]
        remark = "; ".join(filter(None, odd))
        lines.append(Line("result", ("", *map(_result, others)), remark, True, ("", *odd)))
    away = [e.numerics.error if e.numerics else None for e in entries]
    known = (e.numerics.base_error for e in others if e.numerics and e.numerics.error is not None)
    away[0] = next(known, away[0])
    if any(a is not None for a in away):
        cells = tuple("" if a is None else f"{a:.2g}" for a in away)
        lines.append(Line("error", cells, "beside the same in float64"))
    elif base.numerics and base.numerics.notes:
        lines.append(Line("error", ("unknown",) * len(entries), base.numerics.notes[-1], kept=True))
    return lines


def _result(entry: Figures) -> str:
    """Whether a variant gives the same as the first."""
    found = entry.numerics
    if found is None:
        return ""
    if found.verdict == "close" and found.max_abs is not None:
        return f"within {found.max_abs:.2g}"
    if found.verdict == "different":
        return f"differs, {found.max_abs:.2g}" if by_values(found) else "differs"
    return "not compared" if found.verdict == "nothing" else found.verdict


def by_values(found: Numerics) -> bool:
    """Whether it is how far values are apart that tells how results differ."""
    return found.max_abs is not None and found.differs in (None, "values")


def _of_result(found: Numerics | None) -> str:
    """What is odd of a result that agrees, or why there is none; what differs is a warning."""
    if found is None or found.verdict in ("different", "unknown"):
        return ""
    said = list(found.notes)
    if found.verdict == "random":
        said.insert(0, "other random numbers are drawn")
    return "; ".join(map(clean, said))


def _first_call(entry: Figures) -> int | None:
    price = entry.capture.price if entry.capture else None
    return price.first_call_ns if price else None


def _paid_off(entries: Sequence[Figures]) -> str:
    """After how many calls the one other variant has made up for its slower first call."""
    if len(entries) != 2 or entries[1].speed is None:  # noqa: PLR2004
        return ""
    base, other = entries
    first, then = _first_call(base), _first_call(other)
    gain = (base.call_time_ns or 0) - (other.call_time_ns or 0)
    if other.speed is None or other.speed.verdict != "faster" or gain <= 0:
        return ""
    if first is None or then is None or then <= first:
        return ""
    return f"pays off after {ceil((then - first) / gain):,} calls"


def _compiling(entries: Sequence[Figures]) -> list[Line]:
    """What of the first calls was spent in torch.compile, where it was asked to compile."""
    prices = [e.capture.price if e.capture else None for e in entries]
    if not any(p and p.compile_ns for p in prices):
        return []
    cells = tuple(duration(p.compile_ns) if p and p.compile_ns else "" for p in prices)
    # Recompilations that are known one by one are told with their guards.
    told = any(e.capture and e.capture.recompilations for e in entries)
    again = [] if told else [p.recompiles for p in prices if p and p.recompiles]
    return [Line("compiling", cells, plural(sum(again), "recompile") if again else "")]


def _precisely(speed: Speed | None) -> str:
    """How a time compares with another, and how precisely that is known."""
    if speed is None or speed.verdict == "no difference":
        return compared(speed)
    within = (speed.high - speed.low) / 2 / speed.ratio
    return f"{compared(speed)}, ±{percent(within, 1)}"


def compared(speed: Speed | None) -> str:
    """How a time compares with another: ``1.68x faster``; empty where that is not known."""
    if speed is None or speed.verdict == "no difference":
        return speed.verdict if speed else ""
    return f"{ratio(speed.ratio if speed.verdict == 'faster' else 1 / speed.ratio)} {speed.verdict}"


def change(base: Figures, other: Figures) -> str:
    """Say how the kernel time changed, such as ``1.70x less``; empty where that is not known."""
    if not timed(base, other):
        return ""
    before, after = base.kernel_time_ns or 0, other.kernel_time_ns or 0
    if same_time(before, after):
        return ""
    return f"{ratio(before / after)} less" if after < before else f"{ratio(after / before)} more"


def timed(base: Figures, other: Figures) -> bool:
    """Whether the kernel times of both are whole and may be held against each other."""
    return all(e.comparable and e.kernel_time_ns and not e.untimed for e in (base, other))


def same_rows(one: Figures, other: Figures) -> bool:
    """Whether both ran the same things equally often, whatever the order and the time."""
    first, second = ({(r.name, r.activity): r.count for r in f.rows} for f in (one, other))
    return first == second


def listed(rows: Sequence[Row], *, full: bool) -> tuple[list[Row], list[Row]]:
    """Rows to show and rows to sum up: all in the order they first ran, or the heaviest first."""
    if full or len(rows) <= LISTED:
        return list(rows), []
    ranked = sorted(rows, key=_weight, reverse=True)
    return ranked[:LISTED], ranked[LISTED:]


def _weight(row: Row) -> int:
    """By which rows are ranked: their time, or on paper the bytes that they move."""
    if row.time_ns is not None:
        return row.time_ns
    return -1 if row.read is None or row.written is None else row.read + row.written


def _count(entry: Figures, key: str) -> str:
    value: int | None = getattr(entry, key)
    if value is None:
        of_cpu = key in ("aten", "generated")
        return "n/a" if entry.capture and entry.on_cpu != of_cpu else "unknown"
    if entry.paper is not None and entry.paper.at_least and key == "kernels":
        return f"≥ {value}"
    return f"{value} seen" if entry.in_part else str(value)


def _time(entry: Figures, ns: int | None) -> str:
    if ns is None:
        return "n/a" if entry.on_cpu else "unknown"
    if entry.in_part:
        return f"{duration(ns)} seen"
    return f"≥ {duration(ns)}" if entry.untimed else duration(ns)
