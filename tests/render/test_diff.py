"""What changed between two files, in every format, as whole texts."""
# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import csv
import json
from io import StringIO
from xml.etree import ElementTree as ET

import pytest

from kernelcount.model import Allowance, Decision
from kernelcount.render.diff import FORMS, render, said

from . import diffs
from .junit_schema import faults


def test_a_regression_says_what_grew_and_shows_what_is_new():
    assert (
        render(diffs.regression(), form="table")
        == """\
base.json → head.json                                 NVIDIA H200 · torch 2.11.0

eager: the same 2 kernels; kernel time as before.
compile: 2 kernels instead of 1; a call is 1.30x slower.

  broken     compile: kernels 2, 1 before, +0 allowed
  broken     compile: time per call 364 µs, 280 µs before, 30 % more, 5% allowed
limits: 4 kept, 2 broken

  compile         before    after
  kernels              1        2   +1
  launches             1        2   +1
  peak memory     400 MB   800 MB   +400 MB
  kernel time     273 µs   363 µs   1.33x slower
  time per call   280 µs   364 µs   1.30x slower
                                                               before      after
  new      triton_poi_fused_gelu_1                                      ×1 90 µs
  … and 1 the same: --full shows all

The times are of two runs: what is slower in one may have been the machine. They
are told apart where the intervals of their medians do not meet, and from 7 %
on.
"""
    )


def test_where_nothing_changed_there_is_little_to_show():
    assert (
        render(diffs.nothing_changed(), form="table")
        == """\
base.json → head.json                                 NVIDIA H200 · torch 2.11.0

eager: the same 2 kernels; kernel time as before.
compile: the same 1 kernel; kernel time as before.

limits: 2 kept

Kernel times are of single profiled calls, whose noise is not known: they are
told apart from 7 % on.
"""
    )


def test_of_what_is_unknown_nothing_is_concluded():
    assert (
        render(diffs.unknown(), form="table")
        == """\
base.json → head.json                                 NVIDIA H200 · torch 2.11.0

eager: the same 2 kernels; kernel time as before.
Unknown for compile: after: 1 of 2 launches has no device record. Nothing is
concluded.

  undecided  compile: --max-kernels +0: after: 1 of 2 launches has no device
             record
limits: 1 kept, 1 undecided

Kernel times are of single profiled calls, whose noise is not known: they are
told apart from 7 % on.
"""
    )


def test_another_kernel_for_the_same_op_is_renamed():
    assert (
        render(diffs.renamed(), form="table")
        == """\
base.json → head.json                                 NVIDIA H200 · torch 2.11.0

eager: 3 kernels instead of 4; kernel time is 1.58x faster.

  eager         before     after
  kernels            4         3   -1
  launches           4         3   -1
  kernel time    35 µs   22.1 µs   1.58x faster
                                                             before        after
  renamed  mm  nvjet_tst_128x256, was nvjet_tst_192x176    ×1 10 µs   ×1 10.1 µs
  faster   add  vectorized_elementwise…nctor_add<float>>    ×1 9 µs      ×1 4 µs
  fewer    relu  vectorized_elementwis…nch_clamp_scalar>   ×2 16 µs      ×1 8 µs

note: after: 0 graphs were compiled.

Kernel times are of single profiled calls, whose noise is not known: they are
told apart from 7 % on.
"""
    )


def test_two_traces_have_no_variant_to_name():
    assert (
        render(diffs.traces(), form="table")
        == """\
base.json → head.json                                 NVIDIA H200 · torch 2.11.0

1 kernel instead of 2; kernel time is 1.70x faster.

  undecided  trace: --max-memory +0: calls were not timed
limits: 1 undecided

  trace         before    after
  kernels            2        1   -1
  launches           2        1   -1
  kernel time   463 µs   273 µs   1.70x faster
                                                              before       after
  gone     add  vectorized_elementwise…nctor_add<float>>   ×1 276 µs
  gone     relu  vectorized_elementwis…nch_clamp_scalar>   ×1 187 µs
  new      triton_poi_fused_add_relu_0                                 ×1 273 µs

Kernel times are of single profiled calls, whose noise is not known: they are
told apart from 7 % on.
"""
    )


