"""``tensor[...]`` with what is no tensor: torch makes one of it on the host, and copies it.

On tensors without memory it makes none, and would leave out the copy, the wait for it and the
values (``internal_new_from_data`` in torch/csrc/utils/tensor_new.cpp). What is made into what is
after torch/csrc/autograd/python_variable_indexing.cpp.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from kernelcount.paper import waits
from kernelcount.paper.places import STAND_IN, is_on
from kernelcount.paper.steps import mapped


def getting() -> Callable[[Any, Any], Any]:
    """What stands in for Tensor.__getitem__."""
    import torch

    get = torch.Tensor.__getitem__

    def got(self: Any, index: Any) -> Any:
        """Tensor.__getitem__: sequences in the index are made on the host and copied."""
        return get(self, _made_on_host(index) if is_on(self) else index)

    return got


def putting() -> Callable[[Any, Any, Any], None]:
    """What stands in for Tensor.__setitem__."""
    import torch

    put = torch.Tensor.__setitem__

    def put_in(self: Any, index: Any, value: Any) -> None:
        """Tensor.__setitem__: so is a number that is put, which is put on the host first."""
        if not is_on(self):
            put(self, index, value)
            return
        index = _made_on_host(index)
        if isinstance(value, bool | int | float | complex):
            number = torch.tensor(value, dtype=self.dtype, device="cpu")
            waits.of_numbers(lambda: put(self, index, number))
        else:
            put(self, index, value)

    return put_in


def _made_on_host(index: Any) -> Any:
    """An index with a tensor on the stand-in for each sequence in it."""
    parts = index if isinstance(index, tuple) else _parts(index)
    return tuple(map(_copied, parts)) if any(map(_is_sequence, parts)) else index


def _parts(index: Any) -> Sequence[Any]:
    """What an index that is no tuple consists of (treatSequenceAsTuple)."""
    none = getattr(index, "ndim", None) == 0  # an array without dimensions has no length
    few = _is_sequence(index) and not none and len(index) < _PARTED
    parted = few and any(map(_parts_it, index)) and _are_parted()
    return tuple(index) if parted else (index,)


_PARTED = 32  # a sequence of as many is one part, whatever is in it: treatSequenceAsTuple


def _parts_it(item: Any) -> bool:
    import torch

    special = item is None or item is Ellipsis or isinstance(item, slice | torch.Tensor)
    return special or _is_sequence(item)


@lru_cache(maxsize=1)
def _are_parted() -> bool:
    """Whether this torch takes a list of lists for a tuple of them; it warns that it will not."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int(torch.zeros(1, 1, device="cpu")[[[0], [0]]].dim()) == 1


def _is_sequence(value: Any) -> bool:
    """Whether torch takes a part of an index for a sequence; a scalar of NumPy's is a number."""
    array = hasattr(value, "__array_interface__") and hasattr(value, "__setitem__")
    return array or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def _copied(part: Any) -> Any:
    """A sequence as a tensor of indices, or a mask, on the stand-in; anything else as it is."""
    import torch

    if not _is_sequence(part):
        return part
    if hasattr(part, "__array_interface__"):  # its memory is the user's, and could be pinned
        return _of_indices(torch.as_tensor(part, device="cpu")).to(STAND_IN)
    numbers = mapped(list(part), lambda v: v.item() if isinstance(v, torch.Tensor) else v)
    host = _of_indices(torch.tensor(numbers, device="cpu"))
    return waits.of_numbers(lambda: host.to(STAND_IN))


def _of_indices(host: Any) -> Any:
    """Masks stay what they are, anything else is of 64 bits (indexing_tensor_from_data)."""
    import torch

    return host if host.dtype in (torch.bool, torch.uint8) else host.to(torch.int64)
