"""Words and numbers."""

from __future__ import annotations

import pytest

from kernelcount.model import Environment
from kernelcount.render.wording import (
    clean,
    duration,
    plural,
    prose,
    rate,
    ratio,
    setting,
    target_name,
)

from . import samples


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "?"),
        (0, "0 µs"),
        (1, "1 ns"),
        (500, "500 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (2_200, "2.2 µs"),
        (28_000, "28 µs"),
        (462_900, "463 µs"),
        (999_400, "999 µs"),
        (999_600, "1 ms"),
        (1_814_000, "1.81 ms"),
        (12_340_000_000, "12.3 s"),
        (1_234_000_000_000, "1234 s"),
    ],
)
def test_a_duration_has_three_figures_and_the_unit_that_suits(ns, text):
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.7, "1.70x"), (9.994, "9.99x"), (9.996, "10.0x"), (99.96, "100x"), (1234, "1234x")],
)
def test_a_ratio_has_three_figures(value, text):
    assert ratio(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.256e12, "B", "4.26 TB/s"),
        (3.2e11, "B", "320 GB/s"),
        (9.996e11, "B", "1 TB/s"),
        (1.6e15, "FLOP", "1600 TFLOP/s"),
        (2.5e8, "FLOP", "250 MFLOP/s"),
        (12.0, "B", "12 B/s"),
    ],
)
def test_a_rate_has_three_figures_and_the_unit_that_suits(value, unit, text):
    assert rate(value, unit) == text


def test_a_count_is_plain_digits():
    assert plural(1, "kernel") == "1 kernel"
    assert plural(1_200_000, "kernel") == "1200000 kernels"
    assert plural(2, "copy", "copies") == "2 copies"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\x00", r"a\x0ab\x09c\x00"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("a\u200bb\u2028c", r"a\u200bb\u2028c"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud83d", "\ufffd"),
        ("核 é\xa0☃", "核 é\xa0☃"),
    ],
)
def test_characters_that_act_are_made_visible(text, shown):
    assert clean(text) == shown


def test_whatever_a_name_holds_it_can_be_printed_after_cleaning():
    for name in samples.EVIL:
        clean(name).encode()
        assert clean(name).isprintable()


def test_prose_is_one_line_with_an_end():
    assert prose("two\n  lines") == "two lines."
    assert prose("Done!") == "Done!"
    assert prose("") == ""


def test_a_target_is_called_by_its_function():
    assert target_name("a/b.py:Model.forward") == "Model.forward"
    assert target_name("lambda") == "lambda"


def test_of_a_setting_only_what_is_known_is_said():
    assert setting(samples.H200) == "NVIDIA H200 · torch 2.11.0"
    assert setting(Environment(kind="cpu")) == "CPU"
    assert setting(Environment()) == ""
    assert setting(Environment(), on_paper=True) == "on paper for an unknown GPU"
