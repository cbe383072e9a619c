"""A transformer block is half library calls, and of its five other kernels fusion saves one.

In eager the four products and the attention are library calls, and each norm, each sum and the
activation is a kernel and a round trip. Compiled, the first sum is fused with the norm that follows
it, and is not written: the kernel of the last sum makes it again, from one array more. The first
norm and the activation stand between calls of the library, with nothing to be fused with.
"""

import torch
import torch.nn.functional as nnf
from torch import nn

WIDTH, HEADS = 1024, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.to(torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = self.attend(self.before_attention(x)).view(batch, length, 3, HEADS, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind()
        attended = nnf.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(nnf.gelu(self.widen(self.before_layers(x))))


def make_inputs(n: int = 1024, device: str = "cuda"):
    return (torch.randn(8, n, WIDTH, device=device, dtype=torch.bfloat16),)
