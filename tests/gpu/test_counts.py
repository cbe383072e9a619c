"""What a GPU is needed for: `pytest -m gpu` on a machine that has one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(target, *flags, code=0):
    """The JSON document of a run on the GPU, and stderr."""
    command = [sys.executable, "-m", "kernelcount", "run", f"{HERE}/{target}", *flags]
    done = subprocess.run(
        [*command, "--device", "cuda", "--format", "json"],
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert 'Traceback (most recent call last):\n  File "/' not in done.stderr or code
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done.stderr


def counts(document):
    keys = ("kernels", "copies", "fills", "launches", "graph_launches")
    return {v["name"]: tuple(v[k] for k in keys) for v in document["variants"]}


def test_fusion_makes_one_kernel_of_two():
    document, _ = run("targets.py:add_relu", "--size", "1e7")
    assert counts(document) == {"eager": (2, 0, 0, 2, 0), "compile": (1, 0, 0, 1, 0)}
    assert [row["label"] for row in document["variants"][0]["rows"]] == ["add", "relu"]
    assert all(v["stable"] and v["complete"] for v in document["variants"])


def test_kernels_on_a_side_stream_are_counted():
    document, _ = run("targets.py:two_streams", "--variant", "eager")
    assert counts(document)["eager"][:4] == (3, 0, 0, 3)


def test_backward_on_the_autograd_thread_is_counted_and_labelled():
    document, _ = run("targets.py:backward_thread", "--variant", "eager")
    eager = document["variants"][0]
    assert eager["kernels"] >= 5
    assert eager["kernels"] == eager["launches"]
    assert {"mul", "threshold_backward"} <= {row["label"] for row in eager["rows"]}


def test_backward_can_be_asked_for():
    forward, _ = run("targets.py:add_relu", "--size", "1e6", "--variant", "eager")
    both, _ = run("targets.py:add_relu", "--size", "1e6", "--variant", "eager", "--backward")
    assert both["variants"][0]["kernels"] > forward["variants"][0]["kernels"]
    assert not any(row["label"] == "ones_like" for row in both["variants"][0]["rows"])


def test_a_view_launches_nothing_and_that_is_proven():
    document, _ = run("targets.py:nothing")
    assert counts(document) == {"eager": (0,) * 5, "compile": (0,) * 5}


def test_a_graph_of_the_users_own_is_one_launch_of_many_kernels():
    document, _ = run("targets.py:replayed", "--variant", "eager")
    assert counts(document)["eager"] == (3, 0, 0, 1, 1)


def test_a_poisoned_context_costs_one_variant():
    document, stderr = run("targets.py:bad_index", code=2)
    eager, compiled = document["variants"]
    assert eager["status"] == "unmeasured"
    assert compiled["status"] == "measured"
    assert compiled["kernels"] == 1
    assert "device-side assert" in stderr


def test_out_of_memory_is_one_line_with_the_amount_and_a_smaller_size():
    document, stderr = run("targets.py:too_much", "--size", "1e7", "--variant", "eager", code=3)
    assert document["variants"][0]["kernels"] is None
    [line] = [line for line in stderr.splitlines() if line.startswith("kernelcount:")]
    assert "out of memory" in line
    assert "400 TB" in line
    assert "try a smaller --size, such as 1e5" in line


def test_a_profiler_inside_leaves_the_count_unknown():
    document, _ = run("targets.py:profiles_itself", "--variant", "eager", code=3)
    assert document["variants"][0]["kernels"] is None
    assert "another profiler" in document["variants"][0]["reason"]


@pytest.mark.parametrize("model", ["Llama", "GPT2"])
def test_a_model_and_its_saved_traces_count_alike(model, tmp_path):
    pytest.importorskip("transformers")
    document, _ = run(f"models.py:{model}", "--no-grad", "--trace", str(tmp_path / "trace.json.gz"))
    by_name = counts(document)
    assert by_name["compile"][0] < by_name["eager"][0]
    for name, counted in by_name.items():
        done = subprocess.run(
            [sys.executable, "-m", "kernelcount", "read", "--format", "json",
             str(tmp_path / f"trace.{name}.json.gz")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        read = json.loads(done.stdout)
        assert counts(read) == {str(tmp_path / f"trace.{name}.json.gz"): counted}
        assert read["variants"][0]["kernel_time_ns"] == next(
            v["kernel_time_ns"] for v in document["variants"] if v["name"] == name
        )