def test_a_regression_is_githubs_markdown():
    assert (
        render(diffs.regression(), form="markdown")
        == """\
**base.json → head.json** · NVIDIA H200 · torch 2.11.0

eager: the same 2 kernels; kernel time as before.

compile: 2 kernels instead of 1; a call is 1.30x slower.

|  | limit |  |
| --- | --- | --- |
| broken | compile: --max-kernels +0 | kernels 2, 1 before, +0 allowed |
| broken | compile: --max-slowdown 5% | time per call 364 µs, 280 µs before, 30 % more, 5% allowed |

Limits: 4 kept, 2 broken.

| compile | before | after |  |
| --- | ---: | ---: | --- |
| kernels | 1 | 2 | +1 |
| launches | 1 | 2 | +1 |
| peak memory | 400 MB | 800 MB | +400 MB |
| kernel time | 273 µs | 363 µs | 1.33x slower |
| time per call | 280 µs | 364 µs | 1.30x slower |

|  | name | before | after |
| --- | --- | ---: | ---: |
| new | <code>triton_poi_fused_gelu_1</code> |  | ×1 90 µs |
|  | … and 1 the same: --full shows all |  |  |

The times are of two runs: what is slower in one may have been the machine. They are told apart where the intervals of their medians do not meet, and from 7 % on.
"""
    )


def test_every_figure_row_and_limit_is_a_line():
    assert (
        render(diffs.regression(), form="csv")
        == """\
kind,variant,name,label,activity,line,change,before,after,before_ns,after_ns,why
figure,eager,kernels,,,,,2,2,,,
figure,eager,copies,,,,,0,0,,,
figure,eager,fills,,,,,0,0,,,
figure,eager,launches,,,,,2,2,,,
figure,eager,kernel_time,,,,,,,463000,463000,
row,eager,"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",add,kernel,,same,1,1,276000,276000,
row,eager,"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)",relu,kernel,,same,1,1,187000,187000,
figure,compile,kernels,,,,,1,2,,,
figure,compile,copies,,,,,0,0,,,
figure,compile,fills,,,,,0,0,,,
figure,compile,launches,,,,,1,2,,,
figure,compile,peak_memory,,,,,400000000,800000000,,,
figure,compile,kernel_time,,,,,,,273000,363000,
figure,compile,call_time,,,,,,,280000,364000,
row,compile,triton_poi_fused_add_relu_0,triton_poi_fused_add_relu_0,kernel,,same,1,1,273000,273000,
row,compile,triton_poi_fused_gelu_1,triton_poi_fused_gelu_1,kernel,,appeared,0,1,,90000,
limit,eager,max-kernels +0,,,,kept,2,2,,,
limit,eager,max-slowdown 5%,,,,kept,,,463000,463000,
limit,eager,max-launches +1,,,,kept,2,2,,,
limit,compile,max-kernels +0,,,,broken,1,2,,,
limit,compile,max-slowdown 5%,,,,broken,,,280000,364000,
limit,compile,max-launches +1,,,,kept,1,2,,,
"""
    )


def test_a_regression_is_an_annotation_for_each_limit_that_is_broken():
    assert (
        render(diffs.regression(), form="github")
        == """\
::error title=base.json → head.json%2C compile%3A --max-kernels +0%3A broken::kernels 2, 1 before, +0 allowed%0Anew: triton_poi_fused_gelu_1
::error title=base.json → head.json%2C compile%3A --max-slowdown 5%25%3A broken::time per call 364 µs, 280 µs before, 30 %25 more, 5%25 allowed%0Anew: triton_poi_fused_gelu_1
4 kept, 2 broken
"""
    )


def test_what_is_undecided_is_a_warning():
    assert (
        render(diffs.unknown(), form="github")
        == """\
::warning title=base.json → head.json%2C compile%3A --max-kernels +0%3A undecided::--max-kernels +0: after: 1 of 2 launches has no device record
1 kept, 1 undecided
"""
    )


