"""A CUDA operator that torch.library knows compiles without a graph break; a bare one breaks it.

torch.compile cannot look into a function of C++. Registered, with a fake implementation that
says what shape comes out, it is a node in the graph, and what stands round it is compiled in one
piece.
"""

import swish_cuda
import torch


def with_operator(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return swish_cuda.registered(x + bias) * 2


def without_operator(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return swish_cuda.unregistered(x + bias) * 2
