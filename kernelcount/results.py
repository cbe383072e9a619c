"""What the Python API gives: frozen results that show the CLI's table when they are printed.

A figure is right, or asking for it raises NotMeasuredError with the reason: no assertion about an
unknown count can pass by accident.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from kernelcount import rules
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import (
    Checked,
    Environment,
    Held,
    Note,
    Numerics,
    Report,
    Row,
    Run,
    Speed,
    Status,
    Target,
    Unmeasured,
    Verdict,
    sealed,
)

if TYPE_CHECKING:
    from kernelcount.app import Answer
    from kernelcount.render.figures import Figures

_T = TypeVar("_T")
_ON_PAPER = "on paper it is not known"
_ONLY_PAPER = "device='paper' tells"
_NOT_TIMED = "no calls were timed; seconds=1 has them timed where something runs"


@sealed
class Whole(int):
    """A count that knows what it is of, so that a failed assertion can show it."""

    of: Count

    def __new__(cls, value: int, of: Count) -> Whole:
        """The count `value`, of `of`."""
        made = super().__new__(cls, value)
        object.__setattr__(made, "of", of)
        return made

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


@sealed
class Ratio(float):
    """A number of transfers that knows what it is of."""

    of: Count

    def __new__(cls, value: float, of: Count) -> Ratio:
        """The number `value`, of `of`."""
        made = super().__new__(cls, value)
        object.__setattr__(made, "of", of)
        return made

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


@sealed
class Names(dict[str, int]):
    """Kernels by their names, that know what they are of."""

    __slots__ = ("of",)
    of: Count

    def __init__(self, names: Mapping[str, int], of: Count) -> None:
        """How often each ran, of `of`."""
        super().__init__(names)
        object.__setattr__(self, "of", of)

    def __reduce__(self) -> tuple[type[dict[str, int]], tuple[dict[str, int]]]:
        return dict, (dict(self),)


@sealed
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What all results have in common.

    `report` is what all renderers see. `said`: texts that the CLI writes to stderr, such as an
    exception with the user's frames.
    """

    report: Report
    said: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether it holds the same, times included; which exception was raised is left out."""
        if type(other) is not type(self):
            return NotImplemented
        names = [f.name for f in fields(self) if f.compare]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((type(self), self.environment, self.target))

    @property
    def exit_code(self) -> int:
        """The exit code that the CLI would end with: 0, or 3 where something is not measured."""
        return self.report.exit_code

    @property
    def environment(self) -> Environment:
        """Device and versions that the figures depend on."""
        return self.report.environment

    @property
    def target(self) -> Target | None:
        """What was counted, with its inputs; None for recorded traces."""
        return self.report.target

    def render(
        self,
        format: str = "table",  # noqa: A002  as the flag is called
        *,
        width: int = 80,
        full: bool = False,
        explain: bool = False,
    ) -> str:
        """The result as the CLI writes it: table, json, markdown or csv.

        Raises UsageError for a format that there is not.
        """
        from kernelcount.render import render

        return render(self.report, format=format, width=width, full=full, explain=explain)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the CLI; unknown is None."""
        document: dict[str, Any] = json.loads(self.render("json"))
        return document

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from kernelcount.render.html import render

        return render(self.report)


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Count(Result):
    """What one variant of a function launches in one steady call, or a trace holds.

    Each figure is exact, or raises NotMeasuredError that says why it is not known; `measured` and
    `reason` ask without raising, and `to_dict()` has None. `error`: the exception by which
    torch.compile, or what it compiled, failed.
    """

    figures: Figures = field(kw_only=True)
    error: BaseException | None = field(default=None, kw_only=True, compare=False)

    @property
    def name(self) -> str:
        """The variant, or the file."""
        return self.figures.name

    @property
    def basis(self) -> Literal["measured", "paper"]:
        """Where the counts are from: a profiler saw it, or it was worked out on paper."""
        return "paper" if self.figures.on_paper else "measured"

    @property
    def measured(self) -> bool:
        """Whether it could be counted, be it on paper."""
        return self.figures.reason is None

    @property
    def reason(self) -> str | None:
        """Why it could not be counted; None where it was."""
        return self.figures.reason

    @property
    def stable(self) -> bool | None:
        """Whether repeated calls launched the same; None for a trace."""
        return self.figures.capture.stable if self.figures.capture else None

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be known beside the figures: a code and a sentence each."""
        return self.figures.notes

    @property
    def rows(self) -> tuple[Row, ...]:
        """What ran, by name and label, in the order in which each first ran; seen in part, too."""
        return self.figures.rows

    @property
    def kernel_names(self) -> dict[str, int]:
        """How often each kernel ran, by its name. Raises as `kernels` does."""
        self._exact()
        names: Counter[str] = Counter()
        for row in self.rows:
            names[row.name] += row.count if row.activity == "kernel" else 0
        return Names(+names, self)

    @property
    def kernels(self) -> int:
        """GPU kernels of one steady call. Raises where that is not known exactly."""
        return self._exact()

    @property
    def kernels_at_least(self) -> int:
        """GPU kernels that are certain, where paper cannot see into a library call."""
        f = self.figures
        if f.on_cpu:
            self._unknown("kernels_at_least", _on_cpu(f))
        return self._count("kernels_at_least", f.kernels, "none was seen")

    @property
    def copies(self) -> int:
        """Copies between or within memories (memcpy)."""
        return self._count("copies", self.figures.copies, _ON_PAPER)

    @property
    def fills(self) -> int:
        """Fills of memory (memset)."""
        return self._count("fills", self.figures.fills, _ON_PAPER)

    @property
    def launches(self) -> int:
        """Host calls that put kernels on the GPU; a launch of a CUDA graph is one."""
        why = _ON_PAPER if self.figures.on_paper else "the trace has no rows of the host"
        return self._count("launches", self.figures.launches, why)

    @property
    def graph_launches(self) -> int:
        """Launches of CUDA graphs, among `launches`."""
        why = _ON_PAPER if self.figures.on_paper else "the trace has no rows of the host"
        return self._count("graph_launches", self.figures.graph_launches, why)

    @property
    def generated(self) -> int:
        """Kernels that Inductor generates, on paper."""
        paper = self.figures.paper
        return self._count("generated", paper.generated if paper else None, _ONLY_PAPER)

    @property
    def library(self) -> int:
        """Calls of what Inductor does not generate, on paper: all of eager code that launches."""
        paper = self.figures.paper
        return self._count("library", paper.library if paper else None, _ONLY_PAPER)

    @property
    def cpu_ops(self) -> Mapping[str, int]:
        """With ``device="cpu"``: operations, ``aten`` and ``generated``."""
        f = self.figures
        why = "a GPU was counted for" if not f.on_cpu else "cannot be told on this torch"
        aten = self._known("cpu_ops", f.aten, why)
        return {"aten": aten, "generated": self._known("cpu_ops", f.generated, why)}

    @property
    def transfers(self) -> float:
        """Bytes read and written, in units of the largest array; modelled from shapes."""
        self._bytes_known("transfers")
        modelled = self.figures.modelled
        value = self._known(
            "transfers", modelled.transfers if modelled else None, "there is no array"
        )
        return Ratio(value, self)

    @property
    def bytes_read(self) -> int:
        """Bytes that kernels read from GPU memory; modelled from shapes."""
        self._bytes_known("bytes_read")
        modelled = self.figures.modelled
        return self._count("bytes_read", modelled.read if modelled else None, "")

    @property
    def bytes_written(self) -> int:
        """Bytes that kernels write to GPU memory; modelled from shapes."""
        self._bytes_known("bytes_written")
        modelled = self.figures.modelled
        return self._count("bytes_written", modelled.written if modelled else None, "")

    @property
    def kernel_time_ns(self) -> int:
        """Sum over the kernels of one call, in nanoseconds."""
        why = "on paper nothing takes time" if self.figures.on_paper else "no kernel has a time"
        if self.figures.untimed:
            self._unknown("kernel_time_ns", f"{self.figures.untimed} kernels have no valid time")
        return self._known("kernel_time_ns", self.figures.kernel_time_ns, why)

    @property
    def busy_ns(self) -> int:
        """Time during which at least one kernel ran, in nanoseconds."""
        why = "on paper nothing takes time" if self.figures.on_paper else "no kernel has a time"
        return self._known("busy_ns", self.figures.busy_ns, why)

    @property
    def call_time_ns(self) -> float:
        """Time of one call without a profiler, in nanoseconds: the median."""
        return self._known("call_time_ns", self.figures.call_time_ns, _NOT_TIMED)

    @property
    def speed(self) -> Speed:
        """How the time of a call compares with the first variant's."""
        return self._known("speed", self.figures.speed, _NOT_TIMED)

    @property
    def numerics(self) -> Numerics:
        """Whether the results are the first variant's."""
        return self._known("numerics", self.figures.numerics, _NOT_TIMED)

    @property
    def peak_memory(self) -> int:
        """Bytes that a call holds at its peak, above its inputs."""
        return self._known("peak_memory", self.figures.peak_memory, _NOT_TIMED)

    @property
    def graph_breaks(self) -> int:
        """Breaks in the code that torch.compile compiled."""
        return self._ruled("graph_breaks")

    @property
    def recompiles(self) -> int:
        """Functions that torch.compile compiled once more."""
        return self._ruled("recompiles")

    @property
    def syncs(self) -> int:
        """Waits of the CPU for the GPU, in one call."""
        return self._ruled("syncs")

    @property
    def verdict(self) -> Verdict:
        """What holds the variant back."""
        return self._known("verdict", self.figures.verdict, "told of what was measured on a GPU")

    def __repr__(self) -> str:
        return f"<Count {self.name}: {_briefly(self)}>"

    def _known(self, what: str, value: _T | None, why: str) -> _T:
        """The value, if it is one of a whole count. Raises NotMeasuredError."""
        f = self.figures
        if f.reason is not None or value is None:
            self._unknown(what, f.reason or why)
        if f.in_part:
            self._unknown(what, self._noted("incomplete", "more ran than was recorded"))
        assert value is not None
        return value

    def _count(self, what: str, value: int | None, why: str) -> int:
        """The same of what a call runs, which two calls in a row must agree on."""
        known = self._known(what, value, why)
        if self.figures.capture and (why := rules.doubt(self.figures.capture)):
            self._unknown(what, why)
        return Whole(known, self)

    def _ruled(self, name: str) -> int:
        """What a budget would limit by this name, where it is exact."""
        capture = self.figures.capture
        if self.figures.reason is not None or capture is None:
            self._unknown(name, self.figures.reason or "")
        reading = rules.read(name, rules.Counted(capture, self.figures.beside))
        if reading.value is None or reading.low != reading.high:
            self._unknown(name, reading.reason or f"at least {reading.low:g}")
        return Whole(int(reading.value), self)

    def _exact(self) -> int:
        """The kernels, known to the last one. Raises NotMeasuredError."""
        f = self.figures
        if f.on_cpu:
            self._unknown("kernels", f.reason or _on_cpu(f))
        if f.paper is not None and f.paper.at_least:
            why = self._noted("at-least", self._noted("unknown-call", "not all calls are known"))
            self._unknown("kernels", f"at least {f.kernels}, as kernels_at_least has it: {why}")
        return self._count("kernels", f.kernels, _ON_PAPER)

    def _noted(self, code: str, otherwise: str) -> str:
        return next((n.detail for n in self.notes if n.code == code), otherwise)

    def _bytes_known(self, what: str) -> None:
        """Raises NotMeasuredError where the bytes were not worked out, or are only a bound."""
        modelled = self.figures.modelled
        if self.figures.reason is None and modelled is None:
            self._unknown(what, _unmodelled(self.figures))
        if modelled is not None and modelled.at_most:
            self._unknown(what, "ops of your own may leave out some of what they are given")

    def _unknown(self, what: str, why: str) -> NoReturn:
        raise NotMeasuredError(f"{self.name}: {what} not known: {why}")


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Several(Result):
    """Counts beside each other: by position, or by the name of the variant or file."""

    counts: tuple[Count, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(c.name for c in self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Count]:
        return iter(self.counts)

    def __getitem__(self, key: str | int) -> Count:
        """Raises KeyError with the names that there are, or IndexError."""
        if isinstance(key, int):
            return self.counts[key]
        for count in self.counts:
            if count.name == key:
                return count
        raise KeyError(f"{key!r} is not one of {', '.join(self.names)}")

    def __repr__(self) -> str:
        each = "; ".join(f"{c.name}: {_briefly(c)}" for c in self.counts)
        return f"<{type(self).__name__} {each}>"


class Comparison(Several):
    """Variants of one function, side by side; the first is what the others are compared with."""

    __slots__ = ()


class Reading(Several):
    """What recorded traces and saved captures hold, file by file."""

    __slots__ = ()


@sealed
@dataclass(frozen=True, slots=True, eq=False)
class Checking:
    """What became of budgets: true where every limit is kept.

    `checked` holds every limit with its status; `said`: what the CLI writes to stderr.
    """

    checked: Checked
    said: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the CLI: 0; 1, broken; 2, a target failed; 3, undecided."""
        return self.checked.exit_code

    @property
    def kept(self) -> tuple[Held, ...]:
        """The limits that are kept."""
        return self._of("kept")

    @property
    def broken(self) -> tuple[Held, ...]:
        """The limits that are broken, and targets that launch otherwise than is recorded."""
        return self._of("broken")

    @property
    def undecided(self) -> tuple[Held, ...]:
        """The limits that could not be decided here, each with the reason in `why`."""
        return self._of("undecided")

    def _of(self, status: Status) -> tuple[Held, ...]:
        return tuple(held for held in self.checked.held if held.status == status)

    def __bool__(self) -> bool:
        return self.exit_code == 0

    def render(self, format: str = "table", *, width: int = 80, full: bool = False) -> str:  # noqa: A002
        """The result as the CLI writes it. Raises UsageError for a format that there is not."""
        from kernelcount.render import check

        if format not in check.FORMS:
            raise UsageError(f"there is no format {format!r}, but {', '.join(check.FORMS)}")
        return check.render(self.checked, form=format, width=width, full=full)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the CLI; unknown is None."""
        document: dict[str, Any] = json.loads(self.render("json"))
        return document

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    def __repr__(self) -> str:
        from kernelcount.render.check import summary

        return f"<Checking {summary(self.checked)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>"


def counts_of(answer: Answer, errors: Mapping[str, BaseException]) -> tuple[Count, ...]:
    """Each outcome of a report as a result of its own. `errors`: what was raised, by name."""
    from kernelcount.render.figures import figures_of

    made: list[Count] = []
    for run in answer.report.runs:
        for i, figures in enumerate(figures_of(run)):
            alone = Run(
                run.outcomes[i : i + 1],
                run.size,
                run.besides[i : i + 1],
                verdicts=run.verdicts[i : i + 1],
            )
            report = replace(answer.report, runs=(alone,), crossovers=())
            failed = isinstance(run.outcomes[i], Unmeasured)
            said = tuple(s for s in answer.said if failed and figures.name in s)
            error = errors.get(figures.name)
            made.append(Count(report, said, figures=figures, error=error))
    return tuple(made)


def _on_cpu(figures: Figures) -> str:
    return f"no GPU was involved: cpu_ops has the operations ({figures.total})"


def _unmodelled(figures: Figures) -> str:
    beside = figures.beside
    if beside is None:
        return "bytes are worked out on paper: device='paper', or a target named by a string"
    return getattr(beside.outcome, "reason", "paper does not know what ran")


def _briefly(count: Count) -> str:
    """A count in a few words."""
    f = count.figures
    if f.reason is not None:
        reason = f.reason if len(f.reason) <= _SHORT else f"{f.reason[:_SHORT]}..."
        return f"unmeasured: {reason}"
    if f.on_cpu:
        return f"{'1 operation' if f.total == 1 else f'{f.total} operations'} on the CPU"
    at_least = f.paper is not None and f.paper.at_least
    bound = "at least " if at_least else ""
    unsure = " seen" if f.in_part or count.stable is False else ""
    kernels = "1 kernel" if f.kernels == 1 else f"{f.kernels} kernels"
    return f"{bound}{kernels}{unsure}{' on paper' if f.on_paper else ''}"


_SHORT = 80  # characters of a reason in a repr
