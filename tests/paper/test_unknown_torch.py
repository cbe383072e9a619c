"""A torch that paper does not know: said from the command line, and the rest goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
ADD = f"{ROOT}/tests/paper/functions.py:add_relu"

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def strange(monkeypatch):
    """A torch that lacks a name."""
    monkeypatch.setattr(torch, "__version__", "9.9.0")
    monkeypatch.delattr(torch, "_TorchCompileInductorWrapper")


@pytest.mark.usefixtures("strange")
def test_paper_is_refused_in_a_sentence_with_exit_code_three(kernelcount):
    code, out, err = kernelcount("run", ADD, "--device", "paper")
    assert (code, out) == (3, "")
    assert "cannot count on paper with torch 9.9.0: it lacks torch._TorchCompile" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("strange")
def test_so_it_is_in_json(kernelcount):
    code, out, _ = kernelcount("run", ADD, "--device", "paper", "--format", "json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (3, 3)
    assert error["message"].startswith("cannot count on paper with torch 9.9.0: ")


@pytest.mark.usefixtures("strange")
def test_operations_on_the_cpu_are_counted_all_the_same(kernelcount, target):
    add = f"{target('def add_relu(a, b): return (a + b).relu()')}:add_relu"
    run = ("run", add, "--device", "cpu", "--variant", "eager", "--size", "64")
    code, out, err = kernelcount(*run, "--format", "json")
    assert code == 0, err
    assert json.loads(out)["variants"][0]["cpu_ops"]["aten"] == 2


def test_a_torch_that_is_too_old_is_refused_too(kernelcount, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.10.0")
    code, _, err = kernelcount("run", ADD, "--device", "paper")
    assert code == 3
    assert "cannot count on paper with torch 2.10.0: it is older than 2.11" in err


def test_a_trace_is_read_without_any_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"device": 0}}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    done = subprocess.run(
        [sys.executable, "-m", "kernelcount", "read", tmp_path / "t.json", "--format", "json"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["variants"][0]["kernels"] == 1
