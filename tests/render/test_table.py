"""The screen, as whole text at fixed widths."""
# ruff: noqa: E501 (a screen of 120 columns is wider than code)

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kernelcount.model import Note, Target
from kernelcount.render import render
from kernelcount.render.layout import cells

from . import samples

HEAD = "add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0\n"


def test_two_variants_stand_beside_each_other_below_the_sentence_that_answers():
    screen = render(samples.add_relu(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. Its kernel takes 273 µs instead of
463 µs.

                 eager   compile
  kernels            2         1
  launches           2         1
  kernel time   463 µs    273 µs   1.70x less

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_a_wide_screen_gives_names_more_room_and_nothing_else_changes():
    screen = render(samples.add_relu(), format="table", width=120)
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]                                                     NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. Its kernel takes 273 µs instead of 463 µs.

                 eager   compile
  kernels            2         1
  launches           2         1
  kernel time   463 µs    273 µs   1.70x less

  eager                                                                                                             time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>                                                  276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>                                                     187 µs
  compile                                                                                                           time
  1  triton_poi_fused_add_relu_0                                                                                  273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_the_full_screen_holds_complete_names_in_the_order_in_which_they_ran():
    screen = render(samples.add_relu(), format="table", full=True)
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. Its kernel takes 273 µs instead of
463 µs.

                 eager   compile
  kernels            2         1
  launches           2         1
  kernel time   463 µs    273 µs   1.70x less

  eager                                                                     time
  1  add                                                                  276 µs
     void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_a
     dd<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>
     , std::array<char*, 3ul>)
  2  relu                                                                 187 µs
     void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous na
     mespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Sc
     alar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{
     lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>
     >(int)
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_cpu_operations_are_never_called_gpu_kernels():
    screen = render(samples.on_cpu(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]                     CPU · torch 2.13.0

compile runs 1 operation instead of 2.
No GPU was involved: these are CPU operations, not GPU kernels.

                      eager   compile
  ATen operations         2         0
  generated kernels       0         1

  eager                                                                     time
  1  add                                                                  210 µs
  2  relu                                                                 140 µs
  compile                                                                   time
  1  graph_0_cpp_fused_add_relu_0                                          95 µs

ATen operations are PyTorch's own CPU routines; generated kernels are CPU code
written by torch.compile.
"""
    )


def test_a_lost_record_leaves_the_count_unknown_and_says_what_was_seen():
    screen = render(samples.incomplete(), format="table")
    assert (
        screen
        == """\
lost.json                                                            NVIDIA H200

Unknown: 2 launches, 1 kernel record (the profiler lost one).

  kernels           1 seen
  launches          2 seen
  kernel time   25 µs seen

  what ran                                                                  time
  1  mm  nvjet_tst_192x176_64x4_1x2_h_bz_coopB_TNT                         25 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_where_one_variant_is_unknown_nothing_is_concluded():
    screen = render(samples.compile_failed(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

Unknown for compile: torch.compile raised BackendCompilerFailed. Nothing is
concluded.
eager launches 2 kernels. They take 463 µs.

                 eager   compile
  kernels            2   unknown
  launches           2   unknown
  kernel time   463 µs   unknown

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_one_reason_for_all_variants_is_given_once():
    screen = render(samples.no_device(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]                     CPU · torch 2.13.0

Unknown: no GPU was found: torch 2.13.0+cpu is a build without CUDA. Nothing is
concluded.

               eager   compile
  kernels    unknown   unknown
  launches   unknown   unknown
"""
    )


def test_eager_code_is_not_passed_off_as_compiled():
    screen = render(samples.not_compiled(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

'compile' ran as eager code: 0 graphs were compiled.
eager launches 2 kernels. They take 463 µs.

                 eager   compile (eager code)
  kernels            2                      2
  launches           2                      2
  kernel time   463 µs                 463 µs

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile (eager code)   as eager

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_a_note_that_already_says_eager_code_is_not_said_twice():
    screen = render(samples.recompile_limit(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

'compile' ran as eager code: the recompile limit (8) was reached at step.py:14.
eager launches 2 kernels. They take 463 µs.

                 eager   compile (eager code)
  kernels            2                      2
  launches           2                      2
  kernel time   463 µs                 463 µs

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile (eager code)   as eager

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_an_unstable_count_is_warned_of_right_after_the_sentence():
    screen = render(samples.unstable(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. Its kernel takes 273 µs instead of
463 µs.
Careful with compile: calls 11 and 12 launched 3 and 4 kernels.

                 eager   compile
  kernels            2         1
  launches           2         1
  kernel time   463 µs    273 µs   1.70x less

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_a_remembered_result_never_wins():
    screen = render(samples.remembered(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launched nothing in the counted call: 1 kernel ran in warm-up, the
result was kept.
eager launches 2 kernels. They take 463 µs.

                 eager   compile
  kernels            2         0
  launches           2         0
  kernel time   463 µs      0 µs

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_no_kernel_on_either_side_is_said_as_such():
    screen = render(samples.no_kernels(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

No kernel: neither eager nor compile launches any.

             eager   compile
  kernels        0         0
  launches       0         0

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_more_kernels_are_told_as_plainly_as_fewer():
    screen = render(samples.more_kernels(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 41 kernels, eager 2. Its kernels take 2.05 ms instead of
463 µs.

                 eager   compile
  kernels            2        41
  launches           2        41
  kernel time   463 µs   2.05 ms   4.43x more

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                             total time
  1  triton_poi_fused_add_relu_0                                   ×41   2.05 ms

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_kernel_times_that_are_near_each_other_are_no_win():
    screen = render(samples.as_many(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

kernels.py:by_hand launches as many kernels as compile: 1. Its kernel takes
about as long: 273 µs.

                compile   kernels.py:by_hand
  kernels             1                    1
  launches            1                    1
  kernel time    273 µs               273 µs

  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs
  kernels.py:by_hand                                                        time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_beyond_twelve_rows_the_rest_is_summed_up():
    screen = render(samples.many_kernels(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 42. Its kernel takes 273 µs instead of
1.23 ms.

                  eager   compile
  kernels            42         1
  copies              1         0
  fills               1         0
  launches           42         1
  kernel time   1.23 ms    273 µs   4.52x less

  eager                                                               total time
   1  triton_red_fused_add_native_layer_norm_backward_view_3        ×12   444 µs
   2  addmm  sm80_xmma_gemm_f32f32_f32f32_f3…_k_kernel__5x_cublas          61 µs
   3  triton_red_fused_add_native_layer_norm_backward_view_0               40 µs
   4  triton_red_fused_add_native_layer_norm_backward_view_1               39 µs
   5  triton_red_fused_add_native_layer_norm_backward_view_2               38 µs
   6  triton_red_fused_add_native_layer_norm_backward_view_4               36 µs
   7  triton_red_fused_add_native_layer_norm_backward_view_5               35 µs
   8  triton_red_fused_add_native_layer_norm_backward_view_6               34 µs
   9  triton_red_fused_add_native_layer_norm_backward_view_7               33 µs
  10  triton_red_fused_add_native_layer_norm_backward_view_8               32 µs
  11  triton_red_fused_add_native_layer_norm_backward_view_9               31 µs
  12  triton_red_fused_add_native_layer_norm_backward_view_10              30 µs
  … and 21 more (19 kernels, 1 copy, 1 fill, 390 µs): --full shows all
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it;
copies and fills move or set memory and are not kernels.
"""
    )


def test_a_wide_screen_cuts_less_of_a_long_name():
    screen = render(samples.many_kernels(), format="table", width=120)
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]                                                     NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 42. Its kernel takes 273 µs instead of 1.23 ms.

                  eager   compile
  kernels            42         1
  copies              1         0
  fills               1         0
  launches           42         1
  kernel time   1.23 ms    273 µs   4.52x less

  eager                                                                                                       total time
   1  triton_red_fused_add_native_layer_norm_backward_view_3                                                ×12   444 µs
   2  addmm  sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_s…c4_execute_split_k_kernel__5x_cublas          61 µs
   3  triton_red_fused_add_native_layer_norm_backward_view_0                                                       40 µs
   4  triton_red_fused_add_native_layer_norm_backward_view_1                                                       39 µs
   5  triton_red_fused_add_native_layer_norm_backward_view_2                                                       38 µs
   6  triton_red_fused_add_native_layer_norm_backward_view_4                                                       36 µs
   7  triton_red_fused_add_native_layer_norm_backward_view_5                                                       35 µs
   8  triton_red_fused_add_native_layer_norm_backward_view_6                                                       34 µs
   9  triton_red_fused_add_native_layer_norm_backward_view_7                                                       33 µs
  10  triton_red_fused_add_native_layer_norm_backward_view_8                                                       32 µs
  11  triton_red_fused_add_native_layer_norm_backward_view_9                                                       31 µs
  12  triton_red_fused_add_native_layer_norm_backward_view_10                                                      30 µs
  … and 21 more (19 kernels, 1 copy, 1 fill, 390 µs): --full shows all
  compile                                                                                                           time
  1  triton_poi_fused_add_relu_0                                                                                  273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it; copies and fills move or set memory and
are not kernels.
"""
    )


def test_variants_too_many_for_the_width_go_into_a_second_table():
    screen = render(samples.graphs(), format="table")
    assert (
        screen
        == """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 24 kernels, eager 2. Its kernels take 96 µs instead of 463 µs.
compile:reduce-overhead launches 24 kernels, eager 2. Its kernels take 96 µs
instead of 463 µs.
compile:max-autotune-no-cudagraphs launches 24 kernels, eager 2. Its kernels
take 96 µs instead of 463 µs.
mine.py:g launches 24 kernels, eager 2. Its kernels take 96 µs instead of
463 µs.

                    eager   compile   compile:reduce-overhead
  kernels               2        24                        24
  copies                0         1                         1
  launches              2         1                         1
  graph launches        0         1                         1
  kernel time      463 µs     96 µs                     96 µs

                   compile:max-autotune-no-cudagraphs   mine.py:g
  kernels                                          24          24
  copies                                            1           1
  launches                                          1           1
  graph launches                                    1           1
  kernel time                                   96 µs       96 µs

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                             total time
  1  triton_poi_fused_add_relu_0                                     ×24   96 µs
     copy  Memcpy DtoD (Device -> Device)                                   2 µs
  compile:reduce-overhead                                             total time
  1  triton_poi_fused_add_relu_0                                     ×24   96 µs
     copy  Memcpy DtoD (Device -> Device)                                   2 µs
  compile:max-autotune-no-cudagraphs                                  total time
  1  triton_poi_fused_add_relu_0                                     ×24   96 µs
     copy  Memcpy DtoD (Device -> Device)                                   2 µs
  mine.py:g                                                           total time
  1  triton_poi_fused_add_relu_0                                     ×24   96 µs
     copy  Memcpy DtoD (Device -> Device)                                   2 µs

note: the data fits into the L2 cache (60 MB).

A kernel is one run of a GPU function; a launch is one CPU call that starts
kernels, many at once for a CUDA graph; copies and fills move or set memory and
are not kernels.
"""
    )


def test_several_devices_are_told_apart():
    screen = render(samples.two_devices(), format="table")
    assert (
        screen
        == """\
two.json                                              NVIDIA H200 · torch 2.11.0

3 kernels, 25 µs of kernel time.

  kernels           3
  launches          3
  kernel time   25 µs

  device 0    1 kernel   10 µs
  device 1   2 kernels   15 µs

  what ran                                                            total time
  1  add  vectorized_elementwise_kernel<CUDAFunctor_add<float>>       ×2   19 µs
  2  ncclDevKernel_AllReduce_Sum_f32_RING_LL                                6 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_profiler_steps_have_their_own_kernels():
    screen = render(samples.three_steps(), format="table")
    assert (
        screen
        == """\
steps.json.gz                                         NVIDIA H200 · torch 2.11.0

7 kernels, 28 µs of kernel time.

  kernels           7
  launches          7
  kernel time   28 µs

  ProfilerStep#5   3 kernels   12 µs
  ProfilerStep#6   2 kernels    8 µs
  ProfilerStep#7   2 kernels    8 µs

  what ran                                                            total time
  1  triton_poi_fused_add_relu_0                                      ×7   28 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_busy_time_is_shown_where_kernels_overlap():
    screen = render(samples.overlap(), format="table")
    assert (
        screen
        == """\
streams.json                                          NVIDIA H200 · torch 2.11.0

2 kernels, 200 µs of kernel time.

  kernels            2
  launches           2
  kernel time   200 µs
  busy          150 µs   overlap counted once

  what ran                                                                  time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          100 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             100 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_kernels_without_a_valid_time_make_the_sum_a_lower_bound():
    screen = render(samples.untimed(), format="table")
    assert (
        screen
        == """\
zero.json                                             NVIDIA H200 · torch 2.11.0

3 kernels, at least 35 µs of kernel time.

  kernels             3
  launches            3
  kernel time   ≥ 35 µs

  what ran                                                            total time
  1  vectorized_elementwise_kernel<CUDAFunctor_add<float>>                 35 µs
  2  nvjet_hsh_128x128                                                ×2       ?

note: 2 kernels have no valid time: counted, left out of the times.

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_names_from_a_trace_cannot_act_on_the_terminal():
    screen = render(samples.evil(), format="table")
    assert (
        screen
        == r"""
\x1b]0;title\x07=cmd|' /C calc'!A0.json               NVIDIA H200 · torch 2.11.0

20 kernels, 20 µs of kernel time.

  kernels          20
  launches         20
  kernel time   20 µs

  what ran, longest first                                                   time
   1  m0[\x1bde…3[\x1b  \x1b[31mred\x1b[0m                                  1 µs
   2  |`c`b|a           a|b`c`|                                             1 µs
   3  >tpircs/<…pircs<  <script>alert(1)</script>                           1 µs
   4  denwp::ro…x0aowt  pwned                                               1 µs
   5  :elims: ]…m]der[  [red]markup[/red] :smile:                           1 µs
   6  \u2066rev…\u202e  \u202eesrever\u2066                                 1 µs
   7  \x00 lun…� flah   half � pair, \x9b31m, nul \x00                      1 µs
   8  核核核核核核核核核核核核核核核核核核核…核核核核核核核核核核核核       1 µs
   9  )1(KNILREPYH=     =HYPERLINK(1)                                       1 µs
  10  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxx      1 µs
  11  \x1b[31mred\x1b[0m                                                    1 µs
  12  a|b`c`|                                                               1 µs
  … and 8 more (8 kernels, 8 µs): --full shows all

note: \x1b[31mred\x1b[0m.
note: a|b`c`|.
note: <script>alert(1)</script>.
note: two lines ::error::pwned.
note: [red]markup[/red] :smile:.
note: \u202eesrever\u2066.
note: half � pair, \x9b31m, nul \x00.
note: 核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核
      核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核
      核核核核核核核核核核核核核核核核核核核核核核核核核核.
note: =HYPERLINK(1).
note: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxx.

two\x0alines\x0d::error::pwned

Unknown: \x1b[31mred\x1b[0mtwo lines ::error::pwned.

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""[1:]
    )


SAMPLES = [
    samples.add_relu,
    samples.on_cpu,
    samples.incomplete,
    samples.compile_failed,
    samples.no_device,
    samples.not_compiled,
    samples.many_kernels,
    samples.graphs,
    samples.two_devices,
    samples.three_steps,
    samples.untimed,
    samples.sweep,
    samples.evil,
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.__name__)
@pytest.mark.parametrize("full", [False, True])
def test_no_line_is_wider_than_the_screen_and_none_ends_in_a_blank(sample, full):
    for width in (40, 53, 80, 120):
        for line in render(sample(), format="table", width=width, full=full).splitlines():
            assert cells(line) <= width
            assert line == line.rstrip()


def test_beyond_120_columns_a_screen_grows_no_wider():
    report = samples.many_kernels()
    wide = render(report, format="table", width=300)
    assert wide == render(report, format="table", width=120)


def test_colour_adds_styles_and_changes_no_word(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")  # the caller has decided already
    report = samples.unstable()
    coloured = render(report, format="table", colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(report, format="table")
    assert (
        "\x1b[1;33mCareful with compile: calls 11 and 12 launched 3 and 4 kernels.\x1b[0m\n"
        in coloured
    )


def test_without_colour_no_variable_of_the_environment_brings_it_in(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(samples.unstable(), format="table")


def test_colour_lets_no_escape_of_a_name_through():
    screen = render(samples.evil(), format="table", colour=True)
    assert "\x1b[31m" not in screen
    assert "\x1b]0;" not in screen


def test_a_report_on_nothing_is_still_a_head():
    assert render(samples.run_report(), format="table") == HEAD


def test_a_variant_that_is_alone_is_told_alone():
    screen = render(samples.run_report(samples.eager()), format="table")
    assert "\neager launches 2 kernels. They take 463 µs.\n" in screen


def test_a_note_on_one_variant_names_it():
    note = Note("graph-break", "1 graph break at step.py:8")
    report = samples.run_report(samples.eager(), samples.compiled(note))
    assert "\nnote: compile: 1 graph break at step.py:8.\n" in render(report, format="table")


def test_the_head_of_a_paper_count_says_that_nothing_ran():
    report = samples.run_report(replace(samples.eager(), basis="paper"))
    assert "on paper for an H200 · torch 2.11.0\n" in render(report, format="table")


def test_many_inputs_are_not_all_in_the_head():
    report = replace(samples.add_relu(), target=Target("m.py:f", ("f32[8]",) * 30))
    assert "f32[8], and 18 more\n" in render(report, format="table")
    assert "more" not in render(report, format="table", full=True).partition("\n\n")[0]
