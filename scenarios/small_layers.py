"""Launches are the third bottleneck, and CUDA graphs its remedy: many small layers, one launch.

Each of the kernels takes the GPU some microseconds, about as long as the CPU takes to launch it, so
that fusing a few of them changes little. A CUDA graph launches them all at once: the same kernels,
one more that copies the input into the graph's memory, and a fraction of the time.
"""

import torch
from torch import nn

WIDTH, LAYERS = 256, 8


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return x


def make_inputs(n: int = 32, device: str = "cuda"):
    return (torch.randn(n, WIDTH, device=device),)
