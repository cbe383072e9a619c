"""What a budget may limit: one row each in `RULES`, name -> what it reads off a capture.

A reading is an interval: one number where it is known, open above where a count on paper is a lower
bound, as wide as the noise where it was measured. So one rule decides all limits (`status`), and
what is unknown is never kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median

from kernelcount.conclusions import comparison, noise
from kernelcount.model import Beside, Bounds, Capture, Numerics, Outcome, Paper, Status, note_codes

_NOTHING_RAN = "needs a GPU"
_NO_KERNELS = "no GPU was involved"
_NOT_COMPILED = "nothing is compiled, or this torch does not tell what is"

_READING = ("Tensor.__repr__", "torch.save")  # they wait for one value after the other

DOUBTED = ("incomplete", "doubtful-values", "late-environment", "unstable")
"""Notes which say that another count would be right, or as right."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A variant that was counted, with what belongs to it.

    `first`: the one that results are compared with; `over`: the one that a speedup is over.
    """

    capture: Capture
    beside: Beside | None = None
    first: bool = False
    over: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: it is from `low` to `high`, and shown as `value`; or unknown; and why."""

    value: float | None = None
    low: float = -inf
    high: float = inf
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.value is not None

    @property
    def at_least(self) -> bool:
        """Whether it is a lower bound."""
        return self.known and self.high == inf and isfinite(self.low)


MOVES_MORE = "what some calls on paper hand on inside of them is not known"
"""Why bytes are a lower bound."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that may be limited.

    `unit`: ``bytes``, ``ns``, ``x``, or "" for a number. `digits`: how many behind the point count.
    `measured`: it varies from run to run, so that it has a lower or an upper limit, never a value.
    `of_record`: it stands in the record of a call, so that a record with holes does not tell it.
    `timed`: calls must be timed for it; `modelled`: on a GPU it is read off the count on paper.
    `of_compiler`: the compiler tells it, also where what it made could not be counted.
    """

    summary: str
    read: Callable[[Counted], Reading]
    unit: str = ""
    digits: int = 0
    measured: bool = False
    of_record: bool = True
    timed: bool = False
    modelled: bool = False
    of_compiler: bool = False


def status(reading: Reading, bounds: Bounds) -> Status:
    """Whether a limit is kept, wherever in its interval the true value is."""
    low = -inf if bounds.low is None else bounds.low
    high = inf if bounds.high is None else bounds.high
    if not reading.known:
        return "undecided"
    if reading.low > high or reading.high < low:
        return "broken"
    return "kept" if low <= reading.low and reading.high <= high else "undecided"


def read(name: str, counted: Counted) -> Reading:
    """What a rule reads off a capture; unknown where the capture casts doubt on it."""
    rule = RULES[name]
    if rule.of_record and (reason := doubt(counted.capture)):
        return Reading(reason=reason)
    return rule.read(counted)


def doubt(capture: Capture) -> str:
    """Why the record of a call is not to be believed; "" where it is."""
    for note in capture.notes:
        if note.code in DOUBTED:
            return note.detail
    if capture.complete is False:
        return "launches have no device record"
    if not len(capture.records) and "memoised" in note_codes(capture.notes):
        return "nothing ran: the result was remembered from an earlier call"
    return ""


# ── readings ─────────────────────────────────────────────────────────────────────────────────────


def _exactly(value: float) -> Reading:
    return Reading(value, value, value)


def _at_least(value: float) -> Reading:
    return Reading(value, value, inf)


def _unknown(reason: str) -> Reading:
    return Reading(reason=reason)


