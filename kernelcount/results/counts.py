"""What one variant launches, or a trace holds: each figure is right, or raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

from kernelcount import rules
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Note, Numerics, Row, Speed, Verdict, sealed
from kernelcount.results.numbers import Names, Ratio, Whole
from kernelcount.results.result import Result
from kernelcount.results.words import briefly, on_cpu, unmodelled

if TYPE_CHECKING:
    from kernelcount.render.figures import Figures

_T = TypeVar("_T")
_ON_PAPER = "on paper it is not known"
_ONLY_PAPER = "device='paper' tells"
_NOT_TIMED = "no calls were timed; seconds=1 has them timed where something runs"


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
            self._unknown("kernels_at_least", on_cpu(f))
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
        return f"<Count {self.name}: {briefly(self)}>"

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
            self._unknown("kernels", f.reason or on_cpu(f))
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
            self._unknown(what, unmodelled(self.figures))
        if modelled is not None and modelled.at_most:
            self._unknown(what, "ops of your own may leave out some of what they are given")
        if modelled is not None and modelled.moves_more:
            self._unknown(what, rules.MOVES_MORE)

    def _unknown(self, what: str, why: str) -> NoReturn:
        raise NotMeasuredError(f"{self.name}: {what} not known: {why}")
