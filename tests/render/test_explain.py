"""What --explain adds."""

import json

import pytest

from kernelcount.model import Apart, Fusion, Origin, Place, Source
from kernelcount.render import render
from kernelcount.render.explain import Listing, shown
from kernelcount.render.fusion import _share
from kernelcount.render.layout import Page, paint
from kernelcount.render.origins import patterns

from . import samples, sourced


def explained(report, **options):
    """The sections on a screen, between what ran and what closes it."""
    plain = set(render(report, format="table", **options).splitlines())
    lines = render(report, format="table", explain=True, **options).splitlines()
    return "\n".join(line for line in lines if line not in plain or not line)


def test_lines_fusion_map_and_reasons_stand_in_sections():
    report = sourced.report(sourced.eager(), sourced.compiled())
    assert (
        explained(report).strip("\n")
        == """\
  eager: source lines, all forward
      kernel   line            in         module
  1   add      add_relu.py:5   add_relu
  2   relu     add_relu.py:5   add_relu

  compile: source lines, all forward
      kernel                        line            in         module
  1   triton_poi_fused_add_relu_0   add_relu.py:5   add_relu

  compile: what it replaces, by the numbers of eager
      kernel                        replaces   why no more
  1   triton_poi_fused_add_relu_0   1 and 2    nothing-shared
  Of 2 eager kernels, 2 (100 %) are replaced or left for a reason.
  nothing-shared: no other kernel of its graph shares data with it."""
    )


def test_a_plain_run_shows_none_of_it():
    assert "source lines" not in render(
        sourced.report(sourced.eager(), sourced.compiled()), format="table"
    )


@pytest.mark.parametrize(("number", "verb"), [(1, "is"), (2, "are")])
def test_of_one_kernel_it_is_said_in_the_singular(number, verb):
    found = Fusion("compile", "eager", matched=number, total=number)
    assert f" (100 %) {verb} replaced" in _share(found)


def test_eager_kernels_that_nothing_replaces_are_listed_with_the_reason():
    compiled = sourced.compiled(Source((sourced.ADD,), "forward", 0))
    text = explained(sourced.report(sourced.eager(), compiled))
    assert "replaces" in text
    other = Origin("relu", Place("other.py", 7, "f"))
    eager = sourced.eager(Source((sourced.ADD,)), Source((other,)))
    text = explained(sourced.report(eager, compiled))
    assert "  kernels of eager that compile has none for" in text
    assert "  2   relu     other.py:7   not-run" in text
    assert "  not-run: the compiled variant has not its line at all" in text


def test_what_is_not_known_is_counted_and_says_why():
    text = explained(samples.run_report(sourced.layers(2)))
    assert "The line of 1 record is not known: autograd or the compiler tells no line" in text
    nowhere = sourced.eager(None, None, unknown="not counted on paper: no card")
    text = explained(samples.run_report(nowhere))
    assert "1   add      unknown" in text
    assert "The line of 2 records is not known: not counted on paper: no card." in text


def test_modules_that_differ_in_numbers_alone_are_one():
    assert patterns(["layers.0.norm", "layers.1.norm", "head"]) == ["layers.*.norm", "head"]
    assert patterns(["layers.0.norm"]) == ["layers.0.norm"]
    text = explained(samples.run_report(sourced.layers(4)))
    assert "model.py:5   forward   layers.*.norm" in text


def test_the_document_has_the_map_record_by_record():
    apart = (Apart("reads-differently", "triton_red", "memory deps did not match"),)
    compiled = sourced.compiled(Source((sourced.ADD,), "forward", 0, apart=apart))
    report = sourced.report(sourced.eager(), compiled)
    eager, document = json.loads(render(report, format="json"))["variants"]
    assert (eager["fusion"], eager["aligned"]) == (None, None)
    assert document["aligned"] == {"matched": 2, "total": 2, "unknown": None}
    (fused,) = document["fusion"]
    assert (fused["kernel"], fused["record"]) == ("triton_poi_fused_add_relu_0", 0)
    assert fused["phase"] == "forward"
    assert fused["lines"] == [{"file": "add_relu.py", "line": 5, "function": "add_relu"}]
    assert [(r["record"], r["label"], r["by"]) for r in fused["replaces"]] == [
        (0, "add", "op"),
        (1, "relu", "line"),
    ]
    assert fused["alone"] is None
    assert fused["apart"][0]["said"] == "memory deps did not match"


def test_an_eager_kernel_that_is_left_has_an_entry_without_a_kernel():
    other = Origin("relu", Place("other.py", 7, "f"))
    eager = sourced.eager(Source((sourced.ADD,)), Source((other,)))
    report = sourced.report(eager, sourced.compiled(Source((sourced.ADD,), "forward", 0)))
    document = json.loads(render(report, format="json"))["variants"][1]
    fused, left = document["fusion"]
    assert left.keys() == fused.keys()
    assert left["replaces"][0].keys() == fused["replaces"][0].keys()
    assert [left[key] for key in ("kernel", "record", "lines", "phase")] == [None] * 4
    assert (left["replaces"][0]["by"], left["apart"]) == (None, [])
    assert document["fusion"][1]["alone"]["code"] == "not-run"
    assert document["fusion"][1]["replaces"][0]["record"] == 1


def test_markdown_has_the_sections_too():
    report = sourced.report(sourced.eager(), sourced.compiled())
    shown = render(report, format="markdown", explain=True)
    assert "**compile: what it replaces, by the numbers of eager**" in shown
    assert "- nothing-shared: no other kernel of its graph shares data with it." in shown


def test_columns_that_are_too_wide_are_cut_and_the_narrow_ones_are_not():
    listing = Listing("a title", (("", "name"), ("1", "n" * 90)), "rl", ("and so on",))
    lines = paint(shown(listing, Page(40, full=False)), colour=False).splitlines()
    assert lines[0] == "  a title"
    assert lines[2].startswith("  1   nnn")
    assert ("…" in lines[2], len(lines[2])) == (True, 40)
    assert lines[3] == "  and so on"
