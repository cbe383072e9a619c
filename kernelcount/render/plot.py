"""What a plot of a sweep shows, and the plot in a terminal: time per call over size.

Both axes are logarithmic. The picture in a file is drawn in `image`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from math import ceil, floor, log10
from statistics import median
from typing import TYPE_CHECKING, Any

from kernelcount.conclusions import noise
from kernelcount.model import Capture, Crossing, Report, Run
from kernelcount.render.layout import Line, cells, fit, pad, paint, wrap
from kernelcount.render.sweep import marked
from kernelcount.render.wording import amount, clean, duration, percent, setting, target_name

if TYPE_CHECKING:
    from plotille import Canvas

TERMINAL = "-"
"""What stands for the terminal where a file could be named."""

FILES = (".svg", ".png")
"""Files that can be drawn."""

WHAT = f"time per call, median and its {percent(noise.CONFIDENCE)} interval"
SIZE = "size, as --size has it"

_LEAST = 2  # points to make a line
_NARROW = 0.3  # decades: where all times are nearly the same, no noise is blown up to fill the plot
_MARGIN = 0.04  # of an axis, beyond the outermost points

_MARKERS = "ox+*#%@&"  # distinguishable without colour, and one cell wide in every terminal
_COLOURS = ("bright_blue", "bright_yellow", "bright_magenta", "bright_cyan")
_NO_DOTS = "\u2800"  # the letter of Braille that is blank, yet no blank
_WIDEST, _HEIGHT, _LEFT = 100, 16, 9


@dataclass(frozen=True, slots=True)
class Point:
    """The median time of a call at one size, and the interval that holds it; in nanoseconds."""

    size: int
    time_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one variant, by ascending size."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A crossing of the curve of `variant`, what is said of it, and the sizes that it is at.

    One size, or the two between which it lies.
    """

    variant: str
    text: str
    sizes: tuple[float, ...]


def missing(where: str) -> str | None:
    """The library that a plot there needs and that is not installed; None where all is there."""
    library = "plotille" if where == TERMINAL else "matplotlib"
    return None if find_spec(library) else library


def curves(report: Report) -> list[Curve]:
    """A curve for each variant that was timed; none at all where nothing makes a line.

    A size of 0 has no place on a logarithmic axis.
    """
    runs = sorted((run for run in report.runs if run.size), key=lambda run: run.size or 0)
    variants = max((len(run.outcomes) for run in runs), default=0)
    found = [_curve(runs, i) for i in range(variants)]
    lines = any(len(curve.points) >= _LEAST for curve in found)
    return [curve for curve in found if curve.points] if lines else []


def title(report: Report) -> str:
    """The name of the target, and where it was timed."""
    name = target_name(report.target.spec) if report.target else ""
    return " · ".join(part for part in (name, setting(report.environment)) if part)


def marks(report: Report) -> list[Mark]:
    """Every crossing, in the order of the variants."""
    return [
        Mark(
            found.variant,
            f"{clean(found.variant)} crosses {clean(found.over)} {marked(crossing)}",
            _sizes(crossing),
        )
        for found in report.crossovers
        for crossing in found.crossings
    ]


def _sizes(crossing: Crossing) -> tuple[float, ...]:
    """Both ends, but for a size of 0, which has no place on a logarithmic axis."""
    if crossing.about is not None:
        return (crossing.about,)
    return tuple(float(size) for size in (crossing.low, crossing.high) if size)


def limits(values: Iterable[float]) -> tuple[float, float]:
    """The ends of an axis, as powers of ten, that leave a margin around all values."""
    powers = [log10(value) for value in values]
    low, high = min(powers), max(powers)
    widen = max(0.0, _NARROW - (high - low)) / 2 + _MARGIN * max(high - low, _NARROW)
    return low - widen, high + widen


def ticks(low: float, high: float) -> list[float]:
    """Round values between two powers of ten: 1, 10, 100; where these are few, some in between."""
    every = range(floor(low), ceil(high) + 1)
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        values = [float(d * 10.0**power) for power in every for d in digits]
        inside = [value for value in values if low <= log10(value) <= high]
        if len(inside) > _LEAST:
            break
    return inside


