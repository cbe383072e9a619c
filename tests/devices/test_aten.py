"""The adapter to torch's operator registry. Where torch changes it, these tests know it first."""

import pytest
import torch

from kernelcount.devices.aten import becomes, can_tell_composite, effect


def test_this_torch_tells_which_operations_are_made_of_others():
    assert can_tell_composite(), f"torch {torch.__version__} has lost _dispatch_has_kernel_for_..."


WORK = """add relu mm addmm copy_ fill_ clone sum mean ones_like zeros_like bernoulli_ sort _softmax
native_layer_norm convolution embedding index cat _foreach_add silu_backward mish_backward topk
_to_copy nonzero randn equal"""
NOTHING = """view t transpose permute expand slice select squeeze_ unsqueeze as_strided detach
detach_ alias unbind split split_with_sizes unfold diagonal view_as_real empty empty_like
empty_strided resize_ set_ lift_fresh _unsafe_view _local_scalar_dense is_pinned _indices _values
resolve_conj"""
COMPOSITE = """linear matmul reshape contiguous to softmax layer_norm dropout conv2d item flatten
cross_entropy_loss chunk scaled_dot_product_attention lstm narrow type_as mT"""


@pytest.mark.parametrize("name", WORK.split())
def test_these_do_work(name):
    assert effect(f"aten::{name}") == "work"


@pytest.mark.parametrize("name", NOTHING.split())
def test_these_touch_no_element(name):
    assert effect(f"aten::{name}") == "nothing"


@pytest.mark.parametrize("name", COMPOSITE.split())
def test_these_are_made_of_others(name):
    assert effect(f"aten::{name}") == "composite"


@pytest.mark.parametrize("name", ["max", "min", "where", "std", "var", "repeat_interleave"])
def test_of_these_some_overloads_are(name):
    assert effect(f"aten::{name}") == "mixed"
    assert f"aten::{name}" in becomes(f"aten::{name}")


def test_the_larger_of_two_becomes_another_operation():
    assert "aten::maximum" in becomes("aten::max")


@pytest.mark.parametrize("name", ["prim::device", "profiler::_record_function_enter_new"])
def test_what_is_no_tensor_operation_does_nothing(name):
    assert effect(name) == "nothing"


@pytest.mark.parametrize("name", ["mine::unheard_of", "aten::unheard_of", "c10d::allreduce_"])
def test_what_nobody_knows_does_work(name):
    assert effect(name) == "work"


def test_a_custom_operation_is_one(count, target):
    spec = target("""
        @torch.library.custom_op("kernelcount_tests::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x + x * 1
        def f(x):
            return twice(x)
    """)
    outcome = count(f"{spec}:f", inputs=("f32[4]",))["eager"]
    # From torch 2.14 on such an op leaves no row of its own in a profile, only what it calls.
    of_its_own = torch.torch_version.TorchVersion(torch.__version__) < (2, 14)
    expected = ["kernelcount_tests::twice"] if of_its_own else ["aten::mul", "aten::add"]
    assert [row.name for row in outcome.rows()] == expected


def test_a_torch_that_tells_nothing_makes_every_operation_work(monkeypatch):
    monkeypatch.delattr(torch._C, "_dispatch_has_kernel_for_dispatch_key")
    effect.cache_clear()
    try:
        assert effect("aten::linear") == "work"
        assert effect("aten::view") == "nothing"
        assert not can_tell_composite()
    finally:
        effect.cache_clear()
