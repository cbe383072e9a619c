"""What remedies come to on a GPU: `pytest -m gpu` on a machine that has one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # some torches' own, at import
]

HERE = Path(__file__).parent
EAGER = ("--variant", "eager", "--no-paper")


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(target, *flags, form="json"):
    command = [sys.executable, "-m", "kernelcount", "run", f"{HERE}/targets.py:{target}", *flags]
    done = subprocess.run(
        [*command, "--remedy", "--format", form], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def remedies(target, *flags, variant=0):
    found = json.loads(run(target, *flags))["variants"][variant]
    print(found["kernels"], found["call_time_ns"], json.dumps(found["remedies"], indent=1))
    return {r["name"]: r for r in found["remedies"]}


def gain(remedy):
    assert remedy["status"] == "tried", remedy["reason"]
    assert remedy["speed"] is not None, remedy["reason"]
    return remedy["speed"]["ratio"]


def test_eight_small_linears_gain_more_than_twofold_by_a_cuda_graph():
    found = remedies("EightLinears", "--input", "f32[8,64]", "--no-grad", *EAGER)
    graph = found["CUDA graph"]
    assert gain(graph) > 2
    assert graph["numerics"]["verdict"] == "equal"
    assert graph["kernels"] in (None, 8)
    assert gain(found["compile:reduce-overhead"]) > 1


def test_a_large_product_gains_more_than_fourfold_by_tf32_at_a_cost_that_is_told():
    found = remedies("matmul", "--input", "f32[4096,4096]", "--input", "f32[4096,4096]", *EAGER)
    tf32 = found["TF32"]
    assert gain(tf32) > 4
    assert 1e-5 < tf32["numerics"]["error"] < 1e-2
    assert tf32["numerics"]["base_error"] < 1e-5
    assert [r["label"] for r in tf32["rows"]] in (["matmul"], ["mm"])
    assert gain(found["bf16"]) > gain(tf32)
    assert found["bf16"]["numerics"]["error"] > tf32["numerics"]["error"]


def test_adding_large_arrays_gains_by_fusion_and_by_fewer_bytes_and_by_nothing_else():
    found = remedies("add_relu", "--size", "1e8", "--no-paper")
    assert gain(found["compile"]) == pytest.approx(1.7, abs=0.15)
    assert gain(found["bf16"]) == pytest.approx(2.0, abs=0.2)
    assert found["CUDA graph"]["speed"]["verdict"] == "no difference"
    assert found["TF32"]["reason"] == "no matrix product or convolution in float32"


def test_bfloat16_is_tried_on_the_compiled_function_too():
    found = remedies("add_relu", "--size", "1e8", "--no-paper", variant=1)
    assert set(found) == {"bf16", "TF32"}
    assert gain(found["bf16"]) == pytest.approx(2.0, abs=0.2)


def test_a_call_that_waits_for_the_gpu_is_not_captured():
    graph = remedies("asks_for_a_value", "--size", "1000", *EAGER)["CUDA graph"]
    assert graph["status"] == "not tried"
    assert graph["reason"].startswith("the CPU waits for the GPU in the call (item at targets.py:")


def test_where_a_call_cannot_be_captured_the_next_size_is_measured():
    document = json.loads(run("refuses_a_graph", "--size", "1000,2000", *EAGER))
    for size in document["sizes"]:
        (eager,) = size["variants"]
        (graph,) = (r for r in eager["remedies"] if r["name"] == "CUDA graph")
        print(graph["reason"])
        assert eager["status"] == "measured"
        assert eager["call_time_ns"] is not None
        assert graph["status"] == "failed"
        assert graph["reason"].startswith("the call cannot be captured: ")
        assert all(r["status"] != "failed" for r in eager["remedies"] if r is not graph)


def test_what_is_kept_in_python_is_not_replayed():
    graph = remedies("counts_its_calls", "--size", "1000", *EAGER)["CUDA graph"]
    assert graph["status"] == "failed"
    assert graph["reason"].startswith("a replay gives other results")


def test_arguments_that_are_changed_in_place_are_renewed_for_each_replay():
    graph = remedies("grows", "--size", "1000", *EAGER)["CUDA graph"]
    assert graph["status"] == "tried"
    assert graph["numerics"]["verdict"] == "equal"


def test_backward_and_cold_leave_out_the_graph_of_the_call():
    for flags, said in ((["--backward"], "--backward"), (["--cold"], "--cold")):
        found = remedies("add_relu", "--size", "1e5", *EAGER, *flags)
        assert found["CUDA graph"]["status"] == "not tried"
        assert said in found["CUDA graph"]["reason"]
        assert found["bf16"]["status"] == "tried"


def test_the_screen_says_gain_cost_and_what_comes_next():
    shapes = ("--input", "f32[4096,4096]") * 2
    text = run("matmul", *shapes, *EAGER, form="table")
    print(text)
    assert "remedies tried on eager" in text
    assert "In float32 on no tensor core, TF32 being off: " in text
    assert "before a kernel of your own" in " ".join(text.split())


def test_settings_of_precision_and_the_stream_are_as_they_were():
    import torch

    from kernelcount import app, runners
    from kernelcount.model import Job

    before = (
        torch.get_float32_matmul_precision(),
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.cudnn.conv.fp32_precision,
        torch.cuda.current_stream(),
    )
    drawn = torch.cuda.get_rng_state()
    job = Job(
        f"{HERE}/targets.py:refuses_a_graph", sizes=(1000,), device="cuda", seconds=0.2,
        variants=("eager",), remedy=True,
    )  # fmt: skip
    app.run(job, runners.in_process, print)
    assert before == (
        torch.get_float32_matmul_precision(),
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.cudnn.conv.fp32_precision,
        torch.cuda.current_stream(),
    )
    assert torch.equal(drawn, torch.cuda.get_rng_state())
    torch.randn(1, device="cuda")  # a generator left in a capture raises here
