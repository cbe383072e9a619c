"""GitHub's Markdown, as whole text."""
# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

from kernelcount.render import render
from kernelcount.render.markdown import escape

from . import samples


def test_the_answer_and_both_tables_are_github_markdown():
    screen = render(samples.add_relu(), format="markdown")
    assert (
        screen
        == """\
**add_relu** · f32[100000000], f32[100000000] · NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. Its kernel takes 273 µs instead of 463 µs.

|  | eager | compile |  |
| --- | ---: | ---: | --- |
| kernels | 2 | 1 |  |
| launches | 2 | 1 |  |
| kernel time | 463 µs | 273 µs | 1.70x less |

| variant | name | count | time |
| --- | --- | ---: | ---: |
| eager | add <code>vectorized_elementwise_kernel&lt;CUDAFunctor_add&lt;float&gt;&gt;</code> | 1 | 276 µs |
| eager | relu <code>vectorized_elementwise_kernel&lt;launch_clamp_scalar&gt;</code> | 1 | 187 µs |
| compile | <code>triton_poi_fused_add_relu_0</code> | 1 | 273 µs |
"""
    )


def test_an_unknown_variant_stands_out():
    screen = render(samples.compile_failed(), format="markdown")
    assert (
        screen
        == """\
**add_relu** · f32[100000000], f32[100000000] · NVIDIA H200 · torch 2.11.0

**Unknown for compile: torch.compile raised BackendCompilerFailed. Nothing is concluded.**

eager launches 2 kernels. They take 463 µs.

|  | eager | compile |
| --- | ---: | ---: |
| kernels | 2 | unknown |
| launches | 2 | unknown |
| kernel time | 463 µs | unknown |

| variant | name | count | time |
| --- | --- | ---: | ---: |
| eager | add <code>vectorized_elementwise_kernel&lt;CUDAFunctor_add&lt;float&gt;&gt;</code> | 1 | 276 µs |
| eager | relu <code>vectorized_elementwise_kernel&lt;launch_clamp_scalar&gt;</code> | 1 | 187 µs |
"""
    )


def test_a_file_has_its_own_heading():
    screen = render(samples.incomplete(), format="markdown")
    assert (
        screen
        == """\
### lost.json · NVIDIA H200

**Unknown: 2 launches, 1 kernel record (the profiler lost one).**

|  |  |
| --- | ---: |
| kernels | 1 seen |
| launches | 2 seen |
| kernel time | 25 µs seen |

| name | count | time |
| --- | ---: | ---: |
| mm <code>nvjet_tst_192x176_64x4_1x2_h_bz_coopB_TNT</code> | 1 | 25 µs |
"""
    )


def test_no_name_from_a_trace_becomes_markup_html_or_a_command():
    screen = render(samples.evil(), format="markdown")
    assert (
        screen
        == r"""
### \\x1b]0;title\\x07=cmd\|' /C calc'!A0.json · NVIDIA H200 · torch 2.11.0

20 kernels, 20 µs of kernel time.

|  |  |
| --- | ---: |
| kernels | 20 |
| launches | 20 |
| kernel time | 20 µs |

| name | count | time |
| --- | ---: | ---: |
| m0[\\x1bderm13[\\x1b <code>\\x1b[31mred\\x1b[0m</code> | 1 | 1 µs |
| \|\`c\`b\|a <code>a\|b\`c\`\|</code> | 1 | 1 µs |
| &gt;tpircs/&lt;)1(trela&gt;tpircs&lt; <code>&lt;script&gt;alert(1)&lt;/script&gt;</code> | 1 | 1 µs |
| denwp\:\:rorre\:\:\\x0dsenil\\x0aowt <code>pwned</code> | 1 | 1 µs |
| \:elims: ]der/[pukram]der[ <code>[red]markup[/red] \:smile:</code> | 1 | 1 µs |
| \\u2066reverse\\u202e <code>\\u202eesrever\\u2066</code> | 1 | 1 µs |
| \\x00 lun ,m13\\x9b ,riap � flah <code>half � pair, \\x9b31m, nul \\x00</code> | 1 | 1 µs |
| <code>核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核</code> | 1 | 1 µs |
| )1(KNILREPYH= <code>=HYPERLINK(1)</code> | 1 | 1 µs |
| <code>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx</code> | 1 | 1 µs |
| <code>\\x1b[31mred\\x1b[0m</code> | 1 | 1 µs |
| <code>a\|b\`c\`\|</code> | 1 | 1 µs |
| … and 8 more (8 kernels, 8 µs) |  |  |

- \\x1b[31mred\\x1b[0m.
- a\|b\`c\`\|.
- &lt;script&gt;alert(1)&lt;/script&gt;.
- two lines \:\:error\:\:pwned.
- [red]markup[/red] \:smile:.
- \\u202eesrever\\u2066.
- half � pair, \\x9b31m, nul \\x00.
- 核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核.
- =HYPERLINK(1).
- xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.

### two\\x0alines\\x0d\:\:error\:\:pwned

**Unknown: \\x1b[31mred\\x1b[0mtwo lines \:\:error\:\:pwned.**
"""[1:]
    )


def test_the_rest_is_summed_up_unless_all_is_asked_for():
    report = samples.many_kernels()
    short, full = (render(report, format="markdown", full=f) for f in (False, True))
    assert "| eager | … and 21 more (19 kernels, 1 copy, 1 fill, 390 µs) |  |  |\n" in short
    assert "more" not in full
    assert "_backward_view_29</code>" in full


def test_a_link_an_emoji_and_a_mention_stay_text():
    assert escape("[x](https://a) :smile: @all") == r"[x\](https\://a) \:smile: &#64;all"


def test_an_underscore_inside_a_word_needs_no_escape():
    assert escape("triton_poi_fused_add_0 _x_") == r"triton_poi_fused_add_0 \_x\_"
