"""Two runs on a GPU held against each other: `pytest -m gpu` where there is one."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

TARGETS = """
import torch

def add_relu(a, b):
    return (a + b).relu()

def twice(a, b):
    return ((a + b).relu() + b).relu()
"""


def kernelcount(folder, *arguments):
    """Run the program: exit code and stdout."""
    command = [sys.executable, "-m", "kernelcount", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Captures of one function in two runs, and of one that does more."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    path = tmp_path_factory.mktemp("diff")
    (path / "users.py").write_text(TARGETS)
    for name, function in (("a", "add_relu"), ("b", "add_relu"), ("c", "twice")):
        asked = (f"users.py:{function}", "--size", "1e8", "--no-paper", "--save", f"{name}.json")
        assert kernelcount(path, "run", *asked)[0] == 0
    return path


def test_two_runs_of_one_function_are_the_same(folder):
    code, out = kernelcount(
        folder, "diff", "a.json", "b.json", "--max-kernels", "+0", "--max-launches", "+0",
        "--max-memory", "+0", "--max-slowdown", "10%", "--format", "json",
    )  # fmt: skip
    document = json.loads(out)
    assert code == 0, document["limits"]
    assert {row["change"] for row in document["rows"]} == {"same"}
    assert {v["call_speed"]["verdict"] for v in document["variants"]} == {"no difference"}


def test_what_does_more_has_more_kernels_in_eager_and_takes_longer(folder):
    code, out = kernelcount(
        folder, "diff", "a.json", "c.json", "--max-kernels", "+0", "--max-slowdown", "10%",
        "--format", "json",
    )  # fmt: skip
    assert code == 1
    limits = {(x["variant"], x["limit"]): x for x in json.loads(out)["limits"]}
    assert limits["eager", "kernels"]["status"] == "broken"
    assert (limits["eager", "kernels"]["before"], limits["eager", "kernels"]["after"]) == (2, 4)
    assert limits["eager", "slowdown"]["status"] == "broken"
    assert limits["compile", "kernels"]["status"] == "kept"
