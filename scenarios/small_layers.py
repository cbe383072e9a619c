"""Launches are the third bottleneck, and CUDA graphs its remedy: many small layers, one launch.

On an H200 a kernel ran 2.6 µs, and its launch took the CPU 15: the GPU waits most of the time.
torch.compile has a relu where eager has one, and is no faster. A CUDA graph launches all at once:
the same kernels, one more that copies the input into the graph's memory, and a third of the time.
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
