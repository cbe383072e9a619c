"""A 2048 x 2048 product takes a CPU tens of milliseconds, and a GPU some hundred microseconds.

Its four million results don't depend on each other, so that a GPU's thousands of units work at them
side by side. On the CPU no kernel is launched at all.
"""

import torch


def make_inputs(n: int = 2048, device: str = "cuda"):
    host = torch.randn(2, n, n)
    return host[0], host[1], *host.to(device).unbind()


def on_cpu(host_a, host_b, _a, _b) -> None:
    torch.matmul(host_a, host_b)


def on_gpu(_host_a, _host_b, a, b) -> None:
    torch.matmul(a, b)
