"""A simple kernel takes as long as its bytes: two transfers, at the rate of the memory they are in.

Each level of memory is faster than the one below. Two arrays of four million elements stay in the
L2 cache from call to call; of a hundred million they cannot. On an H200, where that was measured,
the times are held to as well: 800 MB some 200 µs, 4 TB in a second, and 32 MB in the cache less
than memory could take; another card is held to its bytes alone. `kernelcount doctor` measures a
copy in both, and products in each precision: what a kernel is held against.
"""

import torch


def scaled(a: torch.Tensor) -> torch.Tensor:
    return a * 2
