"""Kernel names, shortened."""

from __future__ import annotations

import pytest

from kernelcount.render.names import short_label, short_name

from . import samples

MUL = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
    "BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >"
    "(at::TensorIteratorBase&, at::native::BUnaryFunctor<float, float, float> const&)::"
    "{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<float>)"
)
ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
    "(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::"
    "BinaryOpScalarFunctor<float, 1, 1, 0>, std::plus<float>, float>(int)"
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, "
    "false, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)"
)
GEMV = (
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, "
    "false, true, true, false, 7, false, cublasGemvParamsEx<int, float> >(float)"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (samples.ADD, "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"),
        (samples.RELU, "vectorized_elementwise_kernel<launch_clamp_scalar>"),
        (MUL, "elementwise_kernel<BUnaryFunctor<float, MulFunctor>>"),
        (ADAM, "multi_tensor_apply_kernel<BinaryOpScalarFunctor<float>, plus<float>, float>"),
        (SOFTMAX, "softmax_warp_forward<BFloat16, float>"),
        (GEMV, "gemvx::kernel<float, cublasGemvParamsEx<float>>"),
        ("void at::native::fill<at::native::F<unsigned char>, 4>(int)", "fill<F<unsigned char>>"),
        ("ncclDevKernel_AllReduce_RING_LL(Args<4096ul>)", "ncclDevKernel_AllReduce_RING_LL"),
        ("void f<at::g(int)::[lambda(float) (instance 1)]>(int)", "f<g>"),
    ],
)
def test_a_mangled_beast_is_called_by_its_function_and_functor(name, short):
    assert short_name(name) == short


@pytest.mark.parametrize(
    "name",
    [
        samples.FUSED,
        "nvjet_tst_192x176_64x4_1x2_h_bz_coopB_TNT",
        "Memcpy DtoD (Device -> Device)",
        "a < b",
        "unbalanced<int>>",
        "{lambda()#1}",
        "<>",
        "",
        "::",
        "核",
    ],
)
def test_what_is_no_cpp_function_keeps_its_name(name):
    assert short_name(name) == name


def test_a_hostile_name_is_shortened_in_no_time():
    assert short_name("a<" * 50_000 + ">" * 50_000) == "a<a<a<a>>>"


def test_a_label_loses_the_namespace_of_pytorch_alone():
    assert short_label("aten::add") == "add"
    assert short_label("mylib::add") == "mylib::add"


@pytest.mark.parametrize(
    "name", ["step 1::add", "model::layer-1", "::error::x", "a::b=c", "layer::add kernel", "x::"]
)
def test_a_name_with_colons_that_is_none_of_cpp_stays_as_it_is(name):
    assert short_name(name) == name
