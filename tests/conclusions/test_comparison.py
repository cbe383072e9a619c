"""What was measured, held against paper: each difference is named by the call that makes it."""

import random
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcount.conclusions import comparison
from kernelcount.conclusions.comparison import GENERATED, beside, with_costs
from kernelcount.model import (
    Beside,
    Break,
    Capture,
    Cost,
    Lane,
    Paper,
    Records,
    Timing,
    Unmeasured,
    Work,
)
from kernelcount.reading import read_file

H200 = Path(__file__).parent.parent / "data" / "h200"
GEMM = "sm80_xmma_gemm_f32f32_nn_n_execute_kernel__5x_cublas"
PARTS = "sm80_xmma_gemm_f32f32_nn_n_execute_split_k_kernel__5x_cublas"


def capture(*works):
    """Kernels as (name, label[, op])."""
    kernels = tuple(
        Work(name, "kernel", label, op=op[0] if op else None) for name, label, *op in works
    )
    n = len(kernels)
    zeros, ones = array("q", [0] * n), array("q", [1] * n)
    lanes = array("i", [0] * n)
    work = array("i", range(n))
    return Capture("eager", records=Records(kernels, (Lane("0", "7"),), work, lanes, zeros, ones))


def paper(*labels, at_least=False):
    """A count on paper: a kernel for each op, None for one that Inductor generates."""
    works = [(label or "triton_poi_fused_0", label) for label in labels]
    known = Paper(labels.count(None), len(labels), at_least, 8, 4, 4, 8, 1)
    return replace(capture(*works), basis="paper", paper=known)


def details(measured, expected):
    return [d.detail for d in beside(measured, expected).differences]


def test_the_same_calls_have_no_difference_and_paper_gives_their_bytes():
    found = beside(capture(("add_kernel", "add"), ("clamp", "relu")), paper("add", "relu"))
    assert found.differences == ()
    assert found.paper is not None
    assert (found.kernels, found.paper.transfers) == (2, 3.0)


@pytest.mark.parametrize(
    ("ops", "known"),
    [
        (("contiguous", "clone", "copy_"), "clone"),
        (("scaled_dot_product_attention", "ones", "fill_"), "ones"),
        (("conv2d", "convolution", "_convolution", "cudnn_convolution"), "convolution"),
        (("sort", "clone", "copy_"), "sort"),
        (("scaled_dot_product_attention", "add_"), "add"),
        (("mul", "mul_"), "mul_"),
    ],
    ids="/".join,
)
def test_a_kernel_is_of_the_outermost_op_round_it_that_paper_knows(ops, known):
    ran = capture((f"kernel of {ops[-1]}", ops[0], ops[-1]))
    work = replace(ran.records.works[0], between=ops[1:-1])
    measured = replace(ran, records=replace(ran.records, works=(work,)))
    assert details(measured, paper(known)) == []


@pytest.mark.parametrize("op", ["mm", None], ids=["below matmul", "no op known below"])
def test_split_k_is_named_as_such(op):
    label = "matmul" if op else "mm"
    measured = capture((GEMM, label, op), (PARTS, label, op), (GEMM, label, op))
    found = beside(measured, paper("mm", "mm", at_least=True))
    assert [d.detail for d in found.differences] == ["split-K adds 1 to mm"]
    assert found.same_calls


def test_a_call_that_is_several_kernels_is_named_with_their_number():
    measured = capture(("iota", "sort", "arange"), ("copy", "sort", "copy_"), ("radix", "sort"))
    assert details(measured, paper("sort")) == ["sort is 3 kernels"]


def test_of_several_reasons_split_k_is_told_apart():
    measured = capture(*[(GEMM, "mm")] * 3, (PARTS, "mm"))
    assert details(measured, paper("mm", "mm")) == [
        "mm launches 4 kernels (1 by split-K) instead of 2"
    ]


def test_an_op_under_another_name_is_matched_by_its_words():
    measured = capture(("fmha", "scaled_dot_product_attention", "_efficient_attention_forward"))
    assert details(measured, paper("_scaled_dot_product_efficient_attention")) == []


def test_the_outermost_op_comes_first_where_paper_has_both():
    measured = capture(("fill", "ones_like", "fill_"), ("fill", "fill_", "fill_"))
    assert details(measured, paper("ones_like", "fill_")) == []


def test_what_inductor_generates_is_matched_as_a_whole_whatever_its_names():
    measured = capture(("triton_poi_fused_bmm_cat_3", None), ("triton_red_fused_1", None))
    assert details(measured, paper(None, None)) == []
    found = beside(measured, paper(None))
    assert [d.detail for d in found.differences] == [f"2 {GENERATED} instead of 1"]
    assert found.paper is None  # its bytes are about other kernels than those that ran


