"""Triton, or what says that it is missing once a kernel is launched: its import must not fail."""

from typing import Any


class _Missing:
    constexpr = object

    def jit(self, _kernel: Any) -> "_Missing":
        return self

    def __getattr__(self, _name: str) -> Any:
        raise RuntimeError("a Triton kernel: Triton is not installed here")

    def __getitem__(self, _grid: Any) -> Any:
        raise RuntimeError("a Triton kernel: Triton is not installed here")


triton: Any
tl: Any
try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:
    triton = tl = _Missing()

__all__ = ["tl", "triton"]
