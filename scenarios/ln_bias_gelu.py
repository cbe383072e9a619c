"""Layer norm, bias and activation apart make three round trips through GPU memory; fused, one.

Fusion pays by the bytes that it saves, and costs registers. Look at those of each kernel and at its
occupancy (--full, --ncu), and at the results against float64 (--reference), before and after.
"""

import torch
import torch.nn.functional as nnf


def make_inputs(n: int = 1024, device: str = "cuda"):
    return (torch.randn(n, n, device=device), *torch.randn(3, n, device=device).unbind())


def ln_bias_gelu(
    x: torch.Tensor, weight: torch.Tensor, shift: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return nnf.gelu(nnf.layer_norm(x, x.shape[-1:], weight, shift) + bias)
