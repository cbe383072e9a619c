"""The mean norm of 2,000 gradients: a loop is 4,002 launches; one block a tensor makes it three.

Each launch takes the CPU microseconds, and the GPU less: it starves. foreach operators put many
tensors into a launch. torch.compile unrolls the loop, and does not make its turns run side by side.
A CUDA kernel that gives each tensor a block does. The mean is that of the gradients' norms (the
sums of their magnitudes), for which there is a foreach operator.
"""

import torch


def make_inputs(n: int = 2000, device: str = "cuda"):
    return ([torch.randn(1024, device=device) for _ in range(n)],)


def loop(gradients: list[torch.Tensor]) -> torch.Tensor:
    total = torch.zeros((), device=gradients[0].device)
    for gradient in gradients:
        total = total + torch.linalg.vector_norm(gradient, 1)
    return total / len(gradients)


def foreach(gradients: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(torch._foreach_norm(gradients, 1)).mean()
