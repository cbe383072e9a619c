"""How many launches a ``_foreach`` op takes: one for as many tensors as a launch's arguments hold.

Sources, below ``aten/src/ATen/native``: ForeachUtils.h (which lists go the fast way),
cuda/MultiTensorApply.cuh (how much one launch takes), cuda/Foreach*.cu (how many lists an op has).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 65_536  # elements: kChunkSize


@dataclass(frozen=True, slots=True)
class Limits:
    """What one launch takes, by the number of lists: tensors, those with a scalar each, chunks."""

    tensors: tuple[int, ...]
    scalars: tuple[int, ...]
    chunks: int


# depth_to_max_tensors and the like: for arguments of 4 KB, and of 32 KB, which torch uses where it
# is built for CUDA 13, but not yet in 2.11. On paper nobody knows which CUDA that will be.
LIMITS = (
    Limits((110, 64, 48, 36, 30), (96, 64, 48, 36, 30), 320),
    Limits((770, 448, 336, 252, 210), (672, 448, 336, 252, 210), 2240),
)

# How many lists of tensors there are besides the first, by op.
_UNARY = frozenset(
    {
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
        "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
        "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "zero",
    }
)  # fmt: skip
_BINARY = frozenset(
    {"add", "clamp_max", "clamp_min", "div", "maximum", "minimum", "mul", "pow", "sub"}
)
_TERNARY = frozenset({"addcdiv", "addcmul", "lerp"})


def launches(name: str, args: Sequence[Any]) -> tuple[int, bool] | None:
    """Launches of a ``_foreach`` op called with these arguments, and whether that is exact.

    None where the lists may not go the fast way, or the op is none of these.
    """
    plain = name.removeprefix("_foreach_")
    in_place = plain.endswith("_")
    plain = plain.removesuffix("_")
    lists = [list(a) for a in args if _is_tensors(a)]
    scalars = [a for a in args[1:] if not _is_tensors(a)]
    if not lists or any(hasattr(s, "dtype") or isinstance(s, complex) for s in scalars):
        return None  # a tensor of scalars is read, or multiplied with, in another way
    if not (_known(plain, len(lists)) and _go_the_fast_way(lists)):
        return None
    depth = len(lists) + (not in_place)
    listed = any(isinstance(s, list | tuple) for s in scalars)
    counts = {_counted(lists[0], limits, depth, listed=listed) for limits in _limits()}
    return min(counts), len(counts) == 1


def _limits() -> tuple[Limits, ...]:
    import torch

    return LIMITS[:1] if torch.__version__.startswith("2.11.") else LIMITS


def _is_tensors(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and hasattr(value[0], "dtype")


def _known(name: str, lists: int) -> bool:
    if name in _UNARY:
        return lists == 1
    if name in _BINARY:
        return lists in (1, 2)
    return name in _TERNARY and lists in (2, 3)


def _go_the_fast_way(lists: Sequence[Sequence[Tensor]]) -> bool:
    """One floating dtype, everything dense, and each place of all lists of one size and layout."""
    from kernelcount.paper.copying import is_dense

    first = lists[0][0]
    every = [t for tensors in lists for t in tensors]
    alike = all(t.dtype == first.dtype and t.device == first.device for t in every)
    if not (alike and first.dtype.is_floating_point and all(map(is_dense, every))):
        return False
    return all(
        len(tensors) == len(lists[0]) and all(map(_one_layout, lists[0], tensors))
        for tensors in lists[1:]
    )


def _one_layout(a: Tensor, b: Tensor) -> bool:
    pairs = zip(a.shape, a.stride(), b.stride(), strict=True) if a.shape == b.shape else None
    return pairs is not None and all(n == 1 or s == t for n, s, t in pairs)


def _counted(tensors: Sequence[Tensor], limits: Limits, depth: int, *, listed: bool) -> int:
    """Launches as multi_tensor_apply fills them, chunk by chunk; its last chunk closes a tensor."""
    most = (limits.scalars if listed else limits.tensors)[depth - 1]
    done = held = blocks = 0
    for elements in (int(t.numel()) for t in tensors):
        if not elements:
            continue
        held += 1
        chunks = -(-elements // _CHUNK)
        for chunk in range(chunks):
            blocks += 1
            last = chunk == chunks - 1
            if (held == most and last) or blocks == limits.chunks:
                done += 1
                blocks = 0
                held = 0 if last else 1
    return done + (blocks > 0)
