"""What is shown of several sizes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kernelcount.model import Beside, Note, Numerics, Records, Unmeasured
from kernelcount.render import render
from kernelcount.render.layout import cells
from kernelcount.render.wording import about, amount, joined
from tests.render import samples, sweeps, test_paper

L2 = Note("served-by-l2", "the inputs fit into the L2 cache (60 MB): --cold keeps them out of it")
MEMORY = "out of GPU memory: 75 GiB asked for, 74 GiB free"


def noted(run, *notes):
    """The size with these notes on every variant."""
    return replace(run, outcomes=tuple(replace(o, notes=notes) for o in run.outcomes))


def served_by_l2():
    small, *others = sweeps.crossed().runs
    return sweeps.report(*(noted(r, L2) if r.size < 1e7 else r for r in (small, *others)))


def on_paper():
    runs = tuple(
        sweeps.Run(
            tuple(
                replace(c, paper=replace(c.paper, bound_ns=bound and bound * n // 10**8))
                for c, bound in ((test_paper.eager(), first), (test_paper.compiled(), second))
            ),
            n,
        )
        for n, first, second in (
            (10**4, None, None), (10**6, None, None), (10**8, 416_667, 250_000)
        )
    )  # fmt: skip
    return sweeps.report(*runs, environment=test_paper.H200)


def on_cpu():
    eager, fused = samples.on_cpu().outcomes
    runs = (sweeps.run(n, us, eager, fused) for n, us in ((100, (1.9, 7.2)), (10**6, (310, 120))))
    return sweeps.report(*runs, environment=samples.CPU)


def with_transfers(*of_eager):
    """Measured at two sizes, with so many transfers of eager on paper beside it."""
    runs = []
    for (size, us), n in zip(((100, (9, 17)), (10**8, (469, 280))), of_eager, strict=True):
        whole = sweeps.run(size, us, samples.eager(), samples.compiled())
        unit = 4 * size
        eager = test_paper.eager(read=(n - 2) * unit, written=2 * unit, unit=unit, floor=3 * unit)
        fused = test_paper.compiled(read=2 * unit, written=unit, unit=unit, floor=3 * unit)
        both = tuple(Beside(paper, same_calls=True) for paper in (eager, fused))
        runs.append(replace(whole, besides=both))
    return sweeps.report(*runs)


def five_variants():
    names = ("eager", "compile", "compile:reduce-overhead", "compile:max-autotune", "fast.py:mine")
    captures = [samples.capture(n, (samples.FUSED, "kernel", None, 1_000)) for n in names]
    times = ((100, (9, 17, 5, 17, 9.01)), (10**6, (13, 17, 9, 12, 13.01)))
    return sweeps.report(*(sweeps.run(n, us, *captures) for n, us in times))


def more_kernels_from_a_size_on():
    split = samples.capture(
        "compile", *[(f"triton_red_fused_sum_{i}", "kernel", None, 9_000) for i in range(2)]
    )
    small, large = samples.compiled(), split
    return sweeps.report(
        sweeps.run(100, (9, 17), samples.eager(), small),
        sweeps.run(10**6, (40, 17), samples.eager(), large),
    )


def out_of_memory():
    *runs, last = sweeps.crossed().runs
    partly = replace(last.outcomes[0], name="eager"), Unmeasured("compile", MEMORY)
    return sweeps.report(
        *runs,
        replace(last, outcomes=partly, speeds=(None, None)),
        sweeps.unmeasured(2 * 10**10, reason=MEMORY),
    )


def evil():
    """Names with markup, newlines, escapes and letters of two cells, also as reasons."""
    names = ("eager", samples.EVIL[0] + ".py:f", samples.EVIL[3], samples.EVIL[7][:30], "$x_2$<b>")
    captures = [samples.capture(n, (samples.FUSED, "kernel", None, 1_000)) for n in names]
    odd = tuple(Note(f"odd-{i}", name) for i, name in enumerate(samples.EVIL))
    runs = [
        noted(sweeps.run(n, us, *captures), *odd)
        for n, us in ((100, (9, 17, 5, 17, 9.01)), (10**6, (13, 10, 9, 12, 13.01)))
    ]
    return sweeps.report(
        *runs, sweeps.unmeasured(10**9, *(Unmeasured(n, samples.EVIL[3]) for n in names))
    )


def test_a_sweep_says_from_which_size_on_it_is_faster_and_has_a_row_for_each_size():
    assert render(served_by_l2(), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is faster per call than eager from a size of about 5.2e6 on, as far as
1e8: slower at 1e6, faster at 1e8.
At every size: compile launches 1 kernel instead of 2.

         time per call       speed over eager
  size     eager   compile   compile
   100    9.1 µs   17.4 µs   1.91x slower
   1e4    9.2 µs   17.3 µs   1.88x slower
   1e6   13.1 µs   17.5 µs   1.34x slower
   1e8    469 µs    280 µs   1.68x faster

note: at 100, 1e4 and 1e6: the inputs fit into the L2 cache (60 MB): --cold
      keeps them out of it.

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""
    )


def test_without_times_the_table_has_the_counts_and_the_kernel_time():
    assert render(samples.sweep(), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

At every size: compile launches 1 kernel instead of 2.

         kernels           kernel time         beside eager
  size   eager   compile     eager   compile   compile
   100       2         1   2.31 µs   1.36 µs   1.70x less
   1e6       2         1   5.56 µs   3.28 µs   1.70x less
   1e8       2         1    463 µs    273 µs   1.70x less

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""
    )


def test_on_paper_it_has_the_counts_and_what_is_modelled():
    assert render(on_paper(), format="table") == (
        """\
