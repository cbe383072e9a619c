"""Whether the times are those that others measure: `pytest -m gpu` on a machine that has a GPU."""

import csv
import io
import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch's own, at import and while it compiles
]

HERE = Path(__file__).parent
NEAR = 0.03  # of another tool's figure


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(target, *flags, form="json"):
    command = [sys.executable, "-m", "kernelcount", "run", f"{HERE}/{target}", "--format", form]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout


def variants(target, *flags):
    return {v["name"]: v for v in json.loads(run(target, *flags))["variants"]}


def test_the_time_of_a_call_is_what_do_bench_measures():
    import torch
    from targets import add_relu
    from triton.testing import do_bench

    found = variants("targets.py:add_relu", "--size", "1e8")
    a, b = torch.randn(10**8, device="cuda"), torch.randn(10**8, device="cuda")
    for name, call in (("eager", add_relu), ("compile", torch.compile(add_relu))):
        theirs = do_bench(partial(call, a, b), return_mode="median") * 1e6
        print(name, found[name]["call_time_ns"], theirs)
        assert found[name]["call_time_ns"] == pytest.approx(theirs, rel=NEAR)


def test_the_time_of_a_kernel_is_what_nsight_compute_measures(tmp_path):
    if (ncu := shutil.which("ncu")) is None:
        pytest.skip("needs ncu")
    script = tmp_path / "calls.py"
    script.write_text(f"""
import sys, torch
sys.path.insert(0, {str(HERE)!r})
from targets import add_relu
a, b = torch.randn(10**8, device="cuda"), torch.randn(10**8, device="cuda")
compiled = torch.compile(add_relu)
for call in [add_relu] * 8 + [compiled] * 8:
    call(a, b)
""")
    flags = ["--clock-control", "none", "--csv", "--metrics", "gpu__time_duration.sum"]
    flags += ["--kernel-name", "regex:elementwise|triton_poi"]
    done = subprocess.run(
        [ncu, *flags, sys.executable, str(script)], capture_output=True, text=True, timeout=500
    )
    table = "".join(line for line in done.stdout.splitlines(keepends=True) if line[:1] == '"')
    theirs: dict[str, list[float]] = {}
    unit = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6}
    for row in csv.DictReader(io.StringIO(table)):
        time = float(row["Metric Value"].replace(",", "")) * unit[row["Metric Unit"]]
        theirs.setdefault(_kind(row["Kernel Name"]), []).append(time)
    assert {"add", "relu", "fused"} <= set(theirs), done.stdout[-2000:] + done.stderr[-2000:]
    found = variants("targets.py:add_relu", "--size", "1e8")
    for variant in found.values():
        for row in variant["rows"]:
            kind = _kind(row["name"])
            print(kind, row["time_ns"], theirs[kind])
            assert row["time_ns"] == pytest.approx(median(theirs[kind][2:]), rel=NEAR)


def _kind(kernel):
    if "triton" in kernel:
        return "fused"
    return "add" if "CUDAFunctor_add" in kernel or "CUDAFunctorOnSelf_add" in kernel else "relu"


def test_the_first_figures_after_a_long_compile_are_those_of_a_second_run():
    from kernelcount import app, runners
    from kernelcount.model import Job

    job = Job(
        spec=f"{HERE}/targets.py:mlp", maker="make_mlp", device="cuda", seconds=1.0,
        variants=("eager", "compile:max-autotune"),
    )  # fmt: skip
    first, second = (
        {c.name: c for c in app.run(job, runners.in_process, print).report.outcomes}
        for _ in range(2)
    )
    print(first, second)
    assert first["compile:max-autotune"].price.first_call_ns > 10e9
    for name, capture in first.items():
        before, after = (median(c.timing.samples_ns) for c in (capture, second[name]))
        print(name, before, after, capture.kernel_time_ns, second[name].kernel_time_ns)
        assert before == pytest.approx(after, rel=NEAR)
        assert capture.kernel_time_ns == pytest.approx(second[name].kernel_time_ns, rel=NEAR)


def test_fewer_kernels_are_not_called_faster_where_launching_takes_the_time():
    said = " ".join(run("targets.py:add_relu", "--size", "100", form="table").split())
    print(said)
    assert "compile is slower per call" in said
    assert "launch-bound" in said


def test_a_million_elements_are_served_by_the_cache_and_a_hundred_million_are_not():
    small, large = (variants("targets.py:add_relu", "--size", size) for size in ("1e6", "1e8"))
    assert "served-by-l2" in {n["code"] for n in small["eager"]["notes"]}
    assert "served-by-l2" not in {n["code"] for n in large["eager"]["notes"]}
    speed = large["compile"]["speed"]
    print(speed)
    assert speed["verdict"] == "faster"
    assert speed["ratio"] == pytest.approx(1.7, abs=0.15)


def test_attention_by_hand_takes_memory_and_differs_by_rounding_only():
    by_hand, sdpa = variants(
        "targets.py:attention", "--inputs", "make_attention",
        "--variant", "eager", "--variant", f"{HERE}/targets.py:sdpa",
    ).values()  # fmt: skip
    print(by_hand["peak_memory"], sdpa["peak_memory"], sdpa["numerics"])
    assert by_hand["peak_memory"] > 10 * sdpa["peak_memory"]
    assert sdpa["numerics"]["verdict"] == "close"
