"""A copy from pinned memory, with non_blocking=True, is a copy that the CPU doesn't wait for.

From pageable memory the driver copies the data into a pinned buffer of its own first, piece by
piece, and the CPU waits. From pinned memory the GPU fetches it by itself, faster, while the CPU
goes on to launch the next kernels.
"""

import torch


def make_inputs(n: int = 10_000_000, device: str = "cuda"):
    host = torch.randn(n)
    return torch.randn(n, device=device), host, host.pin_memory()


def pageable(a: torch.Tensor, host: torch.Tensor, _pinned: torch.Tensor) -> torch.Tensor:
    return a + host.to(a.device)


def pinned(a: torch.Tensor, _host: torch.Tensor, pinned: torch.Tensor) -> torch.Tensor:
    return a + pinned.to(a.device, non_blocking=True)
