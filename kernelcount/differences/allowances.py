"""How much a figure may grow from one file to the other: what the flags allow, and what came of it.

A limit that cannot be decided is undecided, with the reason, and never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelcount.conclusions import noise
from kernelcount.errors import UsageError
from kernelcount.model import Allowance, Capture, Decision, Pair, Speed


@dataclass(frozen=True, slots=True)
class Limit:
    """A flag, ``--max-`` and the name: which `total` it is about, and what its help says."""

    total: str
    summary: str


LIMITS: dict[str, Limit] = {
    "kernels": Limit("kernels", "How many kernels more are allowed: +0, +2, +10%."),
    "launches": Limit("launches", "How many launches more."),
    "copies": Limit("copies", "How many copies (memcpy) more."),
    "fills": Limit("fills", "How many fills (memset) more."),
    "generated": Limit("generated", "On paper: how many kernels of Inductor's more."),
    "library": Limit("library", "On paper: how many library calls more."),
    "transfers": Limit("transfers", "On paper: how many array transfers more."),
    "breaks": Limit("graph_breaks", "How many graph breaks more."),
    "syncs": Limit("syncs", "How many waits of the CPU for the GPU more."),
    "memory": Limit("peak_memory", "How much more peak memory, in bytes or %: +0, +10%."),
    "slowdown": Limit(
        "call_time", "How much slower, beyond noise: 5%. Of a call; of kernels where none is timed."
    ),
}

_VALUE = re.compile(r"([+-]?)(\d+(?:\.\d+)?(?:e\d+)?)(%?)")


def parse(given: Mapping[str, str | None]) -> tuple[Allowance, ...]:
    """The allowances of the flags that were given, by their names in `LIMITS`.

    Raises UsageError for a value that is no growth: a plain number could be meant as a ceiling.
    """
    return tuple(_parse(name, text) for name, text in given.items() if text is not None)


def _parse(name: str, text: str) -> Allowance:
    flag, found = f"--max-{name} {text!r}", _VALUE.fullmatch(text.strip())
    if found is None:
        wanted = "5%" if name == "slowdown" else "+0, +2 or +10%"
        raise UsageError(f"{flag}: write how much more is allowed, as {wanted}")
    sign, number, percent = found.groups()
    if name == "slowdown" and not percent:
        raise UsageError(f"{flag}: write a share of the time that it took, as 5%")
    if not sign and not percent:
        raise UsageError(
            f"{flag}: write +{number} for {number} more than before; a ceiling is for a budget"
            " (kernelcount check)"
        )
    amount = float(number) * (-1 if sign == "-" else 1)
    return Allowance(name, amount / 100 if percent else amount, bool(percent), text.strip())


def decide(allowances: Sequence[Allowance], pairs: Sequence[Pair]) -> Iterator[Decision]:
    """What becomes of every allowance for every variant."""
    for pair in pairs:
        for allowance in allowances:
            total = pair.total(LIMITS[allowance.name].total)
            if total is not None and not total.applies:
                continue
            if pair.unknown:
                yield _decision(allowance, pair, "undecided", why="nothing is concluded")
            elif allowance.name == "slowdown":
                yield _slowdown(allowance, pair)
            else:
                yield _growth(allowance, pair)


def missing(allowances: Sequence[Allowance], names: Sequence[str]) -> Iterator[Decision]:
    """What becomes of the allowances for variants that are there no more."""
    for name in names:
        for allowance in allowances:
            why = "it is in the first file alone"
            figure = LIMITS[allowance.name].total
            yield Decision(allowance, name, figure, "undecided", None, None, why)


def _decision(
    allowance: Allowance, pair: Pair, status: str, *, total: str = "", why: str = ""
) -> Decision:
    figure = total or LIMITS[allowance.name].total
    of = pair.total(figure)
    before, after = (of.before, of.after) if of else (None, None)
    return Decision(allowance, pair.name, figure, status, before, after, why)  # type: ignore[arg-type]


def _growth(allowance: Allowance, pair: Pair) -> Decision:
    """A count, or bytes: decided wherever between their bounds both are."""
    total = pair.total(LIMITS[allowance.name].total)
    if total is None or total.before is None or total.after is None or total.bounds is None:
        return _decision(allowance, pair, "undecided", why=_not_known(pair, allowance.name))
    (least_before, most_before), (least_after, most_after) = total.bounds
    if least_after > _allowed(allowance, most_before):
        return _decision(allowance, pair, "broken")
    if most_after <= _allowed(allowance, least_before):
        return _decision(allowance, pair, "kept")
    return _decision(allowance, pair, "undecided", why=total.why)


def _allowed(allowance: Allowance, before: float) -> float:
    return before * (1 + allowance.amount) if allowance.relative else before + allowance.amount


def _not_known(pair: Pair, name: str) -> str:
    """Why a figure is not known of both."""
    total = pair.total(LIMITS[name].total)
    return total.why if total is not None else f"nothing is known of {name}"


def _slowdown(allowance: Allowance, pair: Pair) -> Decision:
    """The time of a call, or of its kernels where a file does not have that."""
    call = pair.call_speed is not None
    speed = pair.call_speed or pair.kernel_speed
    total = "call_time" if call else "kernel_time"
    if speed is None:
        return _without_speed(allowance, pair)
    of = pair.total(total)
    if not call and of is not None and of.why:
        return _decision(allowance, pair, "undecided", total=total, why=of.why)
    most = 1 + allowance.amount
    low, high = 1 / speed.high, 1 / speed.low  # the time after over the time before
    if high <= most:
        return _decision(allowance, pair, "kept", total=total)
    if low > most and speed.verdict == "slower":
        return _decision(allowance, pair, "broken", total=total)
    return _decision(allowance, pair, "undecided", total=total, why=_within_noise(speed, call=call))


def _without_speed(allowance: Allowance, pair: Pair) -> Decision:
    """Where no times compare: nothing ran before, or they are not known."""
    of = pair.total("kernel_time")
    if of is None or of.before != 0 or of.after is None:
        return _decision(allowance, pair, "undecided", why=_no_times(pair))
    status = "broken" if of.after else "kept"
    return _decision(allowance, pair, status, total="kernel_time")


def _no_times(pair: Pair) -> str:
    """Why neither the time of a call nor that of its kernels can be compared."""
    for note in pair.notes:
        if note.code in ("other-device", "other-inputs"):
            return note.detail
    captures = [side.capture for side in (pair.before, pair.after)]
    if any(isinstance(c, Capture) and c.basis == "paper" for c in captures):
        return "on paper nothing takes time"
    return "no time of it is known on both sides"


def _within_noise(speed: Speed, *, call: bool) -> str:
    """Why a time that is longer than allowed is no proof."""
    if speed.verdict == "slower":
        return "it is slower, but not known precisely enough to tell by how much"
    of = "times of two runs" if call else "kernel times of single profiled calls"
    return f"it may be noise: {of} are told apart from {100 * noise.SAME_TIME:.0f} % on"
