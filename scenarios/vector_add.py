"""A vector add by hand is one kernel with one thread an element, and no faster than torch's.

It is the first kernel that everybody writes in CUDA C. PyTorch's own moves the same three arrays as
fast as the memory allows, so that nothing is left to win by hand.
"""

import torch


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b
