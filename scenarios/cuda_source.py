"""CUDA C from a string, built by torch's own loader when one of its functions is first called."""

import re
from functools import cached_property
from typing import Any

import torch

from kernelcount.errors import NotMeasuredError

# A kernel is called with addresses, so that kernelcount must not make any up for a count on paper.
KERNELCOUNT_TAKES_ADDRESSES = True

HEADERS = """
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <algorithm>
#include <cstdint>
"""


def check_is_there(tensor: torch.Tensor) -> None:
    """Raise NotMeasuredError for one that is only a shape: a kernel is called with addresses."""
    if tensor.numel() and not tensor.data_ptr():
        raise NotMeasuredError("a CUDA C kernel is called with addresses: on paper there are none")


class CudaSource:
    """CUDA C with one or more functions that take and return tensors; nothing is built at import.

    `text` holds the kernels and, at the beginning of a line, ``torch::Tensor name(arguments) {``
    for each function that Python may call: ``CudaSource(...).module.name(...)``.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    @property
    def functions(self) -> list[tuple[str, str]]:
        """The declaration and the name of each function for Python."""
        return re.findall(r"^(torch::Tensor (\w+)\([^)]*\)) \{", self.text, re.MULTILINE)

    @cached_property
    def module(self) -> Any:
        """The functions, built once; half a minute the first time on a machine, then cached.

        Raises NotMeasuredError that says what is missing here.
        """
        if torch.version.cuda is None:
            raise NotMeasuredError("a CUDA C kernel is not built by a torch without CUDA")
        from torch.utils import cpp_extension

        if cpp_extension.CUDA_HOME is None:
            raise NotMeasuredError(
                "no nvcc was found to build a CUDA C kernel: install the CUDA toolkit, or name its"
                " folder by CUDA_HOME"
            )
        if not cpp_extension.is_ninja_available():
            raise NotMeasuredError("ninja, which builds CUDA C, is missing: pip install ninja")
        return cpp_extension.load_inline(
            name=f"kernelcount_{self.name}",
            cpp_sources="\n".join(f"{head};" for head, _ in self.functions),
            cuda_sources=HEADERS + self.text,
            functions=[name for _, name in self.functions],
            extra_cuda_cflags=["-O3"],
        )