def _kernels(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    seen = capture.count("kernel")
    return _at_least(seen) if _open(capture) else _exactly(seen)


def _open(capture: Capture) -> bool:
    """Whether calls on paper may launch more than was counted."""
    return capture.paper is not None and (capture.paper.at_least or capture.paper.at_most)


def _copies(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    seen = capture.count("copy")
    return _at_least(seen) if _open(capture) else _exactly(seen)


def _fills(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    if capture.basis == "paper":
        return _unknown("on paper the fills inside of library calls are not seen")
    return _exactly(capture.count("fill"))


def _launches(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    if capture.launches is None:
        on_paper = capture.basis == "paper"
        return _unknown(_NOTHING_RAN if on_paper else "the record holds no launches")
    return _exactly(capture.launches)


def _paper(counted: Counted) -> Paper | str:
    """What was worked out on paper of a variant, or why nothing was."""
    if counted.capture.paper is not None:
        return counted.capture.paper
    if counted.capture.on_cpu:
        return _NO_KERNELS
    beside = counted.beside
    if beside is None:
        return "it was not counted on paper"
    if beside.paper is not None:
        return beside.paper
    if isinstance(beside.outcome, Capture):
        return f"paper has another count: {'; '.join(d.detail for d in beside.differences)}"
    return f"not counted on paper: {beside.outcome.reason}"


def _generated(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        if "generated-unknown" in note_codes(capture.notes):
            return _unknown("this torch does not record what Inductor generated")
        return _exactly(capture.count("generated"))
    paper = _paper(counted)
    return _unknown(paper) if isinstance(paper, str) else _exactly(paper.generated)


def _library(counted: Counted) -> Reading:
    paper = _paper(counted)
    return _unknown(paper) if isinstance(paper, str) else _exactly(paper.library)


def _bytes(counted: Counted) -> Reading:
    paper = _paper(counted)
    return _unknown(paper) if isinstance(paper, str) else _moved(paper, 1)


def _transfers(counted: Counted) -> Reading:
    paper = _paper(counted)
    if isinstance(paper, str):
        return _unknown(paper)
    return _moved(paper, paper.unit) if paper.unit else _unknown("there is no array to count by")


def _moved(paper: Paper, unit: int) -> Reading:
    """Bytes read and written, in units.

    At the most so many where somebody's own op ran, at least where more is handed on than is known.
    """
    moved = (paper.read + paper.written) / unit
    if paper.at_most and paper.moves_more:
        return _unknown("some ops may move less than they are given, and others more")
    if paper.at_most:
        return Reading(moved, 0, moved)
    return _at_least(moved) if paper.moves_more else _exactly(moved)


def _number_of(attribute: str, unknown: str) -> Callable[[Counted], Reading]:
    """How many there are of what a capture lists under `attribute`, None where it cannot tell."""

    def found(counted: Counted) -> Reading:
        listed = getattr(counted.capture, attribute, None)
        return _unknown(unknown) if listed is None else _exactly(len(listed))

    return found


def _syncs(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    if capture.syncs is None:
        return _unknown("not looked for")
    number = len(capture.syncs)
    return _at_least(number) if may_wait_more(capture) else _exactly(number)


def may_wait_more(capture: Capture) -> bool:
    """Whether something on paper may wait that is not seen into, or as often as nobody knows."""
    if capture.paper is None:
        return False
    reads = any(sync.op in _READING for sync in capture.syncs or ())
    noted = {"unknown-call", "syncs-at-least"} & set(note_codes(capture.notes))
    return bool(reads or capture.paper.own or noted)


def _recompiles(counted: Counted) -> Reading:
    again = counted.capture.recompilations
    return _unknown(_NOT_COMPILED) if again is None else _exactly(len(again))


def _peak_memory(counted: Counted) -> Reading:
    peak = counted.capture.peak_memory
    return _unknown(_untimed(counted, "needs a GPU")) if peak is None else _exactly(peak)


def _untimed(counted: Counted, otherwise: str) -> str:
    """Why something is not known that is found by calling the variants in turn."""
    capture = counted.capture
    if capture.basis == "paper":
        return _NOTHING_RAN
    failed = next((n.detail for n in capture.notes if n.code == "not-timed"), "")
    return failed or ("calls were not timed" if capture.timing is None else otherwise)


def _call_time(counted: Counted) -> Reading:
    timing = counted.capture.timing
    if timing is None or not timing.samples_ns:
        return _unknown(_untimed(counted, "calls were not timed"))
    bounds = noise.interval(timing.samples_ns)
    if bounds is None:
        return Reading(median(timing.samples_ns), -inf, inf, "too few calls were timed to tell")
    return Reading(median(timing.samples_ns), *bounds)


def _speedup(counted: Counted) -> Reading:
    over = counted.over
    if over is None:
        return _unknown("there is nothing that it is over")
    if not isinstance(over, Capture):
        return _unknown(f"{over.name} is unmeasured: {over.reason}")
    if counted.capture.timing is None or over.timing is None:
        return _unknown(_untimed(counted, "calls were not timed"))
    speed = comparison.speed(over, counted.capture)
    if speed is None:
        return _unknown("too few calls were timed in turn to tell")
    return Reading(speed.ratio, speed.low, speed.high)


def _kernel_time(counted: Counted) -> Reading:
    capture = counted.capture
    if capture.basis == "paper":
        return _unknown(_NOTHING_RAN)
    if capture.on_cpu:
        return _unknown(_NO_KERNELS)
    if capture.untimed_kernels:
        return _unknown(f"{capture.untimed_kernels} kernels have no valid time")
    time = capture.kernel_time_ns
    # Two profiled calls of the same differ by less than that share; see `noise.SAME_TIME`.
    return Reading(time, time * (1 - noise.SAME_TIME), time * (1 + noise.SAME_TIME))


def _max_error(counted: Counted) -> Reading:
    if counted.first:
        return _unknown("the results of the others are compared with this one's")
    numerics = counted.capture.numerics
    if numerics is None:
        return _unknown(_untimed(counted, "results were not compared"))
    if numerics.verdict == "equal":
        return _exactly(0)
    if _apart(numerics):
        return Reading(inf, inf, inf, "; ".join(numerics.notes))
    if numerics.verdict in ("random", "nothing", "unknown") or numerics.max_abs is None:
        said = {"random": "the function draws random numbers", "nothing": "it gives no tensor"}
        notes = "; ".join(numerics.notes)
        return _unknown(said.get(numerics.verdict, notes or "results could not be compared"))
    if not isfinite(numerics.max_abs):
        return Reading(numerics.max_abs, inf, inf)
    return _exactly(numerics.max_abs)


def _apart(numerics: Numerics) -> bool:
    """Whether results differ by more than any value of theirs tells: NaN elsewhere, a shape."""
    if numerics.verdict != "different":
        return False
    return numerics.max_abs is None or numerics.differs not in (None, "values")


RULES: dict[str, Rule] = {
    "kernels": Rule("kernels that one call launches", _kernels),
    "launches": Rule("calls on the host that launch them", _launches),
    "copies": Rule("memcpys of one call", _copies),
    "fills": Rule("memsets of one call", _fills),
    "generated": Rule("kernels that Inductor generates", _generated, modelled=True),
    "library": Rule("calls that launch what Inductor did not generate", _library, modelled=True),
    "transfers": Rule("how often the largest array crosses GPU memory", _transfers, digits=1,
                      modelled=True),
    "bytes": Rule("bytes read and written", _bytes, "bytes", modelled=True),
    "graph_breaks": Rule("breaks in the compiled code",
                         _number_of("breaks", _NOT_COMPILED),
                         of_record=False, of_compiler=True),
    "recompiles": Rule("functions compiled once more", _recompiles, of_record=False,
                       of_compiler=True),
    "syncs": Rule("waits of the CPU for the GPU", _syncs, of_record=False),
    "peak_memory": Rule("bytes held at the peak, above the inputs", _peak_memory, "bytes",
                        of_record=False, timed=True),
    "speedup": Rule("time per call of another variant over this one's", _speedup, "x",
                    measured=True, of_record=False, timed=True),
    "call_time": Rule("time per call", _call_time, "ns", measured=True, of_record=False,
                      timed=True),
    "kernel_time": Rule("sum over the kernels of one call", _kernel_time, "ns", measured=True),
    "max_error": Rule("largest difference from the first variant's results", _max_error,
                      measured=True, of_record=False, timed=True),
}  # fmt: skip
