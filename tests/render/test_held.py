"""What became of budgets, as pipelines read it."""
# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree as ET

import pytest

from kernelcount.model import Bounds, Checked, Environment, Held, Note, Place
from kernelcount.render.check import FORMS, render
from kernelcount.render.held import findings

from .junit_schema import faults
from .samples import EVIL

PAPER = Environment("NVIDIA H200", "paper", "2.13.0")


def held(limit="kernels", status="broken", **given):
    one = Held("budgets/ln.yaml", 6, "ln.py:ln_bias_gelu", "compile", limit, status, 2)
    return replace(one, **{"bounds": Bounds(None, 1), "basis": "paper", **given})


def checked(*more, **given) -> Checked:
    """Two limits kept, one broken, one undecided."""
    details = ("new: triton_poi_fused_gelu_1", "graph break at ln.py:8 (print)")
    broken = held(details=details, places=(Place("src/ln.py", 8),))
    speedup = held(
        "speedup", "undecided", actual=None, why="it needs a GPU: on paper nothing runs", line=8
    )
    kept = held("transfers", "kept", actual=1)
    return Checked((kept, broken, speedup, *more), 1, PAPER, **given)


def evil() -> Checked:
    names = [
        replace(held(), file=f"{n}.yaml", target=f"{n}:f", variant=n, details=(f"new: {n}", "::x"))
        for n in EVIL
    ]
    undecided = replace(held("speedup", "undecided", actual=None), why=f"{EVIL[3]} 100% ##[error]x")
    return checked(*names, undecided, notes=(Note("x", EVIL[2]),), written=(EVIL[1],))


def test_annotations_stand_at_the_budgets_line_and_at_the_line_of_code():
    assert (
        render(checked(), form="github")
        == """\
::error file=budgets/ln.yaml,line=6,title=ln.py%3Aln_bias_gelu%2C compile%3A kernels%3A broken::kernels 2, allowed at most 1%0Anew: triton_poi_fused_gelu_1%0Agraph break at ln.py:8 (print)
::error file=src/ln.py,line=8,title=ln.py%3Aln_bias_gelu%2C compile%3A kernels%3A broken::kernels 2, allowed at most 1%0Anew: triton_poi_fused_gelu_1%0Agraph break at ln.py:8 (print)
::warning file=budgets/ln.yaml,line=8,title=ln.py%3Aln_bias_gelu%2C compile%3A speedup%3A undecided::speedup: it needs a GPU: on paper nothing runs
1 kept, 1 broken, 1 undecided
"""
    )


