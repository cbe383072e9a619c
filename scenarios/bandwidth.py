"""Each level of memory is faster than the one below: a copy within L2 outruns one from GPU memory.

Eight times an array of 4 MB, which the L2 cache holds, and once one of 400 MB, which it does not.
`kernelcount doctor` measures what this GPU reaches for both, and for products in each precision: what
a kernel is held against.
"""

import torch


def scaled(a: torch.Tensor) -> torch.Tensor:
    return a * 2
