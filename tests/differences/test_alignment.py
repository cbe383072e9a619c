"""Which row of one capture is which row of another."""

from array import array
from dataclasses import replace
from random import Random

import pytest

from kernelcount.differences.alignment import align, numbered
from kernelcount.model import Capture, Lane, Origin, Place, Provenance, Records, Source, Work


def capture(*works, counts=None):
    """Kernels by name, or works, each running once or as often as `counts` says."""
    works = tuple(Work(w, "kernel") if isinstance(w, str) else w for w in works)
    order = [i for i, n in enumerate(counts or [1] * len(works)) for _ in range(n)]
    n = len(order)
    zeros = array("q", [0] * n)
    lanes = (Lane("0", "7"),)
    records = Records(works, lanes, array("i", order), array("i", [0] * n), zeros, zeros)
    return Capture("x", records=records)


def pairs(before, after, **options):
    return [
        (a and a.name, b and b.name) for a, b in align(capture(*before), capture(*after), **options)
    ]


def fused(name, size, grid=None):
    return Work(name, "kernel", read=size, written=size, grid=grid)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triton_poi_fused_add_relu_0", ("triton_poi_fused_add_relu", 0)),
        ("triton_red_fused_add_12", ("triton_red_fused_add", 12)),
        ("graph_3_cpp_fused_add_relu_0", ("cpp_fused_add_relu", 0)),
        ("triton_poi_fused_log2_7", ("triton_poi_fused_log2", 7)),
        ("my_triton_kernel_1", ("my_triton_kernel_1", None)),
        ("nvjet_tst_192x176_64x4", ("nvjet_tst_192x176_64x4", None)),
        ("triton_kernel", ("triton_kernel", None)),
    ],
)
def test_the_number_at_the_end_of_a_name_is_inductors_own_and_of_no_other(name, expected):
    assert numbered(name) == expected


