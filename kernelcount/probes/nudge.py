"""How far rounding may move a result: the same calls with each number moved a little, at random.

That is Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997): what a result does when the
inputs, and what each operation makes of them, are moved by a small part of themselves, up or down,
is what rounding of that size does to it, cancellation included.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from kernelcount.nesting import tensors

if TYPE_CHECKING:
    import torch

_EXACT = {
    "__get__", "__getitem__", "abs", "absolute", "amax", "amin", "cat", "ceil", "clamp",
    "clamp_max", "clamp_min", "clone", "concat", "concatenate", "contiguous", "copysign", "cummax",
    "cummin", "detach", "diag", "diagonal", "embedding", "flatten", "flip", "floor", "gather",
    "hstack", "index_fill", "index_select", "masked_fill", "masked_select", "max", "max_pool1d",
    "max_pool2d", "max_pool3d", "maximum", "median", "min", "minimum", "nan_to_num", "neg",
    "negative", "new_tensor", "ones_like", "pad", "relu", "repeat", "repeat_interleave", "reshape",
    "roll", "round", "scatter", "sign", "sort", "stack", "take", "to", "topk", "tril", "triu",
    "trunc", "vstack", "where", "zeros_like",
}  # fmt: skip
"""Functions of torch that choose, place, or fill in, and round nothing."""


class Nudge:
    """Moves numbers in float64 by the part `by` of each, up or down.

    Every other trial moves each tensor as a whole: a sum of many numbers of one sign answers to
    that, one of numbers that cancel to the others.
    """

    def __init__(self, by: float, trial: int) -> None:
        self.by, self._trial = by, trial
        self._generators: dict[torch.device, torch.Generator] = {}

    def factor(self, tensor: torch.Tensor) -> torch.Tensor:
        """What to multiply a tensor by."""
        import torch

        if tensor.device not in self._generators:
            made = torch.Generator(tensor.device)
            self._generators[tensor.device] = made.manual_seed(self._trial)
        generator = self._generators[tensor.device]
        shape = tensor.shape if self._trial % 2 else ()
        signs = torch.randint(2, shape, generator=generator, device=tensor.device) * 2 - 1
        return 1 + self.by * signs.to(torch.float64)

    def move(self, tensor: torch.Tensor) -> None:
        """Move a tensor in place; what is not in float64 stays as it is."""
        import torch

        if _is_wide(tensor):
            with torch.no_grad():
                tensor *= self.factor(tensor)

    def operations(self) -> AbstractContextManager[Any]:
        """Move what each operation makes, meanwhile; gradients that go back are moved with it."""
        from torch.overrides import TorchFunctionMode

        nudge = self

        class Mode(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                made = func(*args, **(kwargs or {}))
                return nudge._moved(func, made, (args, kwargs))

        return Mode()

    def _moved(self, func: Any, made: Any, given: Any) -> Any:
        import torch

        name = getattr(func, "__name__", "")
        if not isinstance(made, torch.Tensor) or not _is_wide(made) or name in _EXACT:
            return made
        read = [t for t in tensors(given) if _is_wide(t)]
        place = made.untyped_storage().data_ptr()
        if not read or any(t.untyped_storage().data_ptr() == place for t in read):
            return made  # nothing was computed, or it is a view, or was written in place
        return made * self.factor(made)


def _is_wide(tensor: torch.Tensor) -> bool:
    import torch

    return tensor.layout is torch.strided and tensor.dtype in (torch.float64, torch.complex128)
