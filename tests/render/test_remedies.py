"""What is shown of remedies."""

import json
from dataclasses import replace

import pytest

from kernelcount.model import Beside, Numerics, Paper, Remedy, Row, Speed
from kernelcount.render import render
from tests.render import samples

EQUAL = Numerics("equal", 1, 0.0, 0.0, 0)
COARSE = Numerics("different", 1, 0.1, 2.0, 9, error=3.1e-4, base_error=2.2e-7)
GEMM = Row("sm80_xmma_gemm_f32f32", "mm", "kernel", 8, 90_000)


def speed(ratio, verdict="faster"):
    return Speed(ratio, ratio * 0.99, ratio * 1.01, verdict)


GRAPH = Remedy("CUDA graph", "tried", "", speed(2.8), EQUAL, 8)
TF32 = Remedy("TF32", "tried", "", speed(7.9), COARSE, 8, (GEMM,))
BF16 = Remedy("bf16", "not tried", "no input and no parameter is float32 or float64")
COMPILED = Remedy("compile", "tried", "", speed(1.0, "no difference"), EQUAL, 8)


def report(*remedies, **given):
    capture = replace(samples.eager(), remedies=remedies, **given)
    return samples.run_report(capture)


def said(*remedies, form="table"):
    return " ".join(render(report(*remedies), format=form, width=120).split())


def test_gain_and_cost_stand_beside_each_other_the_largest_gain_first():
    text = render(report(COMPILED, BF16, TF32, GRAPH), format="table")
    block = text[text.index("  remedies") : text.index("A kernel is")]
    assert block == (
        """\
  remedies tried on eager
  TF32          7.90x faster   error 3e-4 instead of 2e-7
  CUDA graph    2.80x faster   results equal
  compile      no difference   results equal
  Errors are relative to the largest result, against float64.
  bf16 not tried: no input and no parameter is float32 or float64.
  In float32 on no tensor core, TF32 being off: mm ×8.

A setting, a dtype and a CUDA graph are plain PyTorch: take them before
torch.compile, and both before a kernel of your own.

"""
    )


def test_where_none_helps_that_is_the_answer_and_what_comes_next():
    text = said(COMPILED, replace(GRAPH, speed=speed(0.5, "slower")))
    assert "CUDA graph 2.00x slower" in text
    assert "No remedy helped." in text
    assert "Next is plain PyTorch: fewer ops, fewer bytes, no waiting for the GPU." in text


def test_where_only_compiling_helps_it_comes_before_a_kernel_of_ones_own():
    assert "torch.compile comes before a kernel of your own" in said(
        replace(COMPILED, speed=speed(1.7))
    )


def test_where_no_byte_is_moved_too_many_it_is_said_when_to_stop():
    paper = Paper(1, 0, False, 8, 4, 4, 12, 1)
    whole = report(COMPILED)
    beside = Beside(replace(samples.eager(), basis="paper", paper=paper), same_calls=True)
    run = replace(whole.runs[0], besides=(beside,))
    text = " ".join(render(replace(whole, runs=(run,)), format="table").split())
    assert "eager moves no byte too many: only smaller arrays would move fewer." in text
    assert "no byte too many" not in said(COMPILED)


@pytest.mark.parametrize(
    ("numerics", "cost"),
    [
        (None, "results not compared"),
        (Numerics("unknown", 1), "results not compared"),
        (Numerics("nothing", 0), "no results to compare"),
        (Numerics("random", 1), "other random numbers"),
        (Numerics("close", 1, 0.004), "results differ by up to 0.004"),
        (Numerics("different", 1, notes=("shape",)), "results differ"),
    ],
)
def test_what_becomes_of_the_results_is_said_as_far_as_it_is_known(numerics, cost):
    assert f"faster {cost} " in said(replace(GRAPH, numerics=numerics)) + " "


