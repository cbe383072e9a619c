"""What is known of a variant: products in float32, and the rows that are theirs."""

from array import array

import pytest
import torch

from kernelcount.model import Capture, Lane, Records, Work

X = torch.ones(4, 4)


def counted(*works):
    n = len(works)
    return Capture(
        "eager",
        records=Records(
            works, (Lane("0", "7"),), array("i", range(n)), array("i", [0] * n),
            array("q", range(n)), array("q", [5] * n),
        ),
    )  # fmt: skip


GEMM = Work("gemm", "kernel", "linear", op="addmm")
OTHER = Work("relu", "kernel", "relu", op="clamp_min")


def test_products_are_watched_and_their_rows_are_those_of_their_ops(facts):
    known = facts(torch.nn.functional.linear, X, X, counted=counted(GEMM, OTHER))
    assert known.products == {"matmul"}
    assert [row.name for row in known.rows(known.products)] == ["gemm"]
    assert known.rows(frozenset({"convolution"})) == ()


def test_an_operation_of_the_cpu_is_its_own_op(facts):
    known = facts(torch.mm, X, X, counted=counted(Work("aten::mm", "aten", "matmul")))
    assert [row.name for row in known.rows(["matmul"])] == ["aten::mm"]


@pytest.mark.parametrize(("work", "families"), [(GEMM, {"matmul"}), (OTHER, set())])
def test_where_a_function_cannot_be_watched_its_labels_tell(facts, work, families):
    def fails(x):
        raise ValueError(x)

    assert facts(fails, X, counted=counted(work)).products == families


def test_watching_leaves_arguments_as_they_were(facts):
    x = torch.ones(2)
    assert facts(lambda x: x.mul_(2), x).products == set()
    assert x.tolist() == [1, 1]
