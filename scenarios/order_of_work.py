"""Plain PyTorch, then torch.compile and Triton, then CUDA: and stop where nothing is left to win.

The compiled function moves its three arrays as fast as this memory copies. A Triton kernel by hand
and one in CUDA C do the same, and take a day instead of a line: the verdict below the table says
which step is worth taking next, and that here none is.
"""

import torch


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()
