"""Most rows of a profiler's table are no kernels: annotations, copies and fills are counted apart.

This function has a named range, a copy from the CPU, a fill that the sum does for itself, and two
kernels. A table of all rows that took GPU time adds them up, and counts the kernels below a range
twice.
"""

import torch


def make_inputs(n: int = 1_000_000, device: str = "cuda"):
    return torch.randn(n, device=device), torch.randn(n, pin_memory=True)


def scaled_total(a: torch.Tensor, host: torch.Tensor) -> torch.Tensor:
    with torch.profiler.record_function("scaled total"):
        b = host.to(a.device, non_blocking=True)
        return (a * b).sum()
