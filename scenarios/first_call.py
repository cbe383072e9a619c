"""The first call of a compiled function measures the compiler: warm up before you measure.

It translates, compiles and tries out kernels, and launches hundreds of them on the way; the later
calls launch the function's own. `python first_call.py FOLDER` records both calls, with caches that
are empty: `kernelcount read FOLDER/first.json FOLDER/later.json` counts them.
"""

import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as nnf

LAYERS = 8


def make_inputs(n: int = 256, device: str = "cuda"):
    weights = [torch.randn(n, n, device=device) / n**0.5 for _ in range(LAYERS)]
    biases = [torch.zeros(n, device=device) for _ in range(LAYERS)]
    return torch.randn(32, n, device=device), weights, biases


def layers(x: torch.Tensor, weights: list[torch.Tensor], biases: list[torch.Tensor]):
    for weight, bias in zip(weights, biases, strict=True):
        x = nnf.linear(x, weight, bias).relu()
    return x


def record(call):
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        call()
        torch.cuda.synchronize()
    return profile


def main(folder: Path) -> None:
    if not torch.cuda.is_available():
        sys.exit("first_call.py: there is no GPU here, so there is nothing to record")
    given = make_inputs()
    torch.cuda.synchronize()
    record(lambda: torch.ones(1, device="cuda"))  # the first profile of a process is slow
    compiled = torch.compile(layers)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": empty, "TRITON_CACHE_DIR": f"{empty}/triton"}
        first = record(lambda: compiled(*given))
        compiled(*given)
        later = record(lambda: compiled(*given))
    first.export_chrome_trace(str(folder / "first.json"))
    later.export_chrome_trace(str(folder / "later.json"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python first_call.py FOLDER")
    main(Path(sys.argv[1]))
