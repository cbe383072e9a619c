"""How long `kernelcount run` takes beside the bare script that a tutorial would have you write.

    python tests/benchmarks/bench_run.py [DEVICE [SIZE [REPEATS [FLAG...]]]]

The script imports torch, compiles a function, warms both up, profiles a call of each and prints
what ran. The two take turns; each has an empty folder for what Inductor and Triton compile, or, in
a second series, the one that the runs before it have filled. Exits with 1 where the median ratio of
either series is above `BOUND`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

BOUND = 1.5
"""Counting, timing and comparing may take this much longer than counting by hand."""

FUNCTION = """
import torch

def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()
"""

SCRIPT = """
import torch
from torch.profiler import ProfilerActivity, profile
from function import add_relu

device, size = {device!r}, int({size})
a, b = torch.randn(size, device=device), torch.randn(size, device=device)
kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
for call in (add_relu, torch.compile(add_relu)):
    for _ in range(3):
        call(a, b)
    with profile(activities=kinds) as prof:
        call(a, b)
        if device == "cuda":
            torch.cuda.synchronize()
    print(prof.key_averages().table(row_limit=10))
"""


def main(device: str = "cuda", size: str = "1e8", repeats: str = "3", *flags: str) -> int:
    """Run both, print what they took, and tell whether the bound is kept."""
    ours = [sys.executable, "-m", "kernelcount", "run", "function.py:add_relu"]
    ours += ["--device", device, "--size", size, *flags]
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "function.py").write_text(FUNCTION)
        Path(folder, "bare.py").write_text(SCRIPT.format(device=device, size=float(size)))
        pair = ([sys.executable, "bare.py"], ours)
        for command in pair:
            _seconds(command, folder, "filled")  # reads torch from the disk, too
        for caches in ("empty", "filled"):
            ratios = []
            for i in range(int(repeats)):
                names = [caches if caches == "filled" else f"{caches}-{i}-{j}" for j in (0, 1)]
                took = list(map(_seconds, pair, (folder, folder), names))
                print(f"{caches} caches: bare {took[0]:.1f} s, kernelcount {took[1]:.1f} s")
                ratios.append(took[1] / took[0])
            print(f"{caches} caches: {median(ratios):.2f} times as long, {BOUND} allowed")
            kept = kept and median(ratios) <= BOUND
    return 0 if kept else 1


def _seconds(command: list[str], folder: str, caches: str) -> float:
    own = Path(folder, caches)
    python = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": python,
        "TORCHINDUCTOR_CACHE_DIR": str(own / "inductor"),
        "TRITON_CACHE_DIR": str(own / "triton"),
    }
    start = time.monotonic()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