def test_one_kernel_more_in_front_renames_what_follows_and_is_the_only_new_one():
    before = ["triton_poi_fused_add_0", "triton_red_fused_sum_1"]
    after = ["triton_poi_fused_mul_0", "triton_poi_fused_add_1", "triton_red_fused_sum_2"]
    assert pairs(before, after) == [
        (None, "triton_poi_fused_mul_0"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_1"),
        ("triton_red_fused_sum_1", "triton_red_fused_sum_2"),
    ]


def test_of_kernels_that_fuse_the_same_ops_the_new_one_is_told_by_its_bytes():
    before = [fused("triton_poi_fused_add_0", 100), fused("triton_poi_fused_add_1", 200)]
    after = [
        fused("triton_poi_fused_add_0", 50),
        fused("triton_poi_fused_add_1", 100),
        fused("triton_poi_fused_add_2", 200),
    ]
    assert pairs(before, after) == [
        (None, "triton_poi_fused_add_0"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_1"),
        ("triton_poi_fused_add_1", "triton_poi_fused_add_2"),
    ]


def test_and_by_its_grid_where_bytes_are_not_known():
    before = [fused(f"triton_poi_fused_add_{i}", None, (g, 1, 1)) for i, g in enumerate([8, 16])]
    after = [fused(f"triton_poi_fused_add_{i}", None, (g, 1, 1)) for i, g in enumerate([8, 4, 16])]
    assert pairs(before, after)[1] == (None, "triton_poi_fused_add_1")


def test_where_nothing_tells_them_apart_names_do():
    before = ["triton_poi_fused_add_0", "triton_poi_fused_add_2"]
    after = ["triton_poi_fused_add_0", "triton_poi_fused_add_1", "triton_poi_fused_add_2"]
    assert pairs(before, after)[1] == (None, "triton_poi_fused_add_1")


def test_a_kernel_that_is_gone_stands_where_it_was():
    assert pairs(["a", "b", "c"], ["a", "c"]) == [("a", "a"), ("b", None), ("c", "c")]
    assert pairs(["a", "b"], ["b"]) == [("a", None), ("b", "b")]


def test_the_same_kernel_under_another_op_is_the_same_kernel():
    before = [Work("nvjet_1", "kernel", "linear")]
    after = [Work("nvjet_1", "kernel", "addmm")]
    assert pairs(before, after) == [("nvjet_1", "nvjet_1")]


def test_an_op_that_another_kernel_does_now_is_the_same_op():
    before = [Work("nvjet_1", "kernel", "mm"), Work("relu_k", "kernel", "relu")]
    after = [Work("nvjet_2", "kernel", "mm"), Work("relu_k", "kernel", "relu")]
    assert pairs(before, after) == [("nvjet_1", "nvjet_2"), ("relu_k", "relu_k")]


def test_where_it_cannot_be_told_which_kernel_of_an_op_is_another_now_none_is():
    before = [Work("nvjet_1", "kernel", "mm")]
    after = [Work("nvjet_2", "kernel", "mm"), Work("splitK", "kernel", "mm")]
    assert pairs(before, after) == [("nvjet_1", None), (None, "nvjet_2"), (None, "splitK")]


def test_a_kernel_and_a_copy_of_one_name_are_two_things():
    before, after = [Work("Memcpy", "kernel")], [Work("Memcpy", "copy")]
    assert pairs(before, after) == [("Memcpy", None), (None, "Memcpy")]


def test_a_lock_file_has_no_order_so_that_numbers_say_what_came_first():
    before = ["triton_poi_fused_add_10", "triton_poi_fused_add_9"]
    after = ["triton_poi_fused_add_9", "triton_poi_fused_add_10"]
    assert pairs(before, after, ordered=False) == [(name, name) for name in after]


def test_rows_are_paired_each_once_whatever_they_are():
    dice = Random(0)
    names = ["k", "l", *(f"triton_poi_fused_add_{i}" for i in range(4))]

    def drawn():
        return Work(
            dice.choice(names),
            dice.choice(["kernel", "copy"]),
            dice.choice([None, "mm", "add"]),
            dice.choice([None, (1,), (2,)]),
        )

    for _ in range(200):
        old, new = (capture(*(drawn() for _ in range(dice.randrange(9)))) for _ in range(2))
        found = align(old, new)
        before = [a for a, _ in found if a is not None]
        assert sorted(map(repr, before)) == sorted(map(repr, old.rows()))
        assert [b for _, b in found if b is not None] == list(new.rows())
        assert all(a is None or b is None or a.activity == b.activity for a, b in found)
        assert all(a == b for a, b in align(old, old))


def sourced(name, *origins, label=None):
    """A kernel, and what it computes: ops with their lines."""
    places = [(op, Place("model.py", line, "f")) for op, line in origins]
    source = Source(tuple(Origin(op, place) for op, place in places)) if origins else None
    return Work(name, "kernel", label), source


def with_sources(*kernels):
    counted = capture(*(work for work, _ in kernels))
    return replace(counted, provenance=Provenance(tuple(source for _, source in kernels)))


def test_another_kernel_that_computes_the_same_of_the_same_lines_is_the_same_now():
    before = with_sources(sourced("triton_poi_fused_add_sum_0", ("add", 5), ("sum", 6)))
    after = with_sources(
        sourced("triton_per_fused_add_sum_1", ("add", 5), ("sum", 6)),
        sourced("triton_poi_fused_add_0", ("add", 5)),
    )
    assert [(a and a.name, b and b.name) for a, b in align(before, after)] == [
        ("triton_poi_fused_add_sum_0", "triton_per_fused_add_sum_1"),
        (None, "triton_poi_fused_add_0"),
    ]


def test_the_same_line_with_another_op_is_no_reason_to_take_kernels_for_the_same():
    before = with_sources(sourced("relu_kernel", ("relu", 5), label="relu"))
    after = with_sources(sourced("gelu_kernel", ("gelu", 5), label="gelu"))
    assert [pair for pair in align(before, after) if None not in pair] == []


def test_of_kernels_that_fuse_the_same_ops_the_new_one_is_told_by_its_lines():
    before = with_sources(
        *(sourced(f"triton_poi_fused_add_{i}", ("add", n)) for i, n in enumerate([5, 9]))
    )
    after = with_sources(
        *(sourced(f"triton_poi_fused_add_{i}", ("add", n)) for i, n in enumerate([5, 7, 9]))
    )
    assert [(a and a.name, b and b.name) for a, b in align(before, after)] == [
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        (None, "triton_poi_fused_add_1"),
        ("triton_poi_fused_add_1", "triton_poi_fused_add_2"),
    ]


def test_where_the_lines_of_some_records_are_unknown_they_pair_nothing():
    before = with_sources(sourced("a_kernel", ("add", 5), label="add"))
    after = with_sources(sourced("b_kernel", label="plus"))
    assert [pair for pair in align(before, after) if None not in pair] == []
