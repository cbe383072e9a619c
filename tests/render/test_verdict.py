"""What is shown of what holds a variant back."""

import json
from dataclasses import replace

import pytest

from kernelcount.model import Beside, Evidence, Speed, Sync, Timing, Verdict
from kernelcount.render import render
from tests.render import samples
from tests.render.test_paper import compiled as compiled_on_paper
from tests.render.test_paper import eager as eager_on_paper

MEMORY = Evidence("memory", 4.32e12, 4.2e12, 0.98, "modelled")
BUSY = Evidence("busy", 463_000, 469_000, 0.987, "measured")
BOUND = Verdict("eager", "memory-bound", (BUSY, MEMORY), of_call=True)


def report(*verdicts):
    """The run of samples with these verdicts on eager and compile."""
    whole = samples.add_relu()
    named = tuple(
        found and replace(found, variant=name)
        for found, name in zip(verdicts, ("eager", "compile"), strict=True)
    )
    besides = (
        Beside(eager_on_paper(), same_calls=True),
        Beside(compiled_on_paper(), same_calls=True),
    )
    timed = tuple(
        replace(o, timing=Timing((1.02 * o.kernel_time_ns,) * 3)) for o in whole.runs[0].outcomes
    )
    run = replace(whole.runs[0], outcomes=timed, besides=besides, verdicts=named)
    return replace(whole, runs=(run,))


def said(*verdicts):
    """The last paragraph of the screen, a sentence for each variant that has one."""
    return (
        render(report(*verdicts), format="table").rpartition("\n\n")[2].replace("\n", " ").strip()
    )


def test_the_screen_ends_with_what_holds_all_variants_back_said_once():
    assert render(report(BOUND, BOUND), format="table") == (
        """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. It makes 3 array transfers instead of 5,
which is the least possible. Its kernel takes 273 µs instead of 463 µs.

                   eager   compile
  kernels              2         1
  launches             2         1
  transfers          5.0       3.0   least possible 3.0, modelled
  kernel time     463 µs    273 µs
  time per call   472 µs    278 µs

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
A transfer is the largest array, read or written once.

Memory-bound: it moves data as fast as this GPU copies. Only fewer bytes would
help.
"""
    )


def test_markdown_ends_with_it_too():
    assert render(report(BOUND, BOUND), format="markdown").endswith(
        "\n\nMemory-bound: it moves data as fast as this GPU copies. Only fewer bytes would help.\n"
    )


def test_where_variants_differ_each_has_its_sentence():
    launching = Evidence("launching", 20_000, 33_000, 0.61, "measured")
    idle = Verdict("", "launch-bound", (replace(BUSY, share=0.13), launching), of_call=True)
    assert said(BOUND, idle) == (
        "eager is memory-bound: it moves data as fast as this GPU copies. Only fewer bytes would "
        "help. compile is launch-bound: the GPU is busy for 13 % of the call, and the CPU needs "
        "61 % of it for 1 launch. Fewer would help, or a CUDA graph."
    )


def test_shares_that_differ_by_little_are_told_in_one_sentence():
    cited = [
        replace(BOUND, evidence=(replace(MEMORY, basis="cited", share=share),))
        for share in (0.9, 0.93, 0.97)
    ]
    assert said(*cited[:2]) == (
        "Memory-bound: it moves data at 90 to 93 % of what the data sheet gives this GPU. Only "
        "fewer bytes would help."
    )
    assert said(cited[0], cited[2]).count("memory-bound") == 2


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            replace(BOUND, of_call=False),
            "The kernels are memory-bound: they move data as fast as this GPU copies. Only fewer "
            "bytes would help.",
        ),
        (
            replace(BOUND, evidence=(BUSY, replace(MEMORY, share=0.63))),
            "Memory-bound: it moves data at 63 % of the rate at which this GPU copies. Only fewer "
            "bytes would help.",
        ),
        (
            replace(BOUND, evidence=(replace(MEMORY, what="L2 cache", share=0.8),)),
            "Memory-bound: it moves data at 80 % of the rate at which the L2 cache copies. Only "
            "fewer bytes would help.",
        ),
        (
            replace(BOUND, evidence=(replace(MEMORY, basis="cited", share=0.9),)),
            "Memory-bound: it moves data at 90 % of what the data sheet gives this GPU. Only fewer "
            "bytes would help.",
        ),
        (
            Verdict("", "compute-bound", (Evidence("arithmetic", 6e14, 7.5e14, 0.8, "modelled"),),
                    of_call=True, precision="bf16"),
            "Compute-bound: matrix products run at 80 % of what this GPU reaches in bf16. Only "
            "fewer operations would help, or fewer bits.",
        ),
        (
            Verdict("", "compute-bound", (Evidence("arithmetic", 5e13, 6.7e13, 0.75, "cited"),),
                    of_call=True, precision="f32"),
            "Compute-bound: matrix products run at 75 % of what the data sheet gives this GPU in "
            "f32. TF32 would run them on tensor cores: "
            "torch.set_float32_matmul_precision('high').",
        ),
        (
            Verdict("", "waiting for the CPU", (replace(BUSY, share=0.45),
                    Evidence("launching", 3e4, 2e5, 0.15, "measured")), of_call=True),
            "Waiting for the CPU: the GPU is busy for 45 % of the call, and launches explain only "
            "15 % of it. Look for .item(), copies to the host, and Python between the kernels.",
        ),
        (
            Verdict("", "too small to fill the GPU",
                    (Evidence("blocks", 8, 132, 0.6, "measured"),), of_call=True),
            "Too small to fill the GPU: 60 % of the kernel time goes to kernels of fewer blocks "
            "than the GPU has multiprocessors (132). Larger inputs would use the rest.",
        ),
        (
            Verdict("", "none of these", (replace(MEMORY, share=0.3),
                    Evidence("arithmetic", 1e12, 5e13, 0.02, "modelled")), of_call=False),
            "The kernels are bound by none of memory, arithmetic or size: memory explains 30 %, "
            "arithmetic explains 2 % of the time.",
        ),
    ],
)  # fmt: skip
def test_each_verdict_says_what_it_rests_on_and_what_would_help(found, expected):
    assert said(found, found) == expected


