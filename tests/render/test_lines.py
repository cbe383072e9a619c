"""Source lines beside rows."""

import json
from dataclasses import replace

import pytest

from kernelcount.model import Origin, Place, Provenance, Source
from kernelcount.origins.sources import OfRow
from kernelcount.render import render
from kernelcount.render.lines import listed, numbered, ranges, said

from . import samples, sourced


def listing(report, **options):
    """The rows on a screen."""
    lines = render(report, format="table", **options).splitlines()
    start = next(
        i for i, line in enumerate(lines) if line.startswith("  eager   ") and "time" in line
    )
    return lines[start : lines.index("", start)]


def test_rows_show_their_line_and_a_compiled_kernel_the_rows_that_it_replaces():
    assert listing(sourced.report(sourced.eager(), sourced.compiled())) == [
        "  eager                                                                     time",
        "  1  add   add_relu.py:5                                                  276 µs",
        "  2  relu  add_relu.py:5                                                  187 µs",
        "  compile                                                                   time",
        "  1  triton_poi_fused_add_relu_0  (1 and 2)                               273 µs",
    ]


def test_numbers_are_those_of_kernels_and_copies_and_fills_have_none():
    base = samples.capture(
        "eager",
        ("Memcpy HtoD", "copy", None, 9_000),
        (samples.ADD, "kernel", "add", 276_000),
        ("Memset", "fill", None, 2_000),
        (samples.RELU, "kernel", "relu", 187_000),
        provenance=Provenance((None, Source((sourced.ADD,)), None, Source((sourced.RELU,)))),
    )
    report = sourced.report(base, sourced.compiled())
    shown = [line.split()[0] for line in listing(report)]
    assert shown == ["eager", "copy", "1", "fill", "2", "compile", "1"]
    assert listing(report)[-1].split()[1:5] == [samples.FUSED, "(1", "and", "2)"]
    assert f"1   {samples.FUSED}   1 and 2 " in render(report, format="table", explain=True)


def test_what_replaces_a_copy_says_so_by_its_name():
    copy = ("Memcpy HtoD", "copy", None, 9_000)
    numbers = numbered(samples.capture("eager", copy, (samples.ADD, "kernel", "add", 1)).rows())
    assert list(numbers.values()) == [1]
    keys = [("Memcpy HtoD", None, "copy"), *numbers]
    assert listed(keys, numbers, 3) == "1 and a copy"
    assert listed(keys[:1], numbers, 3) == "a copy"


def test_without_lines_the_names_of_the_kernels_stand_there():
    assert "vectorized_elementwise" in listing(samples.add_relu())[1]


def test_in_full_the_name_and_the_line_are_shown():
    shown = listing(sourced.report(sourced.eager(), sourced.compiled()), full=True)
    assert any("CUDAFunctor_add<float>" in line for line in shown)
    assert any(line.rstrip().endswith("add_relu.py:5") for line in shown)


def test_a_compiled_kernel_beside_nothing_shows_its_line():
    whole = samples.run_report(sourced.compiled())
    screen = render(whole, format="table")
    assert "triton_poi_fused_add_relu_0  add_relu.py:5 " in screen


@pytest.mark.parametrize("width", [40, 50, 80, 120])
def test_no_line_is_wider_than_the_page(width):
    long = Place("a_file_with_a_rather_long_name_for_a_screen.py", 12345)
    eager = sourced.eager(*[Source((Origin("add", long),))] * 2)
    report = sourced.report(eager, sourced.compiled())
    lines = render(report, format="table", width=width, explain=True).splitlines()
    assert max(map(len, lines)) <= width


def test_several_lines_are_the_first_and_how_many_more():
    places = (Place("/home/me/model.py", 5), Place("/home/me/model.py", 9))
    assert said(OfRow(places)) == "model.py:5 +1"
    assert said(OfRow(places[:1], attention=("flash",)), "attend") == "model.py:5 (flash)"
    assert said(OfRow(places[:1], attention=("flash",)), "_flash_attention") == "model.py:5"
    assert said(OfRow()) == said(None) == ""


def test_numbers_in_a_row_are_told_by_their_ends():
    assert ranges([1, 2, 4, 5, 6, 9]) == {"1": 1, "2": 1, "4 to 6": 3, "9": 1}


def test_of_many_rows_the_first_are_named_and_the_rest_counted():
    origins = [Origin(f"op{i}", Place("model.py", i)) for i in range(16)]
    works = [(f"k{i}", "kernel", f"op{i}", 1_000) for i in range(16)]
    sources = tuple(Source((origin,)) for origin in origins)
    eager = samples.capture("eager", *works, provenance=Provenance(sources))
    fused = sourced.compiled(Source(tuple(origins[::2]), "forward", 0))
    screen = render(sourced.report(eager, fused), format="table")
    assert "triton_poi_fused_add_relu_0  (1, 3, 5 and 5 more)" in screen
    text = render(sourced.report(eager, fused), format="table", explain=True)
    assert "1, 3, 5, 7, 9, 11, 13 and 15" in text


def test_a_line_that_could_act_on_the_screen_is_made_visible():
    evil = Place("a\x1b[31m.py", 5)
    assert said(OfRow((evil,))) == r"a\x1b[31m.py:5"


def test_rows_of_the_json_have_their_lines_module_and_phase():
    document = json.loads(
        render(sourced.report(sourced.eager(), sourced.compiled()), format="json")
    )
    for variant in document["variants"]:
        for row in variant["rows"]:
            assert row["lines"] == [{"file": "add_relu.py", "line": 5, "function": "add_relu"}]
            assert (row["module"], row["modules"], row["phase"]) == (None, [], "forward")


def test_what_is_not_known_is_null_and_says_why():
    eager = replace(sourced.eager(None, None), provenance=replace(
        sourced.eager().provenance, sources=(), unknown="cannot tell on torch 9"))  # fmt: skip
    (variant,) = json.loads(render(samples.run_report(eager), format="json"))["variants"]
    assert [row["lines"] for row in variant["rows"]] == [None, None]
    assert variant["lines_unknown"] == "cannot tell on torch 9"


def test_markdown_has_a_column_of_lines_where_any_is_known():
    shown = render(sourced.report(sourced.eager(), sourced.compiled()), format="markdown")
    assert "| 276 µs | add_relu.py:5 |" in shown
    assert "(1 and 2) |" in shown
    assert "| line |" not in render(samples.add_relu(), format="markdown")
