"""What is shown of times, results and memory."""

import json
from dataclasses import replace

import pytest

from kernelcount.model import Numerics, Price, Speed, Timing
from kernelcount.render import render
from tests.render import samples

BOTH = ("eager", "compile")


def timed(capture, us, **given):
    """A capture whose call takes so many microseconds, every time."""
    timing = Timing((us * 1e3,) * 20, 40, BOTH)
    return replace(capture, timing=timing, **given)


def report(eager_us, compile_us, verdict, scale=1000, **given):
    ratio = eager_us / compile_us
    speed = Speed(ratio, ratio * 0.996, ratio * 1.004, verdict)
    eager = timed(samples.eager(scale), eager_us, price=Price(2_000_000), peak_memory=800_000_000)
    compiled = timed(
        samples.compiled(scale=scale), compile_us, price=Price(3_002_000_000, 2_500_000_000, 0),
        peak_memory=400_000_000, numerics=Numerics("equal", 1, 0.0, 0.0, 0), **given,
    )  # fmt: skip
    whole = samples.run_report(eager, compiled)
    return replace(whole, runs=(replace(whole.runs[0], speeds=(None, speed)),))


def head(report):
    """The sentences, on one line."""
    text = render(report, format="table", width=120).split("\n\n")[1]
    return " ".join(text.split())


def test_a_faster_variant_is_called_so_with_what_it_comes_from():
    assert render(report(469, 280, "faster"), format="table") == (
        """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile is 1.68x faster per call: 1 kernel instead of 2.

                   eager   compile
  kernels              2         1
  launches             2         1
  kernel time     463 µs    273 µs
  time per call   469 µs    280 µs   1.68x faster, ±0.4 %
  first call        2 ms       3 s   pays off after 15,874 calls
  compiling                  2.5 s
  peak memory     800 MB    400 MB   above the inputs
  result                     equal

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
"""
    )


def test_fewer_kernels_are_not_called_faster_where_the_call_is_slower():
    assert head(report(33, 57, "slower", scale=4)) == (
        "compile is slower per call than eager, 57 µs against 33 µs, although it has 1 kernel "
        "instead of 2; the GPU is busy for 1.09 µs of that, so the call is launch-bound."
    )


def test_a_difference_within_the_noise_is_none():
    said = head(report(280, 279, "no difference"))
    assert said.startswith("compile takes as long per call as eager, 279 µs and 280 µs, within")
    assert "faster" not in render(report(280, 279, "no difference"), format="table")


@pytest.mark.parametrize(
    ("numerics", "shown"),
    [
        (Numerics("close", 1, 0.0039, 0.01, 3), "within 0.0039"),
        (Numerics("different", 1, 1.5, 2.0, 9), "differs, 1.5"),
        (Numerics("different", 1, notes=("shape (2,) instead of (1,)",)), "differs"),
        (Numerics("random", 1), "random   other random numbers are drawn"),
        (
            Numerics("nothing", 0, notes=("no tensor is returned or changed",)),
            "not compared   no tensor is returned or changed",
        ),
        (Numerics("different", 1, 0.0, 0.0, 0, differs="placement"), "differs"),
        (Numerics("different", 1, 0.0, 0.0, 0, differs="numbers"), "differs"),
    ],
)
def test_what_the_results_come_to_is_one_cell(numerics, shown):
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    run = replace(whole.runs[0], outcomes=(eager, replace(compiled, numerics=numerics)))
    text = render(replace(whole, runs=(run,)), format="table")
    (line,) = [line for line in text.splitlines() if line.startswith("  result")]
    assert line.split("result")[1].strip() == shown


def compared(numerics):
    """The screen where the results compare so."""
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    run = replace(whole.runs[0], outcomes=(eager, replace(compiled, numerics=numerics)))
    return " ".join(render(replace(whole, runs=(run,)), format="table").split())


def test_results_that_differ_are_a_warning_beside_the_sentence():
    said = compared(Numerics("different", 1, 1.5, 2.0, 9, notes=("NaN or inf in other places",)))
    assert (
        "Careful with compile: its results differ from those of the first variant: by 1.5 at the "
        "most; NaN or inf in other places." in said
    )
    said = compared(Numerics("unknown", 0, notes=("no memory to keep the results",)))
    assert "its results could not be compared: no memory to keep the results." in said
    assert "Careful" not in compared(Numerics("random", 1))


