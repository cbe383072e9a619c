"""A simple kernel takes as long as its bytes: 800 MB take an H200 some 200 µs, 4 TB in a second.

Each level of memory is faster than the one below. Two arrays of four million elements stay in the
L2 cache from call to call, where they take less time than from memory; of a hundred million they
cannot. Another card has other times, and is held to the bytes alone. `kernelcount doctor` measures
a copy in both on this GPU, and products in each precision: what a kernel is held against.
"""

import torch


def scaled(a: torch.Tensor) -> torch.Tensor:
    return a * 2
