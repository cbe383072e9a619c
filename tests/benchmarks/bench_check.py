"""How long `kernelcount check` takes for many budgets on paper.

    python tests/benchmarks/bench_check.py [BUDGETS]

Each has a file of its own with a function of its own, counted in eager and compiled for an H200.
Exits with 1 where they take longer than `BOUND`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOUND = 60.0
"""Seconds for fifty budgets on two cores."""

FUNCTION = """
import torch


def f(a, b):
    x = (a + b).relu() * {i}.5
    return torch.softmax(x, 0) + x.sum()
"""

BUDGET = """
target: f{i}.py:f
size: 1e6
device: paper
budget:
  eager: {{kernels: {{max: 9}}}}
  compile: {{kernels: {{max: 9}}, graph_breaks: 0}}
"""


def main(budgets: str = "50") -> int:
    """Check them, print what they took, and tell whether the bound is kept."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(int(budgets)):
            Path(folder, f"f{i}.py").write_text(FUNCTION.format(i=i))
            Path(folder, f"f{i}.yaml").write_text(BUDGET.format(i=i))
        python = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
        start = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "kernelcount", "check"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": python},
            check=True,
        )
        took = time.monotonic() - start
    bound = BOUND * int(budgets) / 50
    print(f"{budgets} budgets: {took:.1f} s, {bound:.0f} allowed")
    return 0 if took <= bound else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