def bounds(every: Sequence[Curve]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The limits of both axes, as powers of ten: of the sizes, and of nanoseconds."""
    points = [point for curve in every for point in curve.points]
    times = [ns for point in points for ns in (point.low_ns, point.high_ns)]
    return limits([point.size for point in points]), limits(times)


def terminal(report: Report, *, width: int = 80, colour: bool = False) -> str:
    """Draw the plot on a terminal of `width` cells; empty where there is nothing to plot."""
    every = curves(report)
    if not every:
        return ""
    width = min(width, _WIDEST)
    lines: list[Line] = [((line, "bold"),) for line in wrap(f"{title(report)}: {WHAT}", width)]
    # The drawing has its own colours, and is ready.
    drawn = _drawn(report, every, width - _LEFT - 2, colour=colour)
    legend: list[Line] = [
        ((fit(f"  {_marker(i)}  {clean(curve.name)}", width), ""),) for i, curve in enumerate(every)
    ]
    for mark in marks(report):
        first, *more = wrap(mark.text, width - 5)
        legend += [((f"  :  {first}", ""),), *(((f"     {part}", ""),) for part in more)]
    return paint(lines, colour=colour) + drawn + paint(legend, colour=colour)


def _curve(runs: Sequence[Run], index: int) -> Curve:
    name, points = "", []
    for run in runs:
        outcome = run.outcomes[index]
        name = outcome.name
        timing = outcome.timing if isinstance(outcome, Capture) else None
        if timing is None or not timing.samples_ns or min(timing.samples_ns) <= 0:
            continue
        middle = median(timing.samples_ns)
        low, high = noise.interval(timing.samples_ns) or (middle, middle)
        points.append(Point(run.size or 0, middle, low, high))
    return Curve(name, tuple(points))


def _marker(index: int) -> str:
    return _MARKERS[index % len(_MARKERS)]


def _drawn(report: Report, every: Sequence[Curve], width: int, *, colour: bool) -> str:
    """The curves between their axes."""
    from plotille import Canvas

    (left, right), (bottom, top) = bounds(every)
    canvas = Canvas(width, _HEIGHT, left, bottom, right, top, mode="names")
    for at in (size for mark in marks(report) for size in mark.sizes):
        _dotted(canvas, log10(at), bottom, top)
    for curve, shade in zip(every, _COLOURS * len(every), strict=False):
        _line(canvas, curve, shade if colour else None)
    for i, (curve, shade) in enumerate(zip(every, _COLOURS * len(every), strict=False)):
        for point in curve.points:  # last, since lines must not hide them
            x, y = log10(point.size), log10(point.time_ns)
            canvas.point(x, y, color=shade if colour else None, marker=_marker(i))
    times = {_place(log10(t), bottom, top, _HEIGHT, 4): duration(t) for t in ticks(bottom, top)}
    rows = canvas.plot(linesep="\n").replace(_NO_DOTS, " ").split("\n")
    drawn = [
        f"{pad(times.get(_HEIGHT - 1 - i, ''), _LEFT - 1, right=True)} "
        f"{'┤' if _HEIGHT - 1 - i in times else '│'}{row}".rstrip()
        for i, row in enumerate(rows)
    ]
    return "\n".join([*drawn, *_below(every, left, right, width)]) + "\n"


def _line(canvas: Canvas, curve: Curve, colour: str | None) -> None:
    """Straight between the points, with the interval of each."""
    places = [(log10(p.size), log10(p.time_ns)) for p in curve.points]
    for (x0, y0), (x1, y1) in pairwise(places):
        canvas.line(x0, y0, x1, y1, color=colour)
    for point, (x, _) in zip(curve.points, places, strict=True):
        canvas.line(x, log10(point.low_ns), x, log10(point.high_ns), color=colour)


def _dotted(canvas: Any, x: float, bottom: float, top: float) -> None:
    steps = _HEIGHT * 2  # every other dot: a letter has four, one above the other
    for i in range(steps):
        canvas.point(x, bottom + (top - bottom) * i / steps)


def _place(power: float, low: float, high: float, n: int, dots: int) -> int:
    """In which of `n` letters along an axis a value lies, each of so many dots, as it is drawn."""
    return min(n - 1, round((power - low) / (high - low) * n * dots) // dots)


def _below(every: Sequence[Curve], left: float, right: float, width: int) -> list[str]:
    """The axis of sizes: those that were timed, as far as there is room for them."""
    axis, labels = ["─"] * width, ""
    for size in sorted({point.size for curve in every for point in curve.points}):
        place = _place(log10(size), left, right, width, 2)
        axis[place] = "┴"
        start = max(0, place - len(amount(size)) // 2)
        if start >= len(labels) + bool(labels) and start + len(amount(size)) <= width + 1:
            labels = labels.ljust(start) + amount(size)
    name = " " * (_LEFT + 1 + max(0, (width - cells(SIZE)) // 2)) + SIZE
    return [" " * _LEFT + "└" + "".join(axis), " " * (_LEFT + 1) + labels, name]
