"""The tensors that a function is given and reaches, in float64 for as long as it is called.

They stay the same objects, and those that share memory share it meanwhile, too: what a function
writes into one of them it reads in the others, as it does otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelcount.probes.nudge import Nudge

if TYPE_CHECKING:
    import torch

Shown = list[tuple["torch.Tensor", "torch.dtype"]]
"""Tensors that are shown in float64, and of what dtype they are."""


@contextmanager
def in_float64(held: Iterable[torch.Tensor], nudge: Nudge | None = None) -> Iterator[Shown]:
    """Have tensors show copies in float64 meanwhile; their gradients, if they have any, as well.

    Gives these tensors with the dtypes that they have otherwise. `nudge` moves the copies. Raises
    RuntimeError where memory is shared that has no like in float64, as by floats and their bits.
    """
    known = _with_gradients(held)
    shown: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]] = []
    try:
        for tensor, new in zip(known, doubles(known, nudge), strict=True):
            shown.append((tensor, tensor.data, tensor.grad if tensor.is_leaf else None))
            _show(tensor, new, None)
        for tensor, _, gradient in shown:
            if gradient is not None:
                tensor.grad = gradient  # which is shown in float64 by now
        yield [(tensor, data.dtype) for tensor, data, _ in shown]
    finally:
        for tensor, data, _ in shown:
            _show(tensor, data, None)
        for tensor, _, gradient in shown:
            if tensor.is_leaf:
                tensor.grad = gradient


def _show(tensor: torch.Tensor, data: torch.Tensor, gradient: torch.Tensor | None) -> None:
    if tensor.is_leaf:
        tensor.grad = gradient
    tensor.data = data


def _with_gradients(held: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    for tensor in held:
        found[id(tensor)] = tensor
        gradient = tensor.grad if tensor.is_leaf else None
        if gradient is not None:
            found[id(gradient)] = gradient
    return list(found.values())


def doubles(held: Sequence[torch.Tensor], nudge: Nudge | None = None) -> list[torch.Tensor]:
    """Copies with float64 for every float and complex128 for every complex number.

    Those that lie in the same memory do so again, at the same places. All are moved by `nudge`.
    Raises RuntimeError where such memory holds dtypes that do not grow alike.
    """
    import torch

    made: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for group in _overlapping([t.data for t in held]):
            parts = [held[i].data for i in group]
            if len(group) == 1 and not _may_overlap(parts[0]):
                new = [parts[0].clone().to(_wider(parts[0].dtype))]
                moved = new[0]
            else:
                moved, new = _together(parts)
            if nudge is not None:
                nudge.move(moved)
            made |= dict(zip(group, new, strict=True))
    return [made[i] for i in range(len(held))]


def _wider(dtype: torch.dtype) -> torch.dtype:
    import torch

    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def _range(tensor: torch.Tensor) -> tuple[str, int, int] | None:
    """Where its elements lie, first and last byte; None for what has no place of its own."""
    import torch

    if tensor.layout is not torch.strided or not tensor.numel() or tensor.is_quantized:
        return None
    try:
        start = tensor.data_ptr()
    except RuntimeError:  # a subclass without memory of its own
        return None
    return str(tensor.device), start, start + _span(tensor) * tensor.element_size()


def _span(tensor: torch.Tensor) -> int:
    return 1 + sum(int((n - 1) * s) for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def _may_overlap(tensor: torch.Tensor) -> bool:
    """Whether elements of it may lie at the same place as others of it."""
    return _range(tensor) is not None and _span(tensor) < tensor.numel()


def _overlapping(held: Sequence[torch.Tensor]) -> list[list[int]]:
    """The positions of those that lie in each other's memory, whatever storage they have it of."""
    ranges = [(_range(tensor), i) for i, tensor in enumerate(held)]
    groups = [[i] for place, i in ranges if place is None]
    device, end = "", 0
    for (where, first, last), i in sorted((r, i) for r, i in ranges if r is not None):
        if groups and where == device and first < end:
            groups[-1].append(i)
        else:
            groups.append([i])
            device, end = where, 0
        end = max(end, last)
    return groups


def _together(parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """One memory in float64, and the copies that lie in it as the tensors lie in theirs."""
    import torch

    ranges = [r for r in map(_range, parts) if r is not None]
    start, end = min(r[1] for r in ranges), max(r[2] for r in ranges)
    reals = {t.dtype.to_real() if t.is_complex() else t.dtype for t in parts}
    if len(reals) > 1:
        raise RuntimeError("memory that is read as several dtypes has no like in float64")
    (real,) = reals
    size = torch.empty(0, dtype=real).element_size()
    pairs = 2 if any(t.is_complex() for t in parts) else 1
    length = -(-(end - start) // size)
    whole = torch.zeros(length + length % pairs, dtype=_wider(real), device=parts[0].device)
    return whole, [_placed(t, whole, t.data_ptr() - start) for t in parts]


def _placed(tensor: torch.Tensor, whole: torch.Tensor, offset: int) -> torch.Tensor:
    """A copy that lies in `whole` at the place of `offset` bytes in the tensor's own dtype."""
    import torch

    place, rest = divmod(offset, tensor.element_size())
    if rest:
        raise RuntimeError("elements that lie across each other have no like in float64")
    new = torch.empty(0, dtype=_wider(tensor.dtype), device=whole.device)
    new.set_(whole.untyped_storage(), place, tensor.shape, tensor.stride())
    into, source = new, tensor
    for dim in reversed(range(tensor.dim())):
        if tensor.stride(dim) == 0 and tensor.shape[dim] > 1:
            into, source = into.select(dim, 0), source.select(dim, 0)
    into.copy_(source)
    return new
