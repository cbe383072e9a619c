"""Two arrays of 400 MB take an H200 some 200 µs: its memory moves about 4 TB in a second.

Each level of memory is faster than the one below. At a million elements the arrays stay in the L2
cache from call to call, at a hundred million they cannot. `kernelcount doctor` measures a copy in
both on this GPU, and products in each precision: what a kernel is held against.
"""

import torch


def scaled(a: torch.Tensor) -> torch.Tensor:
    return a * 2