add_relu                                     on paper for an H200 · torch 2.13.0

At every size: compile would launch 1 kernel instead of 2 and make 3 array
transfers instead of 5, which is the least possible.

         kernels           transfers         at least
  size   eager   compile   eager   compile    eager   compile
   1e4       2         1     5.0       3.0      n/a       n/a
   1e6       2         1     5.0       3.0      n/a       n/a
   1e8       2         1     5.0       3.0   417 µs    250 µs

Nothing ran on a GPU: counts follow torch 2.13.0's own code generation, and
bytes and times are modelled from shapes. A transfer is the largest array, read
or written once. --full lists the kernels and all figures of each size.
"""
    )


def test_on_the_cpu_it_says_that_these_are_no_kernels():
    assert render(on_cpu(), format="table") == (
        """\
add_relu                                                      CPU · torch 2.13.0

compile is faster per call than eager from a size of about 2.2e4 on, as far as
1e6: slower at 100, faster at 1e6.
At every size: compile runs 1 operation instead of 2. No GPU was involved: these
are CPU operations, not GPU kernels.

         time per call      speed over eager
  size    eager   compile   compile
   100   1.9 µs    7.2 µs   3.79x slower
   1e6   310 µs    120 µs   2.58x faster

ATen operations are PyTorch's own CPU routines; generated kernels are CPU code
written by torch.compile. --full lists the kernels and all figures of each size.
"""
    )


def test_transfers_are_said_with_the_kernels_and_stand_in_the_table_where_they_differ():
    assert render(with_transfers(5, 5), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is faster per call than eager from a size of about 2.1e5 on, as far as
1e8: slower at 100, faster at 1e8.
At every size: compile launches 1 kernel instead of 2. It makes 3 array
transfers instead of 5, which is the least possible.

         time per call      speed over eager
  size    eager   compile   compile
   100     9 µs     17 µs   1.89x slower
   1e8   469 µs    280 µs   1.68x faster

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
A transfer is the largest array, read or written once. --full lists the kernels
and all figures of each size.
"""
    )
    assert render(with_transfers(5, 4), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is faster per call than eager from a size of about 2.1e5 on, as far as
1e8: slower at 100, faster at 1e8.

         kernels           transfers         time per call      speed over eager
  size   eager   compile   eager   compile    eager   compile   compile
   100       2         1     5.0       3.0     9 µs     17 µs   1.89x slower
   1e8       2         1     4.0       3.0   469 µs    280 µs   1.68x faster

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
A transfer is the largest array, read or written once. --full lists the kernels
and all figures of each size.
"""
    )


def test_counts_that_differ_between_sizes_stand_in_the_table():
    assert render(more_kernels_from_a_size_on(), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is faster per call than eager from a size of about 5100 on, as far as
1e6: slower at 100, faster at 1e6.

         kernels           time per call     speed over eager
  size   eager   compile   eager   compile   compile
   100       2         1    9 µs     17 µs   1.89x slower
   1e6       2         2   40 µs     17 µs   2.35x faster

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""
    )


def test_what_could_not_be_measured_keeps_its_row_with_the_reason():
    assert render(out_of_memory(), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is slower per call than eager at all 3 sizes timed, 100 to 1e6. It is
not known at 1e8 and 2e10.
At 100, 1e4 and 1e6: compile launches 1 kernel instead of 2.
At 1e8: Unknown for compile: out of GPU memory: 75 GiB asked for, 74 GiB free.
Nothing is concluded.

         time per call       speed over eager
  size     eager   compile   compile
   100    9.1 µs   17.4 µs   1.91x slower
   1e4    9.2 µs   17.3 µs   1.88x slower
   1e6   13.1 µs   17.5 µs   1.34x slower
   1e8    469 µs   unknown   unknown
  2e10   unmeasured: out of GPU memory: 75 GiB asked for, 74 GiB free.

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""
    )


def test_many_variants_are_folded_into_several_tables_each_with_the_sizes():
    assert render(five_variants(), format="table") == (
        """\
add_relu                                              NVIDIA H200 · torch 2.11.0

compile is slower per call than eager at both sizes timed, 100 and 1e6.
compile:reduce-overhead is faster per call than eager at both sizes timed, 100
and 1e6.
compile:max-autotune is faster per call than eager from a size of about 3.6e5
on, as far as 1e6: slower at 100, faster at 1e6.
fast.py:mine takes as long per call as eager at both sizes timed, 100 and 1e6,
within what can be told.
At every size: compile launches as many kernels as eager: 1.
compile:reduce-overhead launches as many kernels as eager: 1.
compile:max-autotune launches as many kernels as eager: 1. fast.py:mine launches
as many kernels as eager: 1.

         time per call
  size   eager   compile   compile:reduce-overhead   compile:max-autotune
   100    9 µs     17 µs                      5 µs                  17 µs
   1e6   13 µs     17 µs                      9 µs                  12 µs

         time per call
  size   fast.py:mine
   100        9.01 µs
   1e6          13 µs

         speed over eager
  size   compile        compile:reduce-overhead   compile:max-autotune
   100   1.89x slower   1.80x faster              1.89x slower
   1e6   1.31x slower   1.44x faster              1.08x faster

         speed over eager
  size   fast.py:mine
   100   no difference
   1e6   no difference

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""
    )


