"""The plot of a sweep: what it shows, in the terminal and in a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kernelcount.render import plot
from kernelcount.render.image import image
from kernelcount.render.layout import cells
from tests.render import samples, sweeps
from tests.render.test_sweep import evil, five_variants, on_paper, out_of_memory

PLAIN = [name for name in samples.EVIL if name.isprintable()]


@pytest.fixture(scope="module")
def drawn():
    """The pictures of one report, by format: each takes a third of a second."""
    return {kind: image(sweeps.crossed(), kind) for kind in ("svg", "png")}


def texts(svg):
    """The texts of the SVG, as a reader of XML sees them."""
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def tied():
    """No difference at the two smaller sizes."""
    rows = (100, 9, 9.01), (10**4, 9, 9.01), (10**6, 17, 9), (10**8, 170, 90)
    return sweeps.of_verdicts(*rows)


def test_in_a_terminal_it_has_axes_with_units_a_letter_for_each_variant_and_the_crossing():
    assert plot.terminal(sweeps.crossed()) == (
        """\
add_relu · NVIDIA H200 · torch 2.11.0: time per call, median and its 99 %
interval
  500 µs ┤                                                     ⡂           ⢀o
         │                                                     ⡂          ⡠⠊
         │                                                     ⡂        ⢀⠜ ⢀x
  200 µs ┤                                                     ⡂       ⡰⠁⢀⠔⠁
         │                                                     ⡂     ⢠⠊⢀⠔⠁
         │                                                     ⡂   ⢀⠔⢁⠔⠁
  100 µs ┤                                                     ⡂  ⡠⢊⠔⠁
         │                                                     ⡂⢀⡴⠕⠁
   50 µs ┤                                                     ⡢⠋
         │                                                   ⣠⠎⡂
         │                                                 ⡠⡞⠁ ⡂
         │                                               ⡠⡪⠊   ⡂
   20 µs ┤  x⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀x⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀x⢊⠔⠁    ⡂
         │                                           ⣀⣀o⠃      ⡂
   10 µs ┤                          ⢀⣀⣀⣀⡠⠤⠤⠤⠤⠒⠒⠒⠒⠉⠉⠉⠉          ⡂
         │  o⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠊⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉o⠉⠁                          ⡂
         └──┴─────────────────────┴────────────────────┴────────────────────┴──
           100                   1e4                  1e6                  1e8
                                 size, as --size has it
  o  eager
  x  compile
  :  compile crosses eager at about 5.2e6
"""
    )


def test_a_crossing_that_is_known_only_in_between_is_marked_at_both_ends():
    assert plot.terminal(tied()) == (
        """\
add_relu · NVIDIA H200 · torch 2.11.0: time per call, median and its 99 %
interval
         │                        ⡂                    ⡂                   ⢀o
         │                        ⡂                    ⡂                  ⡔⠁
         │                        ⡂                    ⡂                ⡠⠊
  100 µs ┤                        ⡂                    ⡂              ⡠⠊    x
         │                        ⡂                    ⡂            ⢠⠊    ⡠⠊
         │                        ⡂                    ⡂          ⢀⠔⠁   ⢀⠔⠁
   50 µs ┤                        ⡂                    ⡂        ⢀⠔⠁   ⢀⠔⠁
         │                        ⡂                    ⡂       ⡔⠁   ⢀⠔⠁
         │                        ⡂                    ⡂     ⡠⠊    ⡠⠊
         │                        ⡂                    ⡂   ⡠⠊    ⡠⠊
         │                        ⡂                    ⡂ ⢠⠊    ⡠⠊
   20 µs ┤                        ⡂                    ⣂⠔⠁   ⢀⠔⠁
         │                        ⡂              ⢀⣀⠤⠤⠒⠊o   ⢀⠔⠁
         │                        ⡂        ⣀⣀⠤⠔⠒⠉⠁     ⡂ ⢀⠔⠁
   10 µs ┤                        ⡂ ⢀⣀⡠⠤⠒⠊⠉            ⡂⡠⠊
         │  x⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛x⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒x
         └──┴─────────────────────┴────────────────────┴────────────────────┴──
           100                   1e4                  1e6                  1e8
                                 size, as --size has it
  o  eager
  x  compile
  :  compile crosses eager between 1e4 and 1e6
