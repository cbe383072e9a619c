"""What a run and budgets on paper come to has no key that docs/json.md does not name."""

import json
from contextlib import contextmanager

import pytest
import torch

from kernelcount import ahead, runners
from tests.keys import Reader

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
]
USERS = """
    def f(x):
        y = torch.sort(x + 1)[0]
        y.sum().item()
        print(end='')
        return y.relu() @ y
"""


def test_a_run_on_paper_has_no_other_key(kernelcount, target):
    code, out, _ = kernelcount(
        "run", f"{target(USERS)}:f", "--device", "paper", "--explain", "--format", "json"
    )
    assert code == 0
    for shown in ('"at_least": true', '"basis": "paper"', '"costs_kernels"', '"replaces"'):
        assert shown in out
    Reader().read(json.loads(out), "of-run-and-read", "run")


def test_budgets_on_paper_have_no_other_key(kernelcount, monkeypatch):
    @contextmanager
    def here(*_):
        yield runners.in_process

    monkeypatch.setattr(ahead, "Ahead", here)
    code, out, _ = kernelcount(
        "scenarios", "run", "bandwidth", "--device", "paper", "--format", "json"
    )
    assert code == 3
    Reader().read(json.loads(out), "of-scenarios-run", "scenarios run")