def test_what_only_one_side_has_is_named_and_paper_models_nothing_then():
    found = beside(capture(("add_kernel", "add"), ("x", "mine::op")), paper("add", "cumsum"))
    assert [d.detail for d in found.differences] == [
        "paper counts 1 for cumsum, and none was launched",
        "mine::op launches 1 that paper does not see",
    ]
    assert (found.paper, found.same_calls) == (None, False)


def test_where_paper_cannot_tell_nothing_is_compared():
    found = beside(capture(("add_kernel", "add")), Unmeasured("eager", "cannot count on paper"))
    assert (found.kernels, found.paper, found.differences) == (None, None, ())


@pytest.mark.parametrize(
    ("trace", "expected", "said"),
    [
        ("mlp.eager", ("mm", "relu", "mm"), "split-K adds 1 to mm"),
        ("backward.compile", ("mm", None, None, None, "ones_like", None, "mm"),
         "split-K adds 2 to mm"),
        ("dropout.compile", ("randint", None), None),
    ],
)  # fmt: skip
def test_recorded_traces_are_told_apart_from_paper_by_what_launched_each_kernel(
    trace, expected, said
):
    (measured,) = read_file(H200 / f"h200-{trace}.json.gz", None, lambda *_: None)
    assert isinstance(measured, Capture)
    assert details(measured, paper(*expected)) == ([] if said is None else [said])


def broken(*breaks, cost=None):
    return Capture("compile", breaks=breaks, breaks_cost=cost)


PRINT = Break("/a.py", 3, "f", "print")
REPR = Break("/a.py", 7, "f", "repr() on tensor")


def test_breaks_that_were_measured_have_the_costs_of_the_same_on_paper():
    on_paper = broken(replace(PRINT, cost=Cost(1, "2 and 1")), cost=Cost(1, "2 and 1"))
    found = with_costs(broken(PRINT), Beside(on_paper))
    assert (found.breaks, found.breaks_cost) == (on_paper.breaks, on_paper.breaks_cost)


def test_a_break_whose_reason_paper_words_otherwise_is_the_same():
    theirs = replace(REPR, reason="printed is disabled for the compiler", cost=Cost(0))
    found = with_costs(broken(REPR), Beside(broken(theirs, cost=Cost(0))))
    assert (found.breaks, found.breaks_cost) == ((replace(REPR, cost=Cost(0)),), Cost(0))


def test_where_paper_breaks_elsewhere_nothing_is_concluded():
    found = with_costs(broken(PRINT, REPR), Beside(broken(replace(PRINT, cost=Cost(1)))))
    assert [b.cost.kernels for b in found.breaks] == [1, None]
    assert found.breaks_cost == Cost(None, "on paper it breaks elsewhere")


def test_where_paper_could_not_count_it_is_said_why():
    found = with_costs(broken(PRINT), Beside(Unmeasured("compile", "sparse")))
    assert found.breaks_cost == Cost(None, "not counted on paper: sparse")
    assert found.breaks[0].cost == found.breaks_cost


def test_what_did_not_break_stays_as_it_is():
    for outcome in (broken(), Capture("eager"), Unmeasured("compile", "out of memory")):
        assert with_costs(outcome, Beside(Unmeasured("compile", "sparse"))) is outcome
    assert with_costs(broken(PRINT), None) == broken(PRINT)


# ── times ────────────────────────────────────────────────────────────────────────────────────────


def timed(name, samples):
    return Capture(name, timing=Timing(tuple(samples), 1, ("a", "b")))


@pytest.mark.parametrize("n", range(8, 120, 7))
def test_what_is_faster_or_slower_is_so_with_its_whole_interval(n):
    """The test weighs how large the differences are, the interval does not."""
    chance = random.Random(n)
    found = set()
    for shift in (0.0, 0.01, 0.015, 0.02, 0.03, 0.1):
        base = [100 * (1 + 0.04 * chance.random() ** 3) for _ in range(n)]
        other = [100 * (1 + 0.04 * chance.random() ** 3) / (1 + shift) for _ in range(n)]
        for pair in ((base, other), (other, base)):
            speed = comparison.speed(timed("a", pair[0]), timed("b", pair[1]))
            found.add(speed.verdict)
            assert (speed.verdict == "no difference") or not speed.low <= 1 <= speed.high
            assert speed.verdict != "faster" or speed.ratio > 1
    assert found == {"faster", "slower", "no difference"}