def test_names_of_the_users_cannot_act_on_the_terminal():
    assert (
        render(evil(), format="table")
        == (
            r"""
add_relu                                              NVIDIA H200 · torch 2.11.0

\x1b[31mred\x1b[0m.py:f is faster per call than eager from a size of about 6.8e4
on, as far as 1e6: slower at 100, faster at 1e6. It is not known at 1e9.
two\x0alines\x0d::error::pwned is faster per call than eager at both sizes
timed, 100 and 1e6. It is not known at 1e9.
核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核 is faster per call
than eager from a size of about 3.6e5 on, as far as 1e6: slower at 100, faster
at 1e6. It is not known at 1e9.
$x_2$<b> takes as long per call as eager at both sizes timed, 100 and 1e6,
within what can be told. It is not known at 1e9.
At 100 and 1e6: \x1b[31mred\x1b[0m.py:f launches as many kernels as eager: 1.
two\x0alines\x0d::error::pwned launches as many kernels as eager: 1.
核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核 launches as many
kernels as eager: 1. $x_2$<b> launches as many kernels as eager: 1.

         time per call
  size   eager   \x1b[31mred\x1b[0m.py:f   two\x0alines\x0d::error::pwned
   100    9 µs                     17 µs                             5 µs
   1e6   13 µs                     10 µs                             9 µs
   1e9   unmeasured: two lines ::error::pwned.

         time per call
  size   核核核核核核核核核核…核核核核核核核   $x_2$<b>
   100                                 17 µs    9.01 µs
   1e6                                 12 µs      13 µs
   1e9   unmeasured: two lines ::error::pwned.

         speed over eager
  size   \x1b[31mred\x1b[0m.py:f   two\x0alines\x0d::error::pwned
   100   1.89x slower              1.80x faster
   1e6   1.30x faster              1.44x faster
   1e9   unmeasured: two lines ::error::pwned.

         speed over eager
  size   核核核核核核核核核核…核核核核核核核   $x_2$<b>
   100   1.89x slower                          no difference
   1e6   1.08x faster                          no difference
   1e9   unmeasured: two lines ::error::pwned.

note: at 100 and 1e6: \x1b[31mred\x1b[0m.
note: at 100 and 1e6: a|b`c`|.
note: at 100 and 1e6: <script>alert(1)</script>.
note: at 100 and 1e6: two lines ::error::pwned.
note: at 100 and 1e6: [red]markup[/red] :smile:.
note: at 100 and 1e6: \u202eesrever\u2066.
note: at 100 and 1e6: half � pair, \x9b31m, nul \x00.
note: at 100 and 1e6:
      核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核
      核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核核
      核核核核核核核核核核核核核核核核核核核核核核核核核核.
note: at 100 and 1e6: =HYPERLINK(1).
note: at 100 and 1e6:
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxx.

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
--full lists the kernels and all figures of each size.
"""[1:]
        )
    )