def test_every_limit_is_a_test_case_and_what_is_broken_fails():
    one = replace(checked(), held=checked().held[1:])
    assert (
        render(one, form="junit")
        == """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kernelcount check" tests="2" failures="1" errors="1">
  <testsuite name="ln.py:ln_bias_gelu" tests="2" failures="1" errors="1" skipped="0">
    <testcase classname="ln.py:ln_bias_gelu" name="compile: kernels">
      <failure message="kernels 2, allowed at most 1" type="broken">kernels 2, allowed at most 1
new: triton_poi_fused_gelu_1
graph break at ln.py:8 (print)
budgets/ln.yaml:6
src/ln.py:8</failure>
    </testcase>
    <testcase classname="ln.py:ln_bias_gelu" name="compile: speedup">
      <error message="speedup: it needs a GPU: on paper nothing runs" type="undecided">speedup: it needs a GPU: on paper nothing runs
budgets/ln.yaml:8</error>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_the_summary_of_a_job_has_what_is_not_kept_in_a_table():
    notes = (Note("lock-other-setup", "not recorded for this setup"),)
    assert (
        render(checked(notes=notes), form="markdown")
        == """\
**1 budget · on paper for an H200 · torch 2.13.0: 1 kept, 1 broken, 1 undecided**

|  | target | variant |  | budget |
| --- | --- | --- | --- | --- |
| broken | ln_bias_gelu | compile | kernels 2, allowed at most 1<br>new: triton_poi_fused_gelu_1<br>graph break at ln.py:8 (print) | budgets/ln.yaml:6 |
| undecided | ln_bias_gelu | compile | speedup: it needs a GPU: on paper nothing runs | budgets/ln.yaml:8 |

- not recorded for this setup.
"""
    )


def test_what_a_limit_and_a_lock_file_both_find_is_shown_once_at_its_line_of_code():
    cause = {"places": (Place("src/ln.py", 9),), "details": ("new: x   ln.py:9",)}
    lock = replace(held("lock", actual=None, bounds=None, **cause), file="kernelcount.lock", line=4)
    *lines, _ = render(Checked((held(**cause), lock)), form="github").splitlines()
    assert [line.partition(",title")[0] for line in lines] == [
        "::error file=budgets/ln.yaml,line=6",
        "::error file=src/ln.py,line=9",
        "::error file=kernelcount.lock,line=4",
    ]


def test_where_all_is_kept_there_is_no_annotation_and_no_table():
    kept = Checked((held(status="kept"),), 1)
    assert render(kept, form="github") == "1 kept, 0 broken\n"
    assert render(kept, form="markdown") == "**1 budget: 1 kept, 0 broken**\n"
    assert "<failure" not in render(kept, form="junit")


def test_what_is_undecided_is_skipped_where_that_is_allowed_unless_the_budget_is_at_fault():
    other = held("launches", "undecided", actual=None, why="it raised", code=2)
    cases = ET.fromstring(render(checked(other, allow_undecided=True), form="junit").encode()).iter(
        "testcase"
    )
    said = {case.get("name"): [child.tag for child in case] for case in cases}
    assert said["compile: speedup"] == ["skipped"]
    assert said["compile: launches"] == ["error"]
    allowed = checked(other, allow_undecided=True)
    assert [x.partition("::")[2][:9] for x in render(allowed, form="github").splitlines()[:-1]] == [
        "error fil",
        "error fil",
        "warning f",
    ]
    table = render(allowed, form="markdown")
    assert "it raised" in table
    assert "speedup" not in table


def test_limits_alike_of_several_sizes_and_files_are_told_apart():
    sizes = [held(size=n) for n in (100, 100_000_000)]
    names = [f.name for f in findings(Checked((*sizes, held(), held(line=9)))).every]
    assert names == [
        "compile: kernels at 100",
        "compile: kernels at 1e8",
        "compile: kernels (budgets/ln.yaml:6)",
        "compile: kernels (budgets/ln.yaml:9)",
    ]


def test_a_budget_without_a_limit_is_named_by_that():
    empty = held("budget", actual=None, bounds=None, variant="", why="it has no limit")
    assert [f.name for f in findings(Checked((empty,))).every] == ["budget"]
    assert "::budget: it has no limit\n" in render(Checked((empty,)), form="github")


@pytest.mark.parametrize("sample", [checked, evil])
def test_junit_is_valid_whatever_names_hold(sample):
    assert faults(ET.fromstring(render(sample(), form="junit").encode())) == []


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"json"}))
def test_no_name_brings_a_control_or_half_a_character_into_a_text(form):
    text = render(evil(), form=form)
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    text.encode()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_no_name_becomes_a_workflow_command_or_ends_one():
    *lines, last = render(evil(), form="github").splitlines()
    for line in lines:
        level, _, rest = line.removeprefix("::").partition(" ")
        properties, colons, message = rest.partition("::")
        assert (level in ("error", "warning"), colons) == (True, "::")
        assert [p.partition("=")[0] for p in properties.split(",")] == ["file", "line", "title"]
        assert ":" not in properties
        assert "%" not in message.replace("%25", "").replace("%0A", "")
    assert "##[" not in last
    assert "::" not in last


def test_no_name_becomes_markup_or_html_or_ends_a_cell():
    text = render(evil(), form="markdown")
    assert "<script" not in text
    assert "::" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


def test_no_name_is_computed_by_a_spreadsheet():
    for row in csv.DictReader(StringIO(render(evil(), form="csv"))):
        assert not any(cell.lstrip().startswith(("=", "+", "@")) for cell in row.values())


def test_what_failed_is_told_from_what_is_only_undecided():
    fault = held(status="undecided", actual=None, why="raised NameError: no", raised=True)
    other = held(status="undecided", actual=None, why="there is no file", code=2, line=9)
    all_ = checked(fault, other)
    assert all_.failed == 2
    assert "1 kept, 1 broken, 3 undecided (2 failed)" in render(all_, form="markdown")
    rows = [r.split(" | ")[0] for r in render(all_, form="markdown").splitlines() if r[:1] == "|"]
    assert rows[2:] == ["| broken", "| failed", "| failed", "| undecided"]
    document = json.loads(render(all_, form="json"))
    assert document["failed"] == 2
    assert [(e["status"], e["failed"]) for e in document["budgets"][2:]] == [
        ("undecided", False), ("undecided", True), ("undecided", True),
    ]  # fmt: skip
    assert [(e["code"], e["message"].rpartition(": ")[2]) for e in document["errors"]] == [
        (3, "no"), (2, "there is no file"),
    ]  # fmt: skip
    rows = csv.DictReader(StringIO(render(all_, form="csv")))
    assert [r["failed"] for r in rows] == ["false", "false", "false", "true", "true"]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_variant_that_raised_is_never_left_undecided(allowed):
    fault = held(status="undecided", actual=None, raised=True)
    assert Checked((fault,), 1, allow_undecided=allowed).exit_code == 3
    unknown = replace(fault, raised=False)
    assert Checked((unknown,), 1, allow_undecided=allowed).exit_code == (0 if allowed else 3)
