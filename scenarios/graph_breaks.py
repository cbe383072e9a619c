"""A graph break undoes fusion: print, .item() and code that is not compiled cut a function in two.

What stands before the break and what comes after it are compiled apart, and what passes from the
one to the other goes through GPU memory. Without it the same arithmetic is one kernel.
"""

import torch


def whole(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()


def with_print(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = a + b
    print(end="")  # noqa: T201
    return c.relu()


def with_item(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = a + b
    return c.relu() if c[0].item() < 1e30 else c


@torch.compiler.disable
def _opaque(c: torch.Tensor) -> torch.Tensor:
    return c


def with_disabled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _opaque(a + b).relu()
