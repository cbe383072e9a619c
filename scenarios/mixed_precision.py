"""Mixed precision: autocast adds kernels that cast, and the products on tensor cores win them back.

Two layers in float32, and the same under autocast to bfloat16. More kernels and less time: the
number of kernels is not the time. Compiled there are as many: each cast stands before a product
that is a library's, and so has nothing to be fused with.
"""

import torch
import torch.nn.functional as nnf


def make_inputs(n: int = 4096, device: str = "cuda"):
    first, second = (torch.randn(n, n, device=device) / n**0.5 for _ in range(2))
    return torch.randn(n, n, device=device), first, second


def layers(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return nnf.gelu(x @ first) @ second


def autocast(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    with torch.autocast(x.device.type, torch.bfloat16):
        return layers(x, first, second)