def test_every_limit_is_a_test_case():
    assert (
        render(diffs.regression(), form="junit")
        == """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kernelcount diff" tests="6" failures="2" errors="0">
  <testsuite name="base.json → head.json" tests="6" failures="2" errors="0" skipped="0">
    <testcase classname="base.json → head.json" name="eager: --max-kernels +0" />
    <testcase classname="base.json → head.json" name="eager: --max-slowdown 5%" />
    <testcase classname="base.json → head.json" name="eager: --max-launches +1" />
    <testcase classname="base.json → head.json" name="compile: --max-kernels +0">
      <failure message="kernels 2, 1 before, +0 allowed" type="broken">kernels 2, 1 before, +0 allowed
new: triton_poi_fused_gelu_1</failure>
    </testcase>
    <testcase classname="base.json → head.json" name="compile: --max-slowdown 5%">
      <failure message="time per call 364 µs, 280 µs before, 30 % more, 5% allowed" type="broken">time per call 364 µs, 280 µs before, 30 % more, 5% allowed
new: triton_poi_fused_gelu_1</failure>
    </testcase>
    <testcase classname="base.json → head.json" name="compile: --max-launches +1" />
  </testsuite>
</testsuites>
"""
    )


def test_of_many_changes_the_heaviest_are_shown_in_their_order():
    shown = render(diffs.many(), form="table")
    assert "… and 9 more that changed: --full shows all\n" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("  gone")] == [
        f"kernel_{i:02}" for i in range(8, 20)
    ]
    assert render(diffs.many(), form="table", full=True).count("\n  gone") == 20


def test_the_document_has_every_row_of_every_variant_and_null_where_one_is_not_there():
    document = json.loads(render(diffs.regression(), form="json"))
    assert (document["schema"], document["command"]) == (1, "diff")
    rows = [(r["variant"], r["name"], r["change"]) for r in document["rows"]]
    assert rows[2:] == [
        ("compile", "triton_poi_fused_add_relu_0", "same"),
        ("compile", "triton_poi_fused_gelu_1", "appeared"),
    ]
    assert [name for variant, name, _ in rows[:2]] == [
        r["name"] for r in document["rows"] if r["variant"] == "eager"
    ]
    assert document["rows"][3]["before"] is None
    assert document["rows"][3]["after"] == {
        "name": "triton_poi_fused_gelu_1",
        "count": 1,
        "time_ns": 90_000,
    }
    (_, compiled) = document["variants"]
    assert compiled["figures"]["kernels"] == {"before": 1, "after": 2}
    assert compiled["figures"]["call_time_ns"] == {"before": 280_000, "after": 364_000}
    assert compiled["call_speed"]["verdict"] == "slower"
    limits = [(x["variant"], x["limit"], x["status"]) for x in document["limits"]]
    assert ("compile", "kernels", "broken") in limits
    assert ("eager", "kernels", "kept") in limits


def test_the_document_says_why_a_variant_is_unknown():
    document = json.loads(render(diffs.unknown(), form="json"))
    compiled = document["variants"][1]
    assert (compiled["status"], compiled["figures"]) == ("unknown", {})
    assert compiled["reason"] == "after: 1 of 2 launches has no device record"
    assert {row["variant"] for row in document["rows"]} == {"eager"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["regression", "nothing_changed", "unknown", "traces", "evil"])
def test_every_format_says_something_and_ends_its_last_line(form, name):
    text = render(getattr(diffs, name)(), form=form)
    text.encode()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"json"}))
def test_no_name_brings_a_control_or_half_a_character_into_a_text(form):
    text = render(diffs.evil(), form=form, full=True)
    unseen = {c for c in text if not c.isprintable()} - {"\n"}
    assert unseen <= {"\ufffe", "\uffff"}  # no characters, which act on nothing


def test_no_name_becomes_a_workflow_command_or_ends_one():
    lines = render(diffs.evil(), form="github").splitlines()
    assert len(lines) == 7  # six limits and the sum
    for line in lines[:-1]:
        level, _, rest = line.removeprefix("::").partition(" ")
        properties, colons, message = rest.partition("::")
        assert level in ("error", "warning")
        assert colons == "::"
        assert properties.startswith("title=")
        assert not set(properties) & set(":,")
        assert "%" not in message.replace("%25", "").replace("%0A", "")
    assert not lines[-1].startswith("::")


