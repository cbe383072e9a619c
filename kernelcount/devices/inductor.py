"""Adapter to Inductor's private settings: have the generated C++ kernels show up in profiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpp_kernels_recorded() -> Iterator[None]:
    """Switch ``torch._inductor.config.cpp.enable_kernel_profile`` on.

    Without it a compiled function shows no kernel at all on the CPU (PyTorch's tutorial "Inductor
    CPU debugging" names the setting). Where a torch lacks it, nothing is switched, and
    `cpp_kernels_recordable` says so.
    """
    try:
        from torch._inductor import config

        patch = config.patch({"cpp.enable_kernel_profile": True})
    except (ImportError, AttributeError):
        yield
        return
    with patch:
        yield


def cpp_kernels_recordable() -> bool:
    """Whether this torch has the setting."""
    try:
        from torch._inductor import config

        return isinstance(config.cpp.enable_kernel_profile, bool)
    except (ImportError, AttributeError):
        return False
