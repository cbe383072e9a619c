"""Which call on paper each measured kernel is, so that it has its bytes."""

from dataclasses import replace

from stubs import in_a_row

from kernelcount.conclusions.comparison import beside
from kernelcount.model import Paper, Work

FUSED, OTHER = "triton_poi_fused_add_0", "triton_red_fused_sum_1"


def kernels(*named):
    """What was measured, as (name, label)."""
    return [Work(name, "kernel", label, (4,)) for name, label in named]


def on_paper(*calls, own=()):
    """What paper has, as (name, label, read, written)."""
    works = [Work(name, "kernel", label, None, read=r, written=w) for name, label, r, w in calls]
    paper = Paper(0, 0, False, 8, 4, 4, 8, 1, own=own)
    return replace(in_a_row(works), basis="paper", paper=paper)


def moved(measured, paper):
    """The bytes of each record, as (read, written); None where nothing is known of any."""
    ledger = beside(measured, paper).ledger
    return ledger and [(r.work.read, r.work.written) for r in ledger]


def test_calls_of_one_op_are_paired_in_the_order_in_which_they_come():
    measured = in_a_row(kernels(("k", "add"), ("m", "relu"), ("k", "add")))
    paper = on_paper(
        ("aten::add", "add", 8, 4), ("aten::relu", "relu", 2, 2), ("aten::add", "add", 80, 40)
    )
    assert moved(measured, paper) == [(8, 4), (2, 2), (80, 40)]


def test_what_was_measured_keeps_all_else():
    measured = in_a_row(kernels(("k", "add")))
    ledger = beside(measured, on_paper(("aten::add", "add", 8, 4))).ledger
    assert ledger.works == (Work("k", "kernel", "add", (4,), read=8, written=4),)
    assert list(ledger.duration_ns) == [1]


def test_an_op_that_launched_more_than_paper_knows_has_no_bytes():
    measured = in_a_row(kernels(("gemm", "mm"), ("splitKreduce_kernel", "mm"), ("k", "relu")))
    paper = on_paper(("aten::mm", "mm", 8, 4), ("aten::relu", "relu", 4, 4))
    assert moved(measured, paper) == [(None, None), (None, None), (4, 4)]


def test_kernels_of_one_call_are_not_told_apart():
    measured = in_a_row(kernels(("moments", "native_layer_norm"), ("norm", "native_layer_norm")))
    name = "aten::native_layer_norm"
    paper = on_paper((name, "native_layer_norm", 8, 8), (name, "native_layer_norm", 0, 0))
    assert moved(measured, paper) is None


def test_on_several_streams_the_order_is_not_known_and_nothing_is_guessed():
    works = kernels(("k", "add"), ("k", "add"))
    unlike = on_paper(("aten::add", "add", 8, 4), ("aten::add", "add", 80, 40))
    alike = on_paper(("aten::add", "add", 8, 4), ("aten::add", "add", 8, 4))
    assert moved(in_a_row(works, lanes=[0, 1]), unlike) is None
    assert moved(in_a_row(works, lanes=[0, 1]), alike) == [(8, 4), (8, 4)]


def test_generated_kernels_are_paired_by_their_names_whatever_their_order():
    measured = in_a_row(kernels((OTHER, None), (FUSED, None)))
    assert moved(measured, on_paper((FUSED, None, 8, 4), (OTHER, None, 2, 1))) == [(2, 1), (8, 4)]


def test_one_name_that_is_left_on_either_side_is_the_same_kernel():
    measured = in_a_row(kernels((FUSED, None), ("triton_per_fused_sum_1", None)))
    assert moved(measured, on_paper((FUSED, None, 8, 4), (OTHER, None, 2, 1))) == [(8, 4), (2, 1)]


def test_two_names_that_are_left_are_not_guessed_at():
    measured = in_a_row(kernels(("triton_a", None), ("triton_b", None)))
    assert moved(measured, on_paper((FUSED, None, 8, 4), (OTHER, None, 2, 1))) is None


def test_where_more_was_generated_than_on_paper_nothing_is_paired_by_name():
    measured = in_a_row(kernels((FUSED, None), (FUSED, None)))
    assert moved(measured, on_paper((FUSED, None, 8, 4))) is None


def test_a_copy_is_paired_with_a_copy_of_its_op():
    measured = in_a_row([Work("Memcpy DtoD", "copy", "clone", op="copy_")])
    paper = in_a_row([Work("aten::clone", "copy", "clone", read=4, written=4)])
    assert moved(measured, replace(paper, paper=Paper(0, 0, False, 8, 4, 4, 8, 1))) == [(4, 4)]


def test_a_kernel_of_ones_own_moves_at_most_what_its_op_is_given():
    own = (Work("mine::op", "kernel", "mine::op", read=8, written=4, at_most=True),)
    measured = in_a_row(kernels(("my_kernel", "mine::op"), ("k", "relu")))
    found = beside(measured, on_paper(("aten::relu", "relu", 4, 4), own=own))
    assert found.same_calls
    assert found.paper.at_most
    assert [(w.read, w.at_most) for w in found.ledger.works] == [(8, True), (4, False)]


def test_of_an_own_op_that_is_two_kernels_neither_has_bytes():
    own = (Work("mine::op", "kernel", "mine::op", read=8, written=4, at_most=True),)
    measured = in_a_row(kernels(("my_kernel", "mine::op"), ("k", "mine::op")))
    assert moved(measured, on_paper(own=own)) is None


def test_torchs_kernels_inside_of_an_own_op_are_not_taken_for_others():
    own = (Work("mine::op", "kernel", "mine::op", read=8, written=4, at_most=True),)
    inside = Work("gemm", "kernel", "mine::op", op="mm")
    measured = in_a_row([inside, *kernels(("gemm", "mm"))])
    paper = on_paper(("aten::mm", "mm", 2, 1), own=own)
    assert moved(measured, paper) == [(8, 4), (2, 1)]