def test_in_markdown_it_is_one_table_too():
    assert render(out_of_memory(), format="markdown") == (
        """\
**add_relu** · NVIDIA H200 · torch 2.11.0

compile is slower per call than eager at all 3 sizes timed, 100 to 1e6. It is not known at 1e8 and 2e10.

At 100, 1e4 and 1e6: compile launches 1 kernel instead of 2.

**At 1e8: Unknown for compile: out of GPU memory: 75 GiB asked for, 74 GiB free. Nothing is concluded.**

| size | time per call, eager | time per call, compile | speed over eager, compile |
| ---: | ---: | ---: | --- |
| 100 | 9.1 µs | 17.4 µs | 1.91x slower |
| 1e4 | 9.2 µs | 17.3 µs | 1.88x slower |
| 1e6 | 13.1 µs | 17.5 µs | 1.34x slower |
| 1e8 | 469 µs | unknown | unknown |
| 2e10 | unmeasured: out of GPU memory: 75 GiB asked for, 74 GiB free. |  |  |
"""  # noqa: E501
    )


def test_how_well_the_times_are_known_is_one_note():
    first, *others, last = sweeps.crossed().runs
    note = Note("imprecise", "the time of a call is not known to ±1%: --seconds gives it more")
    report = sweeps.report(noted(first, note), *others, noted(last, L2, note))
    text = render(report, format="markdown")
    assert text.split("\n\n")[-1] == (f"- at 100 and 1e8: {note.detail}.\n- at 1e8: {L2.detail}.\n")


def test_a_variant_alone_is_not_named_again():
    runs = [sweeps.run(n, (us,), samples.eager()) for n, us in ((100, 9), (10**8, 469))]
    text = render(sweeps.report(*runs), format="table")
    assert "\n\n  size   time per call\n   100            9 µs\n   1e8          469 µs\n\n" in text
    assert "faster" not in text


def test_results_that_are_not_equal_stand_in_the_table():
    first, *others, last = sweeps.crossed().runs
    eager, compiled = last.outcomes
    differs = replace(compiled, numerics=Numerics("different", 1, 1.5, 2.0, 9))
    runs = (first, *others, replace(last, outcomes=(eager, differs)))
    lines = render(sweeps.report(*runs), format="table").splitlines()
    (above,) = [line for line in lines if line.endswith("result beside eager")]
    (row,) = [line for line in lines if line.startswith("   1e8")]
    assert row[above.index("result") :].strip() == "differs, 1.5"


def test_eager_code_under_another_name_is_called_so_and_never_faster():
    first, *others = sweeps.crossed().runs
    detail = "'compile' ran as eager code: the recompile limit (8) was reached at step.py:14"
    eager, compiled = first.outcomes
    limited = replace(compiled, notes=(Note("recompile-limit", detail),))
    report = sweeps.report(replace(first, outcomes=(eager, limited)), *others)
    text = render(report, format="table")
    assert f"At 100: {detail}." in " ".join(text.split())
    (row,) = [line for line in text.splitlines() if line.startswith("   100")]
    assert row.endswith("eager code")
    assert "It is not known at 100." in " ".join(text.split())
    everywhere = [
        replace(run, outcomes=(run.outcomes[0], replace(limited, timing=run.outcomes[1].timing)))
        for run in sweeps.crossed().runs
    ]
    text = render(sweeps.report(*everywhere), format="table")
    assert "compile (eager code)" in text
    assert "faster" not in text


def test_what_is_measured_nowhere_has_no_table():
    runs = [sweeps.unmeasured(n, reason="no GPU was found") for n in (1, 2)]
    text = render(sweeps.report(*runs), format="table")
    assert text.split("\n\n")[1:] == [
        "At every size: Unknown: no GPU was found. Nothing is concluded.\n"
    ]


