"""Launches of ops on lists of tensors."""

import pytest

from kernelcount.paper.foreach import LIMITS, _counted, launches
from kernelcount.paper.rules import Cost, Op, cost


@pytest.fixture(autouse=True)
def torch_2_11(monkeypatch):
    """The torch whose launches all take 4 KB of arguments, whichever CUDA it is built for."""
    monkeypatch.setattr("torch.__version__", "2.11.0+cu130")


def tensors(count, *shape, dtype=None):
    import torch

    return [torch.empty(shape or (8,), device="meta", dtype=dtype) for _ in range(count)]


@pytest.mark.parametrize(
    ("name", "lists", "scalars", "most"),
    [
        ("_foreach_mul_", 1, (2.0,), 110),
        ("_foreach_div_", 1, ([2.0],), 96),
        ("_foreach_sqrt", 1, (), 64),
        ("_foreach_add_", 2, (), 64),
        ("_foreach_lerp_", 2, (0.1,), 64),
        ("_foreach_add", 2, (), 48),
        ("_foreach_addcmul_", 3, (0.1,), 48),
        ("_foreach_addcdiv_", 3, ([0.1],), 48),
        ("_foreach_addcdiv", 3, (0.1,), 36),
    ],
)
def test_a_launch_takes_as_many_tensors_as_its_arguments_hold(name, lists, scalars, most):
    for count, expected in ((1, 1), (most, 1), (most + 1, 2), (3 * most, 3)):
        args = [tensors(count) for _ in range(lists)] + list(scalars)
        assert launches(name, args) == (expected, True)


def test_a_launch_takes_320_chunks_of_65536():
    assert launches("_foreach_neg_", [tensors(1, 320 * 65_536)]) == (1, True)
    assert launches("_foreach_neg_", [tensors(1, 320 * 65_536 + 1)]) == (2, True)
    assert launches("_foreach_neg_", [tensors(3, 200 * 65_536)]) == (2, True)


def test_empty_tensors_take_no_place():
    assert launches("_foreach_neg_", [tensors(110) + tensors(110, 0)]) == (1, True)
    assert cost(Op("_foreach_neg_", "aten", [tensors(2, 0)], {}, tensors(2, 0), tensors(2, 0))) == (
        Cost(0)
    )


def test_where_cuda_decides_how_much_a_launch_takes_the_count_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr("torch.__version__", "2.13.0+cpu")
    assert launches("_foreach_neg_", [tensors(100)]) == (1, True)
    assert launches("_foreach_neg_", [tensors(1000)]) == (2, False)


@pytest.mark.parametrize("depth", range(1, 6))
def test_larger_arguments_never_take_more_launches(depth):
    many = tensors(900) + tensors(40, 10**7)
    small, large = (_counted(many, limits, depth, listed=False) for limits in LIMITS)
    assert large < small


def test_lists_that_are_worked_on_one_by_one_are_open():
    import torch

    mixed = tensors(1) + tensors(1, dtype=torch.bfloat16)
    strided = [torch.empty(8, 8, device="meta")[:, ::2]]
    for lists in ([mixed], [strided], [tensors(2, dtype=torch.int64)]):
        assert launches("_foreach_neg_", lists) is None
    other_layout = [torch.empty(4, 2, device="meta").t()]
    assert launches("_foreach_add_", [tensors(1, 2, 4), other_layout]) is None
    assert launches("_foreach_mul_", [tensors(2), torch.ones(())]) is None
    assert launches("_foreach_norm", [tensors(2)]) is None
    call = Op("_foreach_norm", "aten", [tensors(2)], {}, tensors(2), tensors(2))
    assert cost(call) == Cost(1, exact=False)
