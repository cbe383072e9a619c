"""The first call of a compiled function measures the compiler: warm up before you measure.

It translates, compiles and tries out kernels, and launches hundreds of them on the way; the later
calls launch the function's own. `python first_call.py FOLDER` records both calls in a process with
an empty cache: `kernelcount read FOLDER/first.json FOLDER/later.json` counts them.
"""

import sys
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


def record(call, trace: Path) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        call()
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(trace))


def main(folder: Path) -> None:
    if not torch.cuda.is_available():
        sys.exit("first_call.py: there is no GPU here, so there is nothing to record")
    given = make_inputs()
    torch.cuda.synchronize()
    record(lambda: torch.ones(1, device="cuda"), folder / "thrown-away.json")  # the slow first one
    compiled = torch.compile(layers)
    record(lambda: compiled(*given), folder / "first.json")
    compiled(*given)
    record(lambda: compiled(*given), folder / "later.json")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python first_call.py FOLDER")
    main(Path(sys.argv[1]))