@pytest.mark.parametrize("format_name", ["table", "markdown"])
def test_full_has_the_kernels_and_figures_of_each_size(format_name):
    text = render(sweeps.crossed(), format=format_name, full=True)
    for size in ("100", "1e4", "1e6", "1e8"):
        assert f"size {size}\n" in text
    assert text.count(samples.FUSED) == 4
    assert samples.FUSED not in render(sweeps.crossed(), format=format_name)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([(100, 9, 17), (10_000, 9, 17), (10**6, 17, 9)],
         "compile is faster per call than eager from a size of about 1e5 on, as far as 1e6: "
         "slower at 1e4, faster at 1e6."),
        ([(100, 9, 17), (10_000, 9, 9.01), (10**6, 17, 9)],
         "compile begins to be faster per call than eager between sizes 1e4 and 1e6: "
         "no difference at 1e4, faster at 1e6."),
        ([(100, 17, 9), (10_000, 9, 17)],
         "compile is faster per call than eager up to a size of about 1000: "
         "faster at 100, slower at 1e4."),
        ([(100, 17, 9), (10_000, 9, 9.01)],
         "compile ceases to be faster per call than eager between sizes 100 and 1e4: "
         "faster at 100, no difference at 1e4."),
        ([(100, 17, 9), (10_000, 17, 9)],
         "compile is faster per call than eager at both sizes timed, 100 and 1e4."),
        ([(100, 9, 17), (10_000, 9, 17), (20_000, 9, 17)],
         "compile is slower per call than eager at all 3 sizes timed, 100 to 2e4."),
        ([(100, 9, 9.01), (10_000, 9, 9.01)],
         "compile takes as long per call as eager at both sizes timed, 100 and 1e4, within what "
         "can be told."),
        ([(100, 9, 9.01), (10_000, 9, 17)],
         "compile is faster per call than eager at none of the sizes timed, 100 and 1e4."),
        ([(100, 17, 9), (10_000, 9, 17), (10**6, 17, 9)],
         "compile is faster per call than eager at 100 and 1e6, and not at 1e4: "
         "there is no one size that parts them."),
    ],
)  # fmt: skip
def test_one_sentence_says_where_it_is_faster(times, said):
    text = render(sweeps.of_verdicts(*times), format="markdown")
    assert text.split("\n\n")[1] == said


def test_json_has_the_crossover_and_what_it_rests_on():
    document = json.loads(render(sweeps.crossed(), format="json"))
    (found,) = document["crossovers"]
    assert found == {
        "variant": "compile", "over": "eager",
        "from": 5_237_403, "low": 10**6, "high": 10**8, "holds": "from",
        "crossings": [{"low": 10**6, "high": 10**8, "about": 5_237_403}],
        "timed": [
            {"size": 100, "verdict": "slower"},
            {"size": 10**4, "verdict": "slower"},
            {"size": 10**6, "verdict": "slower"},
            {"size": 10**8, "verdict": "faster"},
        ],
        "unknown": [],
    }  # fmt: skip


def test_json_of_a_sweep_without_times_has_no_crossover():
    assert json.loads(render(samples.sweep(), format="json"))["crossovers"] == []


def test_json_has_null_where_it_is_known_only_in_between():
    report = sweeps.of_verdicts((100, 9, 9.01), (10_000, 17, 9))
    (found,) = json.loads(render(report, format="json"))["crossovers"]
    assert (found["from"], found["low"], found["high"]) == (None, 100, 10_000)


@pytest.mark.parametrize(
    "report", [served_by_l2, on_paper, on_cpu, five_variants, out_of_memory, evil]
)
@pytest.mark.parametrize("full", [False, True])
def test_no_line_is_wider_than_the_screen_and_none_ends_in_a_blank(report, full):
    for width in (40, 53, 80, 120):
        for line in render(report(), format="table", width=width, full=full).splitlines():
            assert cells(line) <= width
            assert line == line.rstrip()
            assert line.isprintable()


def test_sizes_are_as_a_person_writes_them_and_never_rounded():
    assert [amount(n) for n in (0, 100, 9_999, 10_000, 65_536, 250_000, 1_000_001, 10**12)] == [
        "0", "100", "9999", "1e4", "65536", "2.5e5", "1000001", "1e12"
    ]  # fmt: skip
    assert [about(x) for x in (3.14, 1234.5, 5_237_403.0)] == ["3", "1200", "5.2e6"]
    assert [joined(w) for w in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a", "a and b", "a, b and c"
    ]  # fmt: skip


def test_a_sentence_goes_on_in_small_letters_behind_the_sizes_that_it_is_about():
    def nothing(capture):
        return replace(capture, records=Records())

    runs = (
        sweeps.Run((nothing(test_paper.eager()), nothing(test_paper.compiled())), n)
        for n in (100, 10**4)
    )
    shown = render(sweeps.report(*runs, environment=test_paper.H200), format="table")
    assert "At every size: no kernel: neither eager nor compile would launch any." in shown
