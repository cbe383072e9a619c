"""Graph breaks, recompilations and skipped CUDA graphs, measured: `pytest -m gpu`."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch's own, at import and while it compiles
]

HERE = Path(__file__).parent
FILE = HERE / "breaking.py"


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(name, *flags, form="json"):
    target = f"{FILE}:{name}"
    command = [sys.executable, "-m", "kernelcount", "run", target, "--format", form, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout


def variants(name, *flags):
    found = {v["name"]: v for v in json.loads(run(name, *flags))["variants"]}
    print(name, flags, json.dumps(found, indent=1)[:4000])
    return found


def line_of(text):
    lines = FILE.read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("flags", [(), ("--backward",)])
def test_a_print_costs_one_kernel_and_is_told_at_its_line(flags):
    compiled = variants("prints", "--seconds", "0", *flags)["compile"]
    (found,) = compiled["breaks"]
    assert compiled["graph_breaks"] == 1
    assert Path(found["file"]).name == FILE.name
    assert (found["line"], found["reason"]) == (line_of("print("), "print")
    assert found["costs_kernels"] == 1
    assert compiled["kernels"] == (3 if flags else 2)


def test_the_screen_says_so_in_one_line():
    text = " ".join(run("prints", "--seconds", "0", form="table").split())
    assert text.count("graph break") == 1
    assert f"breaking.py:{line_of('print(')} (print): costs 1 kernel on paper." in text


def test_what_a_break_costs_on_paper_is_what_it_costs():
    broken = variants("prints", "--seconds", "0")["compile"]
    whole = variants("unbroken", "--seconds", "0")["compile"]
    assert broken["kernels"] - whole["kernels"] == broken["breaks_cost"]["kernels"] == 1
    assert (whole["graph_breaks"], whole["breaks"], whole["recompiles"]) == (0, [], 0)


def test_a_branch_on_a_value_is_told_and_its_cost_is_not():
    compiled = variants("branches", "--seconds", "0")["compile"]
    (found,) = compiled["breaks"]
    assert (found["line"], found["function"]) == (line_of("if c.sum()"), "branches")
    assert found["costs_kernels"] is None
    assert "hangs on a value" in found["why"]


def test_a_value_that_is_read_costs_no_kernel():
    compiled = variants("reads", "--seconds", "0")["compile"]
    (found,) = compiled["breaks"]
    assert (found["line"], found["reason"]) == (line_of(".item()"), "Tensor.item()")
    assert found["costs_kernels"] == 0


def test_of_two_breaks_each_is_told():
    compiled = variants("twice", "--seconds", "0")["compile"]
    assert compiled["kernels"] == 3
    assert [b["costs_kernels"] for b in compiled["breaks"]] == [1, 1]
    assert compiled["breaks_cost"]["kernels"] == 2


def test_eager_code_has_none_and_nothing_is_looked_for():
    assert variants("prints", "--seconds", "0")["eager"]["graph_breaks"] is None


def test_a_failed_guard_is_told():
    flags = ("--variant", "compile", "--seconds", "0", "--no-paper")
    (compiled,) = variants("changes", *flags).values()
    assert compiled["recompiles"] == len(compiled["recompilations"]) > 0
    assert {r["function"] for r in compiled["recompilations"]} == {"changes"}
    assert all("_calls" in r["guard"] for r in compiled["recompilations"])


def test_cuda_graphs_that_are_skipped_have_a_reason_and_are_said_once():
    flags = ("--input", "f32[16,16]", "--variant", "compile:reduce-overhead", "--no-paper")
    (found,) = variants("mutates", *flags, "--seconds", "0").values()
    assert any("mutated inputs" in why for why in found["skipped_cudagraphs"])
    text = " ".join(run("mutates", *flags, "--seconds", "0", form="table").split())
    assert text.count("CUDA graphs skipped") == 1


def test_cuda_graphs_that_are_made_are_not_skipped():
    flags = ("--variant", "compile:reduce-overhead", "--seconds", "0", "--no-paper")
    (found,) = variants("unbroken", *flags).values()
    assert found["skipped_cudagraphs"] == []


def test_without_paper_the_cost_is_not_known():
    compiled = variants("prints", "--seconds", "0", "--no-paper")["compile"]
    assert compiled["breaks"][0]["costs_kernels"] is None
    assert "not counted on paper" in compiled["breaks"][0]["why"]


def test_a_break_costs_the_run_little_time():
    took = {}
    for name in ("unbroken", "prints", "unbroken", "prints"):
        start = time.perf_counter()
        run(name)
        took.setdefault(name, []).append(time.perf_counter() - start)
    print(took)
    assert min(took["prints"]) < 1.5 * min(took["unbroken"])
