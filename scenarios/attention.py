"""Attention by hand writes an N x N matrix three times; scaled_dot_product_attention never does.

By hand it is four kernels, and each but the last leaves N x N numbers a head in GPU memory. The one
kernel of the library works through tiles of it, and keeps what it needs of them on the chip: the
operations are the same, the traffic is a fiftieth. torch.compile knows the pattern and replaces it.
"""

import torch
import torch.nn.functional as nnf


def make_inputs(n: int = 2048, device: str = "cuda"):
    return torch.randn(3, 4, 16, n, 64, device=device, dtype=torch.bfloat16).unbind()


def by_hand(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = (query @ key.transpose(-1, -2)) / query.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ value


def library(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return nnf.scaled_dot_product_attention(query, key, value)
