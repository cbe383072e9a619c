"""Launches are the third bottleneck, and CUDA graphs its remedy: many small layers, one launch.

Each of the kernels takes the GPU some microseconds, about as long as the CPU takes to launch it, so
that fusing a few of them changes little. A CUDA graph launches them all at once: the
same kernels, one more that copies the input into the graph's memory, and a fraction of the time.
"""

import torch
import torch.nn.functional as nnf

LAYERS = 8


def make_inputs(n: int = 256, device: str = "cuda"):
    weights = [torch.randn(n, n, device=device) / n**0.5 for _ in range(LAYERS)]
    biases = [torch.zeros(n, device=device) for _ in range(LAYERS)]
    return torch.randn(32, n, device=device), weights, biases


def layers(x: torch.Tensor, weights: list[torch.Tensor], biases: list[torch.Tensor]):
    for weight, bias in zip(weights, biases, strict=True):
        x = nnf.linear(x, weight, bias).relu()
    return x
