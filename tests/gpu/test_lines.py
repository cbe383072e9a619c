"""Lines and the fusion map of what ran on a GPU: `pytest -m gpu` on a machine that has one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch's own, at import and while it compiles
]

SOURCED = Path(__file__).parents[1] / "paper" / "sourced.py"
FUNCTIONS = [
    ("add_relu", ()),
    ("ln_bias_gelu", ()),
    ("RMSNorm", ()),
    ("RMSNorm", ("--backward",)),
    ("Block", ()),
    ("Block", ("--backward",)),
    ("train", ()),
    ("llama_of_four", ("--no-grad",)),
    ("llama_of_four", ("--backward",)),
]


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(name, *flags, target=SOURCED):
    """The variants by name, of a function of `sourced.py`."""
    made = f"def make_{name}(" in target.read_text()
    maker = ("--inputs", f"make_{name}") if made else ()
    done = subprocess.run(
        [sys.executable, "-m", "kernelcount", "run", f"{target}:{name}", "--size", "1024",
         *maker, "--format", "json", *flags],
        capture_output=True, text=True, timeout=500, cwd=target.parent, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {v["name"]: v for v in json.loads(done.stdout)["variants"]}


@pytest.mark.parametrize(("name", "flags"), FUNCTIONS, ids="".join)
def test_each_compiled_kernel_has_its_lines_and_nearly_every_eager_one_is_matched(name, flags):
    if name == "llama_of_four":
        pytest.importorskip("transformers")
    compiled = run(name, *flags)["compile"]
    aligned, fusion = compiled["aligned"], compiled["fusion"]
    kernels = [entry for entry in fusion if entry["kernel"] is not None]
    print(name, flags, aligned, compiled["lines_unknown"])
    without = [e["kernel"] for e in kernels if not e["lines"] and not e["kernel"].startswith("Mem")]
    assert without == []
    assert len(kernels) == sum(row["count"] for row in compiled["rows"])
    assert aligned["matched"] >= 0.95 * aligned["total"] > 0, [
        e["replaces"] for e in fusion if e["kernel"] is None and e["alone"]["code"] == "unknown"
    ]


def test_measured_rows_show_the_line_of_the_file():
    found = run("add_relu")
    line = SOURCED.read_text().splitlines().index("    return (a + b).relu()") + 1
    expected = [{"file": "sourced.py", "line": line, "function": "add_relu"}]
    assert [row["lines"] for row in found["eager"]["rows"]] == [expected] * 2
    assert [row["lines"] for row in found["compile"]["rows"]] == [expected]
    (fused,) = found["compile"]["fusion"]
    assert [r["record"] for r in fused["replaces"]] == [0, 1]


def test_counts_are_those_of_a_run_without_paper_and_lines():
    with_lines, without = run("Block", "--backward"), run("Block", "--backward", "--no-paper")
    for name in ("eager", "compile"):
        one, other = with_lines[name], without[name]
        assert one["kernels"] == other["kernels"]
        assert [r["name"] for r in one["rows"]] == [r["name"] for r in other["rows"]]
        assert all(row["lines"] is None for row in other["rows"])
        assert "paper" in other["lines_unknown"]


def test_the_backend_of_attention_is_named_where_it_ran():
    rows = run("Block")["eager"]["rows"]
    assert {r["attention"] for r in rows if r["attention"]} <= {"flash", "efficient", "cudnn"}
    assert any(row["attention"] for row in rows)


def test_the_phases_of_a_training_step_are_told():
    for variant in run("train").values():
        assert {p for row in variant["rows"] for p in row["phases"]} == {
            "forward", "backward", "optimizer",
        }, variant["name"]  # fmt: skip
