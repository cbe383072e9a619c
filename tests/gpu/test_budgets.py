"""Budgets held on a GPU, by workers forked from a warm process: `pytest -m gpu`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch's own, at import and while it compiles
]

TARGETS = Path(__file__).parent / "targets.py"
BUDGET = """\
target: {targets}:add_relu
size: 1e8
budget:
  eager: {{kernels: 2, launches: 2, copies: 0, fills: 0, transfers: 5, bytes: 2 GB, library: 2}}
  compile:
    kernels: 1
    generated: 1
    transfers: 3
    recompiles: 0
    speedup: {{min: 1.3, over: eager}}
    call_time: {{max: 1 s}}
    kernel_time: {{max: 1 s}}
    peak_memory: {{max: 410 MB}}
    max_error: {{max: 0}}
"""


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


@pytest.fixture
def check(tmp_path):
    """Check the budgets of a text in a folder of its own: exit code and document."""

    def run(text, *flags):
        (tmp_path / "b.yaml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "kernelcount", "check", "--format", "json", *flags],
            capture_output=True,
            text=True,
            timeout=500,
            cwd=tmp_path,
        )
        return done.returncode, json.loads(done.stdout), done.stderr

    return run


def test_a_budget_is_held_by_what_is_measured(check):
    code, document, said = check(BUDGET.format(targets=TARGETS))
    assert {e["limit"]: e for e in document["budgets"] if e["status"] != "kept"} == {}, said
    assert code == 0
    assert document["environment"]["kind"] == "cuda"
    assert {e["basis"] for e in document["budgets"]} == {"measured"}


def test_each_of_several_targets_has_a_gpu_of_its_own_process(check):
    one = f"- target: {TARGETS}:add_relu\n  size: 1e6\n  budget: {{eager: {{kernels: 2}}}}\n"
    code, document, said = check(one * 3)
    assert ([e["actual"] for e in document["budgets"]], code) == ([2, 2, 2], 0), said


def test_a_poisoned_context_does_not_reach_the_next(check):
    budgets = [
        f"- target: {TARGETS}:{name}\n  size: 1e6\n  budget: {{eager: {{kernels: 2}}}}\n"
        for name in ("bad_index", "add_relu")
    ]
    code, document, _ = check("".join(budgets))
    assert [e["status"] for e in document["budgets"]] == ["undecided", "kept"]
    assert code in (2, 3)


def test_the_lock_file_is_for_this_gpu_and_its_libraries(check, tmp_path):
    import torch

    text = BUDGET.format(targets=TARGETS)
    assert check(text, "--update")[0] == 0
    lock = (tmp_path / "kernelcount.lock").read_text()
    major, minor = torch.cuda.get_device_capability()
    assert f"gpu: sm_{major}{minor}, torch: " in lock
    assert f'cuda: "{torch.version.cuda}"' in lock
    assert "basis: measured" in lock
    _, document, said = check(text)
    locked = [e["status"] for e in document["budgets"] if e["limit"] == "lock"]
    assert locked == ["kept", "kept"], said
    _, document, _ = check(text, "--device", "paper")
    assert [note["code"] for note in document["notes"]] == ["lock-other-setup"]