def test_what_is_odd_of_results_that_agree_stands_beside_them():
    assert "result equal 8 NaN in the same places" in compared(
        Numerics("equal", 1, 0.0, 0.0, 0, notes=("8 NaN in the same places",))
    )
    near = Numerics("close", 1, 0.0039, 0.01, 3, error=0.0141, base_error=0.0154)
    said = compared(near)
    assert "result within 0.0039 " in said
    assert "error 0.015 0.014 beside the same in float64" in said


def test_what_is_odd_of_results_is_never_left_out_for_want_of_room():
    odd = "the result: strides (1, 4096, 2, 3) instead of (4, 16384, 1, 1)"
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    found = replace(compiled, numerics=Numerics("equal", 1, 0.0, 0.0, 0, notes=(odd,)))
    others = [replace(found, name=f"compile:mode={i}") for i in range(4)]
    for outcomes in ([eager, found], [eager, *others]):
        run = replace(whole.runs[0], outcomes=tuple(outcomes), speeds=(), besides=(), verdicts=())
        text = " ".join(render(replace(whole, runs=(run,)), format="table", width=60).split())
        assert odd in text
        for other in outcomes[1:]:
            assert len(outcomes) == 2 or f"{other.name}: {odd}" in text


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_what_is_odd_of_a_result_stands_once_under_the_column_that_it_is_about(n, width):
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    others = [
        replace(compiled, name=f"m:g{i}", numerics=Numerics("equal", 1, notes=(f"odd {i}",)))
        for i in range(n)
    ]
    run = replace(
        whole.runs[0], outcomes=(eager, *others), speeds=(), besides=(), verdicts=(), fusions=()
    )
    text = render(replace(whole, runs=(run,)), format="table", width=width)
    names = [other.name for other in others]
    for i in range(n):
        assert text.count(f"odd {i}") == 1
        before = [line.split() for line in text[: text.index(f"odd {i}")].splitlines()]
        heads = [words for words in before if words and {*words} <= {"eager", *names}]
        assert f"m:g{i}" in heads[-1]


@pytest.mark.parametrize("width", [60, 120])
def test_why_an_error_is_unknown_stands_once(width):
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    eager = replace(eager, numerics=Numerics("equal", 1, notes=("the reason",)))
    others = [replace(compiled, name=f"m:g{i}") for i in range(6)]
    run = replace(
        whole.runs[0], outcomes=(eager, *others), speeds=(), besides=(), verdicts=(), fusions=()
    )
    text = render(replace(whole, runs=(run,)), format="table", width=width)
    assert text.count("the reason") == 1


def test_what_was_compiled_again_is_told_beside_the_price():
    whole = report(469, 280, "faster")
    eager, compiled = whole.runs[0].outcomes
    again = replace(compiled, price=Price(3_002_000_000, 2_500_000_000, 2))
    run = replace(whole.runs[0], outcomes=(eager, again))
    assert "  compiling                  2.5 s   2 recompiles\n" in render(
        replace(whole, runs=(run,)), format="table"
    )


def test_of_several_variants_each_is_held_against_the_first():
    whole = report(469, 280, "faster")
    (run,) = whole.runs
    third = replace(timed(samples.compiled(), 500), name="compile:dynamic")
    speeds = (*run.speeds, Speed(469 / 500, 0.92, 0.95, "slower"))
    run = replace(run, outcomes=(*run.outcomes, third), speeds=speeds)
    text = render(replace(whole, runs=(run,)), format="table")
    assert [line for line in text.splitlines() if "beside" in line] == [
        "  beside eager             1.68x faster      1.07x slower"
    ]


def test_json_has_the_median_its_interval_and_the_verdict():
    first, second = json.loads(render(report(469, 280, "faster"), format="json"))["variants"]
    assert (first["call_time_ns"], first["speed"], second["call_time_ns"]) == (
        469_000,
        None,
        280_000,
    )
    assert first["call_time"] == {
        "low_ns": 469_000, "high_ns": 469_000, "confidence": 0.99, "samples": 20, "calls": 40,
    }  # fmt: skip
    assert second["speed"]["verdict"] == "faster"
    assert second["price"] == {
        "first_call_ns": 3_002_000_000, "compile_ns": 2_500_000_000, "recompiles": 0,
    }  # fmt: skip
    assert second["numerics"]["verdict"] == "equal"
    assert second["peak_memory"] == 400_000_000
