"""Each level of memory is faster than the one below: a copy within L2 outruns one from GPU memory.

At a million elements the arrays stay in the L2 cache from call to call, at a hundred million they
cannot. `kernelcount doctor` measures what this GPU reaches for both, and for products in each
precision: what a kernel is held against.
"""

import torch


def scaled(a: torch.Tensor) -> torch.Tensor:
    return a * 2
