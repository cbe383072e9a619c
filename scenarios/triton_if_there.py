"""Triton, or what says that it is missing once a kernel is launched: its import must not fail."""

from typing import Any

from kernelcount.errors import NotMeasuredError


class _Missing:
    constexpr = object

    def jit(self, _kernel: Any) -> "_Missing":
        return self

    def __getattr__(self, _name: str) -> Any:
        raise NotMeasuredError("the function launches a Triton kernel, and there is no Triton here")

    def __getitem__(self, _grid: Any) -> Any:
        raise NotMeasuredError("the function launches a Triton kernel, and there is no Triton here")


triton: Any
tl: Any
try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:
    triton = tl = _Missing()

__all__ = ["tl", "triton"]
