"""Floating-point operations: how many, and at which precision."""

from functools import cache

import pytest

from kernelcount.paper import cards, flops
from kernelcount.paper.rules import Op
from tests.paper.test_counts import count

pytestmark = pytest.mark.filterwarnings("ignore")

H200, T4 = cards.CARDS["H200"], cards.CARDS["T4"]


usual = cache(count)


def done(name):
    return {n: dict(o.paper.flops) for n, o in usual(name).items()}


def product(dtype, name="mm"):
    import torch

    x = torch.empty(8, 16, device="meta", dtype=getattr(torch, dtype))
    return Op(name, "aten", (x, x.t()), {}, [x, x.t()], [torch.empty(8, 8, device="meta")])


def by_torch(function, args):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        function(*args)
    return counter.get_total_flops()


@pytest.mark.parametrize("name", ["multiplies", "multiplies_halves", "convolves"])
def test_they_are_as_many_as_torch_counts_itself_in_eager_and_compiled(name):
    from tests.paper import functions

    expected = by_torch(getattr(functions, name), getattr(functions, f"make_{name}")(64, "cpu"))
    assert [sum(found.values()) for found in done(name).values()] == [expected, expected]


def test_they_are_told_apart_by_precision_and_which_tensor_cores_make():
    each = 2 * 3 * 64**3
    for outcome in usual("multiplies_halves").values():
        assert dict(outcome.paper.flops) == {"bf16": each, "f32": each}
        assert outcome.paper.tensor_cores == ("bf16",)


def test_each_call_has_its_own_and_what_has_no_formula_none():
    eager = usual("multiplies_halves")["eager"]
    known = {row.label: row.flops for row in eager.rows()}
    assert known == {"bmm": 2 * 2 * 3 * 64**3, "relu": None, "_to_copy": None, "add": None}
    assert [w.precision for w in eager.records.works if w.flops] == ["bf16", "f32"]


def test_a_network_that_cudnn_runs_whole_does_the_operations_of_its_parts():
    outcome = count("recurs", "eager")["eager"]
    assert sum(n for _, n in outcome.paper.flops) > 0


def test_what_adds_up_nothing_does_no_operations():
    assert done("add_relu") == {"eager": {}, "compile": {}}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", ("f32", 2048)), ("bfloat16", ("bf16", 2048)), ("float16", ("f16", 2048)),
        ("float64", ("f64", 2048)), ("complex64", ("f32", 8192)), ("complex128", ("f64", 8192)),
    ],
)  # fmt: skip
def test_a_product_is_made_at_the_precision_of_its_operands(dtype, expected):
    assert flops.of(product(dtype), H200) == expected


def test_products_of_float32_are_made_in_tf32_where_that_is_switched_on():
    import torch

    torch.set_float32_matmul_precision("high")
    try:
        assert flops.of(product("float32"), H200) == ("tf32", 2048)
        assert flops.of(product("float32"), T4) == ("f32", 2048)  # its tensor cores have none
    finally:
        torch.set_float32_matmul_precision("highest")


def test_convolutions_of_float32_are_made_in_tf32_unless_that_is_switched_off():
    op = product("float32", "convolution")
    assert flops.precision(op, H200) == ("tf32", 1)
    import torch

    with torch.backends.cudnn.flags(allow_tf32=False):
        assert flops.precision(op, H200) == ("f32", 1)


def test_an_op_that_nobody_has_a_formula_for_is_not_known():
    assert flops.of(product("float32", "add"), H200) is None
    assert flops.of(Op("mm", "aten", (), {}, [], []), H200) is None


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_a_gradient_that_nobody_asks_for_costs_nothing(wanted):
    import torch

    x, w = torch.empty(2, 3, 8, 8, device="meta"), torch.empty(4, 3, 3, 3, device="meta")
    grad = torch.empty(2, 4, 8, 8, device="meta")
    args = (grad, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [*wanted, False])
    given = [t for t, asked in zip((x, w), wanted, strict=True) if asked]
    each = 2 * 2 * 8 * 8 * 4 * 3 * 3 * 3
    op = Op("convolution_backward", "aten", args, {}, [grad, x, w], given)
    assert flops.of(op, H200) == ("tf32", each * sum(wanted))


def convolved(x, weight, groups):
    args = (x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups)
    return Op("convolution", "aten", args, {}, [x, weight], [x])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_channel_by_itself_is_convolved_by_torchs_own_kernel_without_tensor_cores(dtype):
    import torch

    def empty(*shape):
        return torch.empty(shape, device="meta", dtype=getattr(torch, dtype))

    x, own, shared = empty(8, 64, 56, 56), empty(64, 1, 3, 3), empty(64, 64, 3, 3)
    assert flops.precision(convolved(x, own, 64), H200) == ("f32", 1)
    on_cores = {"float32": "tf32", "bfloat16": "bf16"}[dtype]
    assert flops.precision(convolved(x, shared, 1), H200) == (on_cores, 1)
    last = x.to(memory_format=torch.channels_last)
    assert flops.precision(convolved(last, own, 64), H200) == (on_cores, 1)


def test_distances_are_a_product_in_eager_code_as_in_compiled():
    import torch

    x, y = torch.empty(1000, 64, device="meta"), torch.empty(800, 64, device="meta")
    op = Op("_euclidean_dist", "aten", (x, y), {}, [x, y], [torch.empty(1000, 800, device="meta")])
    assert flops.of(op, H200) == ("f32", 2 * 1000 * 800 * 66)
