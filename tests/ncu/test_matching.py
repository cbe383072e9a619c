"""Which record is which kernel under ncu: by function, launch and order, or not at all."""

from array import array

import pytest

from kernelcount.model import Capture, Lane, Records, Work
from kernelcount.ncu.log import Profiled
from kernelcount.ncu.matching import function, match

VECTORISED = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
BY_NVIDIA = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, "
    "std::array<char *, (unsigned long)3>>(int, T2, T3)"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (VECTORISED, "vectorized_elementwise_kernel"),
        (BY_NVIDIA, "vectorized_elementwise_kernel"),
        ("vectorized_elementwise_kernel", "vectorized_elementwise_kernel"),
        ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"),
        ("nvjet_tst_192x176_64x3_2x1_v_bz_TNT", "nvjet_tst_192x176_64x3_2x1_v_bz_TNT"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*)",
         "cunn_SoftMaxForward"),
        ("void at::native::<unnamed>::cunn_SoftMaxForward<(int)8>(T2 *)", "cunn_SoftMaxForward"),
        ("void internal::gemvx::kernel<int, float, false>(cublasGemvParamsEx<int>)", "kernel"),
        ("(no name)", "(no name)"),
    ],
)  # fmt: skip
def test_a_function_has_one_name_whoever_demangled_it(name, expected):
    assert function(name) == expected


def capture(*works):
    table = tuple(dict.fromkeys(works))
    order = array("i", map(table.index, works))
    zeros = array("q", [0] * len(works))
    return Capture("eager", records=Records(table, (Lane("0", "7"),), order, order, zeros, zeros))


def work(name, grid=None):
    return Work(name, "kernel", grid=grid)


def test_kernels_are_matched_in_order_and_copies_are_none():
    counted = capture(work(VECTORISED), Work("Memcpy DtoD", "copy"), work("b"), work(VECTORISED))
    under = [Profiled(BY_NVIDIA), Profiled("b"), Profiled(BY_NVIDIA)]
    assert match(counted, under) == [0, None, 1, 2]


def test_the_grid_tells_kernels_of_one_name_apart_where_streams_change_the_order():
    counted = capture(work("k", (8, 1, 1)), work("k", (16, 1, 1)))
    under = [Profiled("k", (16, 1, 1)), Profiled("k", (8, 1, 1))]
    assert match(counted, under) == [1, 0]


def test_where_the_grid_is_not_known_or_another_the_order_tells():
    counted = capture(work("k"), work("k"))
    assert match(counted, [Profiled("k", (16, 1, 1)), Profiled("k", (8, 1, 1))]) == [0, 1]


@pytest.mark.parametrize("names", [["a"], ["a", "b", "b"], ["a", "c"], []])
def test_other_kernels_or_another_number_match_nothing(names):
    assert match(capture(work("a"), work("b")), [Profiled(name) for name in names]) is None