def test_no_name_becomes_markup_or_html_or_ends_a_cell():
    text = render(diffs.evil(), form="markdown", full=True)
    assert "<script" not in text
    assert "<b>" not in text
    for line in text.splitlines():
        assert "::" not in line
        if line.startswith("|"):
            cells = line.replace("\\|", "").count("|")
            assert cells in (4, 5)


def test_no_name_breaks_a_line_of_csv_or_is_computed():
    text = render(diffs.evil(), form="csv")
    rows = list(csv.DictReader(StringIO(text)))
    assert len(rows) == len(text.splitlines()) - 1
    assert not [v for row in rows for v in row.values() if v and v.lstrip()[0] in "=+-@"]
    assert {row["kind"] for row in rows} == {"figure", "row", "unknown", "limit"}


@pytest.mark.parametrize("name", ["regression", "nothing_changed", "unknown", "traces", "evil"])
def test_junit_is_valid_whatever_names_hold(name):
    text = render(getattr(diffs, name)(), form="junit")
    assert faults(ET.fromstring(text.encode())) == []


def test_what_is_new_stands_with_its_line_of_code():
    screen = render(diffs.sourced(), form="table")
    (new,) = (line for line in screen.splitlines() if line.startswith("  new"))
    assert new.split() == ["new", "triton_poi_fused_gelu_1", "model.py:8", "+1", "×1", "90", "µs"]
    assert "| <code>triton_poi_fused_gelu_1</code> | model.py:8 +1 |" in render(
        diffs.sourced(), form="markdown"
    )
    rows = json.loads(render(diffs.sourced(), form="json"))["rows"]
    assert [line["line"] for line in rows[1]["lines"]] == [8, 30]
    assert rows[1]["lines"][1]["file"] == "layers/norm.py"
    lines = {
        r["name"]: r["line"] for r in csv.DictReader(StringIO(render(diffs.sourced(), form="csv")))
    }
    assert lines["triton_poi_fused_gelu_1"] == "model.py:8 +1"


def test_a_regression_is_annotated_at_the_line_of_what_is_new():
    (annotation, _) = render(diffs.sourced(), form="github").splitlines()
    assert annotation.startswith(
        "::error file=model.py,line=8,title=base.json → head.json%2C compile"
    )
    assert annotation.endswith("%0Anew: triton_poi_fused_gelu_1 model.py:8 +1")


def test_an_op_that_was_replaced_in_a_fused_kernel_is_annotated_at_its_own_line():
    (annotation, _) = render(diffs.replaced(), form="github").splitlines()
    assert annotation.startswith("::error file=src/net.py,line=7,title=")
    assert annotation.endswith(f"%0Anew: {diffs.GELU} net.py:7 +3")


def test_a_new_graph_break_is_said_and_annotated_at_its_line():
    screen = render(diffs.broken_graph(), form="table")
    assert "note: new: graph break at model.py:6 (print).\n" in screen
    (annotation, _) = render(diffs.broken_graph(), form="github").splitlines()
    assert annotation.startswith("::error file=src/model.py,line=6,title=")
    assert "0 before, +0 allowed%0Anew: graph break at model.py:6 (print)%0Anew: " in annotation
    (variant,) = json.loads(render(diffs.broken_graph(), form="json"))["variants"]
    assert [(b["line"], b["reason"]) for b in variant["breaks"]] == [(6, "print")]


@pytest.mark.parametrize(
    ("after", "more"),
    [(130, "30 %"), (107, "7 %"), (106.9, "6.9 %"), (105.02, "5.02 %"), (105, "5 %")],
)
def test_what_grew_has_as_many_digits_as_tell_it_from_what_is_allowed_or_noise(after, more):
    allowance = Allowance("slowdown", 0.05, relative=True, text="5%")
    decision = Decision(allowance, "eager", "kernel_time", "broken", 100, after)
    assert f", {more} more, 5% allowed" in said.decided(decision)
