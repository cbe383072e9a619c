"""Plain PyTorch, then torch.compile and Triton, then CUDA: and stop where nothing is left to win.

The compiled function makes the fewest transfers there can be, as fast as an H200's memory copies. A
Triton kernel by hand and one in CUDA C do the same, and take a day instead of a line. On a GPU,
kernelcount run order_of_work.py:add_relu --size 1e8 ends with a sentence that says so: only fewer
bytes would help. With --remedy it tries what may be worth it next, such as bfloat16.
"""

import torch


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()