def test_what_cannot_be_told_is_not_on_the_screen_and_in_the_json_with_its_reason():
    unknown = Verdict("", None, (Evidence("busy", reason="the call was not timed"),), "why")
    assert "why" not in render(report(unknown, unknown), format="table")
    (first, _) = json.loads(render(report(unknown, unknown), format="json"))["verdicts"]
    assert first == {
        "variant": "eager",
        "verdict": None,
        "reason": "why",
        "of": "kernels",
        "precision": None,
        "evidence": [
            {
                "what": "busy", "value": None, "of": None, "share": None,
                "basis": "unavailable", "reason": "the call was not timed",
            }
        ],
    }  # fmt: skip


def test_why_it_is_not_told_what_an_idle_gpu_waits_for_is_said():
    hint = "what launching costs here was not measured: kernelcount doctor measures it"
    unknown = Verdict("", None, (), hint, of_call=True)
    text = " ".join(render(report(unknown, unknown), format="table").split())
    assert f"What holds eager and compile back is not known: {hint}." in text


def test_json_bears_the_evidence_as_figures():
    (found,) = json.loads(render(report(BOUND, None), format="json"))["verdicts"]
    assert (found["variant"], found["verdict"], found["of"]) == ("eager", "memory-bound", "call")
    assert found["evidence"][1] == {
        "what": "memory", "value": 4.32e12, "of": 4.2e12, "share": 0.98,
        "basis": "modelled", "reason": None,
    }  # fmt: skip


def test_the_verdicts_of_a_sweep_name_their_sizes():
    whole = samples.sweep()
    runs = tuple(replace(run, verdicts=(BOUND, None)) for run in whole.runs)
    verdicts = json.loads(render(replace(whole, runs=runs), format="json"))["verdicts"]
    assert [v["size"] for v in verdicts] == [100, 1_000_000, 100_000_000]


def test_a_call_that_waits_for_the_cpu_is_not_called_launch_bound_above():
    waiting = Verdict("", "waiting for the CPU", (replace(BUSY, share=0.3),), of_call=True)
    shown = report(waiting, waiting)
    slow = tuple(
        replace(o, timing=Timing((10.0 * o.kernel_time_ns,) * 3)) for o in shown.runs[0].outcomes
    )
    speeds = (None, Speed(0.9, 0.85, 0.95, "slower"))
    run = replace(shown.runs[0], outcomes=slow, speeds=speeds)
    text = render(replace(shown, runs=(run,)), format="table")
    assert "the GPU is busy for 273 µs of that." in " ".join(text.split())
    assert "launch-bound" not in text


def test_a_call_that_waits_names_the_lines_where_they_are_known():
    waiting = Verdict("", "waiting for the CPU", (replace(BUSY, share=0.3),), of_call=True)
    whole = report(waiting, waiting)
    found = (Sync("item", "src/train.py", 12, idle_ns=40_000),)
    known = tuple(replace(o, syncs=found) for o in whole.runs[0].outcomes)
    shown = replace(whole, runs=(replace(whole.runs[0], outcomes=known),))
    text = " ".join(render(shown, format="table").split())
    assert text.endswith("The CPU waits for the GPU: item at train.py:12.")
    unknown = " ".join(render(whole, format="table").split())
    assert unknown.endswith("Look for .item(), copies to the host, and Python between the kernels.")