def test_remedies_that_fail_for_one_reason_share_a_line():
    failed = [Remedy(n, "failed", "out of memory") for n in ("bf16", "TF32")]
    assert "No remedy could be tried. bf16, TF32 failed: out of memory." in said(*failed)


def test_what_spoils_a_remedy_is_said_and_an_unknown_gain_is_called_so():
    text = said(Remedy("compile", "tried", "timed too seldom to tell"))
    assert "compile unknown results not compared" in text
    assert "compile: timed too seldom to tell." in text


UNKNOWN = [Remedy(n, "tried", "timed too seldom to tell") for n in ("bf16", "CUDA graph")]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_where_no_gain_is_known_it_is_not_said_that_none_helps(form):
    text = said(*UNKNOWN, form=form)
    assert "Whether any remedy helps is not known." in text
    assert "No remedy" not in text
    assert "Next is" not in text


def test_where_one_gain_is_unknown_and_no_other_helps_both_is_said():
    text = said(COMPILED, UNKNOWN[0])
    assert "No remedy is known to help." in text
    assert "Next is" not in text
    assert "No remedy" not in said(UNKNOWN[0], GRAPH)


def test_of_the_cpu_nothing_is_said_of_triton_or_cuda():
    eager, other = samples.on_cpu().outcomes
    whole = samples.run_report(replace(eager, remedies=(COMPILED,)), other, environment=samples.CPU)
    text = render(whole, format="table")
    assert "remedies tried on eager" in text
    assert "Triton" not in text


def test_markdown_has_a_table_of_what_was_tried_and_points_for_the_rest():
    text = render(report(TF32, BF16), format="markdown")
    assert "| tried on eager | gain | cost |\n| --- | ---: | --- |\n" in text
    assert "| TF32 | 7.90x faster | error 3e-4 instead of 2e-7 |" in text
    assert "- bf16 not tried: no input and no parameter is float32 or float64." in text


def test_hostile_text_in_a_reason_is_made_visible():
    assert "\x1b" not in render(report(Remedy("bf16", "failed", "\x1b[31m")), format="table")


def test_json_has_each_with_its_status_and_null_where_none_was_asked_for():
    (variant,) = json.loads(render(report(TF32, BF16), format="json"))["variants"]
    first, second = variant["remedies"]
    assert first == {
        "name": "TF32", "status": "tried", "reason": None,
        "speed": {"ratio": 7.9, "low": 7.9 * 0.99, "high": 7.9 * 1.01, "verdict": "faster"},
        "numerics": {
            "verdict": "different", "tensors": 1, "max_abs": 0.1, "max_rel": 2.0, "ulps": 9,
            "error": 3.1e-4, "base_error": 2.2e-7, "differs": None, "notes": [],
        },
        "kernels": 8,
        "rows": [{"name": GEMM.name, "label": "mm", "count": 8, "time_ns": 90_000}],
    }  # fmt: skip
    assert (second["status"], second["speed"], second["rows"]) == ("not tried", None, [])
    (variant,) = json.loads(render(report(), format="json"))["variants"]
    assert variant["remedies"] is None


def test_numbers_that_overflowed_are_null():
    whole = report(replace(GRAPH, numerics=Numerics("different", 1, float("inf"), float("nan"))))
    (variant,) = json.loads(render(whole, format="json"))["variants"]
    assert variant["remedies"][0]["numerics"]["max_abs"] is None


def test_a_sweep_shows_those_of_each_size():
    whole = samples.sweep()
    last = whole.runs[-1]
    eager = replace(last.outcomes[0], remedies=(GRAPH,))
    runs = (*whole.runs[:-1], replace(last, outcomes=(eager, last.outcomes[1])))
    text = render(replace(whole, runs=runs), format="table")
    assert "remedies tried on eager, size 1e8" in text


def test_a_saved_capture_shows_them_too():
    capture = replace(samples.eager(), remedies=(GRAPH,))
    assert "CUDA graph" in render(samples.read_report(capture), format="table")
