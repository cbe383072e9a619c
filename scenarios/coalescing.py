"""Neighbouring threads should read neighbouring values: one contiguous range a thread is slower.

Both kernels read each element once and add it up in the same way. Where each thread walks through a
range of its own, the 32 threads of a warp touch 32 places far apart at every step; where they read
side by side, one access serves them all.
"""

import torch


def make_inputs(n: int = 100_000_000, device: str = "cuda"):
    # Whole numbers: their sum is exact in whatever order it is made.
    return (torch.randint(-8, 9, (n,), device=device, dtype=torch.int8).float(),)


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum()
