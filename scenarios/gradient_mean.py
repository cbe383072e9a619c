"""The mean of 2,000 gradients: a loop is 4,002 launches; one block a tensor makes it three.

Each launch takes the CPU microseconds, and the GPU less: it starves. foreach operators put many
tensors into a launch. torch.compile unrolls the loop, and does not make its turns run side by side.
A CUDA kernel that gives each tensor a block does. The mean is that of the magnitudes, for which
there is a foreach operator.
"""

import torch
from torch.nn.utils import get_total_norm


def make_inputs(n: int = 2000, device: str = "cuda"):
    return ([torch.randn(1024, device=device) for _ in range(n)],)


def loop(gradients: list[torch.Tensor]) -> torch.Tensor:
    total = torch.zeros((), device=gradients[0].device)
    for gradient in gradients:
        total = total + torch.linalg.vector_norm(gradient, 1)
    return total / sum(g.numel() for g in gradients)


def foreach(gradients: list[torch.Tensor]) -> torch.Tensor:
    return get_total_norm(gradients, 1.0, foreach=True) / sum(g.numel() for g in gradients)
