"""What became of budgets, on the screen and as a document."""

import csv
import json
from dataclasses import replace
from io import StringIO

import pytest

from kernelcount.model import Bounds, Checked, Environment, Held, Note
from kernelcount.render import check
from kernelcount.render.check import render
from render.samples import H200

PAPER = Environment("NVIDIA H200", "paper", "2.13.0", architecture="sm_90")
BROKEN = Held(
    "ln_bias_gelu.yaml", 6, "ln_bias_gelu.py:ln_bias_gelu", "compile", "kernels", "broken", 2,
    Bounds(None, 1), details=("new: triton_poi_fused_gelu_1",), column=12, basis="paper",
)  # fmt: skip
KEPT = Held("a.yaml", 4, "a.py:rmsnorm", "eager", "kernels", "kept", 2, Bounds(2, 2), basis="paper")
UNDECIDED = Held(
    "rmsnorm.yaml", 8, "rmsnorm.py:rmsnorm", "compile", "speedup", "undecided", None,
    Bounds(1.3, None, "eager"), "needs a GPU", unit="x",
)  # fmt: skip
LOCK = Held(
    "kernelcount.lock", 4, "ln_bias_gelu.py:ln_bias_gelu", "compile", "lock", "broken",
    why="it launches other kernels than are recorded", details=BROKEN.details,
)  # fmt: skip
NOTE = Note("lock-unknown", "kernelcount.lock has nothing of a.py:rmsnorm eager")
ALL = Checked((BROKEN, LOCK, KEPT, UNDECIDED), 3, PAPER, (NOTE,))


def test_the_screen_shows_what_is_not_kept_and_the_sum():
    assert (
        render(ALL, form="table")
        == """\
3 budgets, 3 limits · on paper for an H200 · torch 2.13.0

  broken     ln_bias_gelu   compile   kernels 2, allowed at most 1
             ln_bias_gelu.yaml:6
             new: triton_poi_fused_gelu_1
  broken     ln_bias_gelu   compile   lock: it launches other kernels than are
                                      recorded                kernelcount.lock:4
  undecided  rmsnorm        compile   speedup needs a GPU         rmsnorm.yaml:8

1 kept, 2 broken, 1 undecided
note: kernelcount.lock has nothing of a.py:rmsnorm eager
"""
    )


def test_where_there_is_room_the_place_stands_beside_and_kept_ones_are_shown_on_request():
    shown = render(Checked((KEPT, BROKEN), 2, PAPER), form="table", width=100, full=True)
    assert (
        shown
        == """\
2 budgets, 2 limits · on paper for an H200 · torch 2.13.0

  kept       rmsnorm        eager     kernels 2, allowed 2                                  a.yaml:4
  broken     ln_bias_gelu   compile   kernels 2, allowed at most 1               ln_bias_gelu.yaml:6
             new: triton_poi_fused_gelu_1

1 kept, 1 broken
"""
    )


def test_where_all_is_kept_there_is_only_the_sum():
    assert render(Checked((KEPT,), 1, H200), form="table") == (
        "1 budget, 1 limit · NVIDIA H200 · torch 2.11.0\n\n1 kept, 0 broken\n"
    )


