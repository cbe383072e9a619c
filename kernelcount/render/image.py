"""The plot of a sweep as a file: time per call over size, both axes logarithmic.

The same report gives the same bytes with the same version of matplotlib: neither the date nor a
random number is in them. No window is opened: no backend for screens is ever loaded.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

from kernelcount.model import Report
from kernelcount.render.layout import fit
from kernelcount.render.plot import (
    SIZE,
    WHAT,
    Curve,
    bounds,
    curves,
    marks,
    ticks,
    title,
)
from kernelcount.render.wording import amount, clean, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by all common kinds of colour blindness: M. Okabe and K. Ito, Color Universal Design.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^DvPX*"
_NAME = 60  # cells of a name in the legend
_TITLE = 80
_WIDTH, _HEIGHT, _LINE = 7.2, 4.3, 0.22  # inches: of all, without the legend, of a line of it

_SETTINGS: dict[str, Any] = {
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "kernelcount",
    "figure.dpi": 150,
    "font.size": 10,
}
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def image(report: Report, kind: str) -> bytes:
    """Draw the plot as ``svg`` or ``png``; empty where there is nothing to plot."""
    every = curves(report)
    if not every:
        return b""
    with _matplotlib():
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = figure.subplots()
        _axes(axes, every)
        axes.set_title(fit(title(report), _TITLE), fontsize="medium")
        _legend(figure, [*_draw(axes, every), *_cross(axes, every, report)])
        page = BytesIO()
        figure.savefig(page, format=kind, metadata=_METADATA[kind])
    return page.getvalue()


@contextmanager
def _matplotlib() -> Iterator[None]:
    """Its own defaults instead of the user's, and nothing said on stderr about fonts."""
    fonts = logging.getLogger("matplotlib.font_manager")
    before = fonts.level
    with warnings.catch_warnings():
        # A letter that the font does not have is a box, and what is deprecated is not ours to say.
        warnings.simplefilter("ignore")
        import matplotlib as mpl

        with mpl.rc_context():
            fonts.setLevel(logging.ERROR)
            mpl.rcdefaults()
            mpl.rcParams.update(_SETTINGS)
            try:
                yield
            finally:
                fonts.setLevel(before)


def _axes(axes: Axes, every: Sequence[Curve]) -> None:
    """Logarithmic axes with their units, and the numbers as everywhere else."""
    (left, right), (bottom, top) = bounds(every)
    axes.set(xscale="log", yscale="log", xlabel=SIZE, ylabel=WHAT)
    axes.set(xlim=(10**left, 10**right), ylim=(10**bottom, 10**top))
    sizes, times = ticks(left, right), ticks(bottom, top)
    axes.set_xticks(sizes, [amount(round(size)) for size in sizes])
    axes.set_yticks(times, [duration(time) for time in times])
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    axes.grid(which="major", color="#DDDDDD", linewidth=0.6)


def _draw(axes: Axes, every: Sequence[Curve]) -> Iterator[tuple[Any, str]]:
    """The curves, with the interval of each point as a bar; each with its name."""
    for i, curve in enumerate(every):
        points = curve.points
        drawn = axes.errorbar(
            [p.size for p in points],
            [p.time_ns for p in points],
            yerr=[[p.time_ns - p.low_ns for p in points], [p.high_ns - p.time_ns for p in points]],
            color=_COLOURS[i % len(_COLOURS)],
            marker=_MARKERS[i % len(_MARKERS)],
            markersize=5,
            capsize=3,
            linewidth=1.4,
        )
        yield drawn, clean(curve.name)


def _cross(axes: Axes, every: Sequence[Curve], report: Report) -> Iterator[tuple[Any, str]]:
    """The crossings: a line where one is known, a band where it lies in between."""
    names = [curve.name for curve in every]
    for mark in marks(report):
        colour = _COLOURS[names.index(mark.variant) % len(_COLOURS)]
        if len(mark.sizes) == 1:
            yield axes.axvline(mark.sizes[0], color=colour, linestyle="--", linewidth=1), mark.text
        else:
            yield axes.axvspan(*mark.sizes, color=colour, alpha=0.12, linewidth=0), mark.text


def _legend(figure: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    """All names, below the axes: there they hide nothing.

    They are set afterwards, since one that begins with "_" would be left out.
    """
    figure.set_size_inches(_WIDTH, _HEIGHT + _LINE * len(entries))
    legend = figure.legend(
        [handle for handle, _ in entries],
        [str(i) for i, _ in enumerate(entries)],
        loc="outside lower left",
        frameon=False,
        fontsize="small",
    )
    for text, (_, name) in zip(legend.get_texts(), entries, strict=True):
        text.set_text(fit(name, _NAME))