"""
    )


def test_without_colour_there_is_no_escape_and_with_it_no_other_letter(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = plot.terminal(five_variants())
    coloured = plot.terminal(five_variants(), colour=True)
    assert "\x1b" not in plain
    assert "\x1b" in coloured
    bare = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert bare == plain.splitlines()


@pytest.mark.parametrize("report", [sweeps.crossed, five_variants, evil, out_of_memory])
def test_it_is_never_wider_than_the_terminal(report):
    for width in (40, 53, 80, 200):
        for line in plot.terminal(report(), width=width).splitlines():
            assert cells(line) <= min(width, 100)
            assert line == line.rstrip()
            assert line.isprintable()


def test_sizes_may_come_in_any_order():
    runs = sweeps.crossed().runs
    assert plot.curves(sweeps.report(*reversed(runs))) == plot.curves(sweeps.report(*runs))


def test_a_point_has_the_interval_that_holds_the_median():
    eager, _ = plot.curves(sweeps.crossed())
    assert [p.size for p in eager.points] == [100, 10**4, 10**6, 10**8]
    point = eager.points[-1]
    assert point.time_ns == 469_000
    assert 469_000 * 0.99 < point.low_ns < 469_000 < point.high_ns < 469_000 * 1.01


def test_what_was_not_timed_leaves_a_gap_and_not_a_zero():
    eager, compiled = plot.curves(out_of_memory())
    assert [p.size for p in eager.points] == [100, 10**4, 10**6, 10**8]
    assert [p.size for p in compiled.points] == [100, 10**4, 10**6]


@pytest.mark.parametrize("report", [samples.sweep, on_paper, samples.add_relu, samples.evil])
def test_without_two_times_of_one_variant_there_is_nothing_to_plot(report):
    assert plot.curves(report()) == []
    assert plot.terminal(report()) == ""
    assert image(report(), "svg") == b""


def test_a_size_of_0_has_no_place_on_a_logarithmic_axis():
    runs = [sweeps.run(n, (9, 8), samples.eager(), samples.compiled()) for n in (0, 10, 100)]
    assert [[p.size for p in c.points] for c in plot.curves(sweeps.report(*runs))] == [
        [10, 100], [10, 100]
    ]  # fmt: skip
    ties = sweeps.of_verdicts((0, 9, 9.01), (10, 9, 8), (100, 9, 8))
    assert "between 0 and 10" in plot.terminal(ties)
    assert image(ties, "svg")


def test_times_that_are_all_the_same_still_have_axes():
    report = sweeps.of_verdicts((100, 9, 9), (1000, 9, 9))
    (low, high), (bottom, top) = plot.bounds(plot.curves(report))
    assert 1.9 < low < 2
    assert 3 < high < 3.1
    assert 0.3 < top - bottom < 0.4
    assert len(plot.ticks(bottom, top)) >= 2


def test_the_svg_says_what_it_shows_with_units(drawn):
    shown = texts(drawn["svg"])
    assert "add_relu · NVIDIA H200 · torch 2.11.0" in shown
    assert "time per call, median and its 99 % interval" in shown
    assert "size, as --size has it" in shown
    assert "compile crosses eager at about 5.2e6" in shown
    assert {"eager", "compile", "100", "1e8", "10 µs", "500 µs"} <= set(shown)


def test_names_in_an_svg_are_text_and_no_markup():
    report = evil()
    markup = "<script>alert(1)</script>&amp;\"'"
    names = ("_first", markup, "$x_2$", *(o.name for o in report.runs[0].outcomes[3:]))
    runs = [
        replace(run, outcomes=tuple(
            replace(o, name=name) for o, name in zip(run.outcomes, names, strict=True)
        ))
        for run in report.runs
    ]  # fmt: skip
    whole = sweeps.report(*runs, target=replace(sweeps.TARGET, spec=f"f.py:{samples.EVIL[3]}"))
    svg = image(whole, "svg")
    shown = texts(svg)
    assert {"_first", markup, "$x_2$"} <= set(shown)
    assert any(text.startswith("pwned") or "pwned" in text for text in shown)
    assert b"<script" not in svg


def test_the_same_report_gives_the_same_bytes_without_a_date(drawn):
    for kind in ("svg", "png"):
        assert image(sweeps.crossed(), kind) == drawn[kind]
    assert b"<dc:date>" not in drawn["svg"]
    other = subprocess.run(
        [sys.executable, "-c",
         "import sys\n"
         "from kernelcount.render.image import image\n"
         "from tests.render import sweeps\n"
         "sys.stdout.buffer.write(image(sweeps.crossed(), 'svg'))\n"
         "assert 'matplotlib.pyplot' not in sys.modules"],
        env={**os.environ, "PYTHONHASHSEED": "7", "MPLBACKEND": "TkAgg"},
        capture_output=True, check=True,
    )  # fmt: skip
    assert other.stdout == drawn["svg"]


def test_a_png_is_one(drawn):
    assert drawn["png"].startswith(b"\x89PNG\r\n")


def test_settings_of_the_users_neither_change_the_picture_nor_are_changed(drawn):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30, "text.parse_math": True}):
        assert image(sweeps.crossed(), "svg") == drawn["svg"]
        assert mpl.rcParams["font.size"] == 30
