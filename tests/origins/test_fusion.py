"""Compiled kernels are aligned with eager ones by what they compute, not by their names."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcount.model import Apart, Capture, Lane, Origin, Place, Provenance, Records, Source, Work
from kernelcount.origins.fusion import REASONS, UNKNOWN, align, code_of

FIVE, SIX, SEVEN = (Place("model.py", n, "forward") for n in (5, 6, 7))


def capture(name, *sources, traced=(), unknown=""):
    """Kernels, each from where it says; their names are all the same."""
    n = len(sources)
    zeros = array("q", [0]) * n
    index, lane = array("i", range(n)), array("i", [0]) * n
    works = tuple(Work(f"kernel_{i}", "kernel") for i in range(n))
    records = Records(works, (Lane("0", "7"),), index, lane, zeros, zeros)
    return Capture(name, records=records, provenance=Provenance(sources, traced, unknown))


def op(name, place=FIVE, module=None, number=0, phase="forward"):
    return Origin(name, place, module, phase, number)


def eager(*origins):
    return capture("eager", *(Source((o,), o.phase) for o in origins))


def generated(*origins, apart=()):
    return Source(origins, "forward", graph=0, apart=apart)


def replaced(fusion):
    return [fused.replaces for fused in fusion.kernels]


def test_a_kernel_replaces_the_ops_that_it_computes():
    both = capture("compile", generated(op("add"), op("relu")))
    found = align(eager(op("add"), op("relu")), both)
    assert replaced(found) == [(0, 1)]
    assert (found.matched, found.total, found.left) == (2, 2, ())


def test_ops_that_are_alike_are_told_apart_by_their_number():
    first, second = generated(op("mul", number=1)), generated(op("mul", number=0))
    found = align(eager(op("mul"), op("mul", number=1)), capture("compile", first, second))
    assert replaced(found) == [(1,), (0,)]


def test_layers_on_one_line_are_told_apart_by_their_module():
    layers = [op("add", module=f"layers.{i}") for i in range(3)]
    found = align(eager(*layers), capture("compile", *map(generated, reversed(layers))))
    assert replaced(found) == [(2,), (1,), (0,)]


def test_an_op_in_place_is_the_op():
    found = align(eager(op("add_")), capture("compile", generated(op("add"))))
    assert replaced(found) == [(0,)]


def test_another_op_of_the_line_is_replaced_by_line_and_that_is_said():
    found = align(eager(op("convolution")), capture("compile", generated(op("cudnn_convolution"))))
    (fused,) = found.kernels
    assert (fused.replaces, fused.by_line) == ((0,), (0,))


def test_forward_and_backward_of_one_line_are_not_the_same():
    back = op("mul", phase="backward")
    kernels = capture("compile", generated(op("mul")), Source((back,), "backward", graph=1))
    assert replaced(align(eager(op("mul"), back), kernels)) == [(0,), (1,)]


def test_of_a_line_in_a_branch_it_is_not_known_what_became_of_it():
    for traced in ((), (SIX,)):
        known = capture("compile", generated(op("add")), traced=traced)
        hiding = replace(known, provenance=replace(known.provenance, hidden=(SIX,)))
        found = align(eager(op("add"), op("mul", SIX)), hiding)
        assert (found.left, found.matched, found.total) == (((1, UNKNOWN),), 1, 2)


def test_an_op_whose_line_was_compiled_and_of_which_nothing_is_left_was_removed():
    kernels = capture("compile", generated(op("add")), traced=(FIVE, SIX))
    found = align(eager(op("add"), op("clone", SIX)), kernels)
    assert (found.left, found.matched) == (((1, "removed"),), 2)


def test_an_op_whose_line_the_compiled_variant_has_not_at_all_did_not_run():
    found = align(eager(op("add"), op("eq", SEVEN)), capture("compile", generated(op("add"))))
    assert found.left == ((1, "not-run"),)


def test_where_a_source_is_unknown_nothing_is_said_to_be_missing():
    kernels = capture("compile", generated(op("add")), None)
    found = align(eager(op("add"), op("eq", SEVEN)), kernels)
    assert (found.left, found.matched) == (((1, UNKNOWN),), 1)


def test_nothing_is_aligned_without_lines_and_the_reason_is_kept():
    nowhere = capture("eager", None, unknown="cannot tell on torch 9")
    found = align(nowhere, capture("compile", generated(op("add"))))
    assert (found.matched, found.total, found.unknown) == (0, 1, "cannot tell on torch 9")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (Source((op("mm"),), "forward", graph=0, library=True), "library-call"),
        (Source((op("mm"),), "forward"), "eager-code"),
        (generated(op("mm")), "nothing-shared"),
        (generated(op("mm"), apart=(Apart("library-call", "mm"),)), "beside-library-calls"),
        (generated(op("mm"), apart=(Apart("library-call"), Apart("mutation"))), "mutation"),
        (generated(op("mm"), apart=(Apart(UNKNOWN), Apart("peak-memory"))), "peak-memory"),
    ],
)
def test_a_kernel_that_replaces_one_says_why_it_stayed_alone(source, code):
    (fused,) = align(eager(op("mm")), capture("compile", source)).kernels
    assert fused.alone.code == code


def test_a_sum_in_two_steps_is_one_op_in_two_kernels():
    found = align(eager(op("sum")), capture("compile", generated(op("sum")), generated(op("sum"))))
    assert [(f.replaces, f.alone.code) for f in found.kernels] == [((0,), "split")] * 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("numel/rnumel mismatch (reduce) (8, 1), (8192, 8)", "different-sizes"),
        ("nodes numel/rnumel incompatibility", "reduction-boundary"),
        ("invalid tiling for reduction", "reduction-boundary"),
        ("tiling mismatch (1, 2, 3)", "different-order"),
        ("memory deps did not match", "reads-differently"),
        ("intermediate nodes between node1 & node2", "others-between"),
        ("device mismatch (cuda vs cpu)", "other-device"),
        ("Fusion will increase peak memory", "peak-memory"),
        ("exceeds max fusion", "not-worth-it"),
        ("no shared data", "nothing-shared"),
        ("node1 is extern but not a triton kernel", "library-call"),
        ("words of a torch to come", "other"),
        ("", UNKNOWN),
    ],
)
def test_the_compilers_words_have_a_code(words, code):
    assert code_of(words) == code
    assert code in {*REASONS, UNKNOWN}


def test_every_reason_is_explained_as_the_document_has_it():
    document = (Path(__file__).parents[2] / "docs" / "fusion.md").read_text()
    for reason, words in REASONS.items():
        assert f"| `{reason}` | {words} |" in document


def back(*ops, place=SIX):
    found = tuple(op(name, place, number=i, phase="backward") for i, name in enumerate(ops))
    return Source(found, "backward", graph=1)


def test_in_backward_an_op_that_one_kernel_computes_at_another_line_is_that():
    kernels = capture("compile", generated(op("add")), back("mul"), traced=(FIVE, SIX))
    found = align(eager(op("add"), op("mul", phase="backward")), kernels)
    assert (replaced(found), found.left, found.kernels[1].by_line) == ([(0,), (1,)], (), ())


@pytest.mark.parametrize(
    "kernels", [(back("mul"), back("mul", place=SEVEN)), (back("mul", "mul"),)]
)
def test_in_backward_an_op_that_may_be_one_of_several_at_other_lines_is_not_said_to_be_gone(
    kernels,
):
    kernels = capture("compile", generated(op("add")), *kernels, traced=(FIVE, SIX))
    found = align(eager(op("add"), op("mul", phase="backward")), kernels)
    assert (found.left, found.matched) == (((1, UNKNOWN),), 1)


def test_in_backward_a_line_is_no_answer_where_another_kernel_has_the_op():
    product, added = back("mm", place=FIVE), back("add")
    found = align(eager(op("add", phase="backward")), capture("compile", product, added))
    assert (replaced(found), found.left) == ([(), (0,)], ())
    twice = capture("compile", product, added, back("add", place=SEVEN))
    found = align(eager(op("add", phase="backward")), twice)
    assert (replaced(found), found.left) == ([(), (), ()], ((0, UNKNOWN),))