def test_what_has_no_limit_is_told_apart_in_the_sum_from_the_limits_of_the_head():
    empty = Held("b.yaml", 1, "t.py:f", "", "budget", "broken", why="it has no limit")
    head, *_, total = render(Checked((KEPT, empty), 2, H200), form="table").splitlines()
    assert head.startswith("2 budgets, 1 limit · ")
    assert total == "1 kept, 1 broken; 1 of these for want of a limit"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_screen(width):
    hostile = Held(
        "d/" * 60 + "b.yaml", 1, "a.py:" + "x" * 90, "compile:" + "y" * 90, "kernels", "broken", 2,
        Bounds(1, 1), "because " * 30, ("new: " + "漢" * 90, "gone: \x1b[2J"),
    )  # fmt: skip
    text = render(
        Checked((hostile,), 1, None, (Note("x", "word " * 50),)), form="table", width=width
    )
    from rich.cells import cell_len

    assert max(map(cell_len, text.splitlines())) <= max(40, min(width, 120))
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"actual": 6, "at_least": True}, "kernels ≥ 6, allowed at most 1"),
        (
            {"limit": "call_time", "unit": "ns", "actual": 110e3, "low": 104e3, "high": 116e3,
             "bounds": Bounds(None, 50e3)},
            "call time 110 µs (104 µs to 116 µs), allowed at most 50 µs",
        ),
        (
            {"limit": "speedup", "unit": "x", "actual": 1.2, "bounds": Bounds(1.3, None, "eager")},
            "speedup 1.20x, allowed at least 1.30x over eager",
        ),
        (
            {"limit": "speedup", "unit": "x", "actual": 1.298, "bounds": Bounds(1.3)},
            "speedup 1.298x, allowed at least 1.3x",
        ),
        ({"limit": "transfers", "actual": 5, "bounds": Bounds(3, 3)}, "transfers 5.0, allowed 3.0"),
        (
            {"limit": "bytes", "unit": "bytes", "actual": 20e6, "bounds": Bounds(None, 12e6)},
            "bytes 20 MB, allowed at most 12 MB",
        ),
        (
            {"limit": "bytes", "unit": "bytes", "actual": 12000004, "bounds": Bounds(12e6, 12e6)},
            "bytes 12,000,004 B, allowed 12,000,000 B",
        ),
        ({"bounds": Bounds(3, 5)}, "kernels 2, allowed at least 3 and at most 5"),
        ({"why": "'compile' ran as eager code"}, "kernels 2, allowed at most 1: 'compile' ran as"),
        (
            {"limit": "max_error", "actual": 0.5, "bounds": Bounds(None, 1e-5)},
            "max error 0.5, allowed at most 1e-05",
        ),
        ({"limit": "budget", "why": "it has no limit"}, "budget: it has no limit"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_was_found_and_what_is_allowed(options, said):
    from dataclasses import replace

    assert check.sentence(replace(BROKEN, **options)).startswith(said)


def test_the_document_has_an_entry_for_each_limit():
    document = json.loads(render(ALL, form="json"))
    assert (document["schema"], document["command"]) == (1, "check")
    assert (document["kept"], document["broken"], document["undecided"]) == (1, 2, 1)
    assert document["environment"]["architecture"] == "sm_90"
    assert document["budgets"][0] == {
        "file": "ln_bias_gelu.yaml",
        "line": 6,
        "column": 12,
        "target": "ln_bias_gelu.py:ln_bias_gelu",
        "size": None,
        "variant": "compile",
        "limit": "kernels",
        "status": "broken",
        "failed": False,
        "actual": 2,
        "at_least": False,
        "low": None,
        "high": None,
        "allowed": {"min": None, "max": 1, "over": None},
        "unit": None,
        "basis": "paper",
        "why": "kernels 2, allowed at most 1",
        "details": ["new: triton_poi_fused_gelu_1"],
    }
    assert document["budgets"][1]["allowed"] is None
    assert [entry["actual"] for entry in document["budgets"]] == [2, None, 2, None]
    assert document["notes"] == [{"code": "lock-unknown", "detail": NOTE.detail}]
    assert "error" not in document


def test_where_the_users_own_code_failed_the_document_says_so():
    failed = Held("b.yaml", 3, "a.py:f", "eager", "kernels", "undecided", why="raised E", code=2)
    document = json.loads(render(Checked((failed,), 1), form="json"))
    assert document["error"] == {"code": 2, "message": "b.yaml:3: a.py:f, eager: raised E"}
    assert document["environment"] is None


def test_a_budget_that_cannot_be_read_is_of_no_variant_and_does_not_want_for_a_limit():
    unread = Held(
        "s/bad.yaml", 3, "bad.py", "", "budget", "undecided", why="there is no limit kernel", code=2
    )
    checked = Checked((KEPT, unread), 2)
    message = json.loads(render(checked, form="json"))["error"]["message"]
    assert message == "s/bad.yaml:3: bad.py: there is no limit kernel"
    assert "1 kept, 0 broken, 1 undecided (1 failed)**" in render(checked, form="markdown")


def test_what_is_not_finite_is_null():
    held = Held("b.yaml", 3, "a.py:f", "compile", "max_error", "broken", float("inf"))
    assert json.loads(render(Checked((held,), 1), form="json"))["budgets"][0]["actual"] is None


def test_a_spreadsheet_has_a_line_for_each_limit():
    rows = list(csv.DictReader(StringIO(render(ALL, form="csv"))))
    assert [(r["limit"], r["status"], r["actual"], r["min"], r["max"]) for r in rows] == [
        ("kernels", "broken", "2", "", "1"),
        ("lock", "broken", "", "", ""),
        ("kernels", "kept", "2", "2", "2"),
        ("speedup", "undecided", "", "1.3", ""),
    ]
    assert (rows[0]["column"], rows[0]["details"]) == ("12", "new: triton_poi_fused_gelu_1")
    timed = replace(KEPT, limit="call_time", actual=5.0, low=4.5, high=5.5, unit="ns")
    (row,) = csv.DictReader(StringIO(render(Checked((timed,), 1), form="csv")))
    assert (row["low"], row["high"], row["details"]) == ("4.5", "5.5", "")


def test_colours_are_put_on_the_status_alone():
    shown = render(Checked((BROKEN,), 1, PAPER), form="table", colour=True)
    assert "\x1b[1;31mbroken   \x1b[0m" in shown
