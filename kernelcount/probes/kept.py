"""What a call gave and changed, in copies that no later call can change."""

from __future__ import annotations

import enum
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kernelcount.memory import is_out_of_memory
from kernelcount.nesting import form, parts, tensors

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Results:
    """What a call gave and changed.

    `names` says of each tensor what it is: a result, or an argument afterwards; `kinds` what is
    to be told of it beside its numbers. `numbers`: Python's own among what it gave, and `others`
    what else there is, the keys of mappings included. `shared`: which of the tensors that it gave
    lie in the memory of an argument; `alike`: in that of another result. `consumed`: it gave an
    iterator, which was followed to its end without keeping anything. `beside`: gradients of
    parameters, and what became of these and of buffers, by what tells them from the rest, with
    their names; None for a gradient that there is not.
    """

    tensors: tuple[torch.Tensor, ...]
    numbers: tuple[complex, ...] = ()
    shared: tuple[int, ...] = ()
    others: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    consumed: bool = False
    kinds: tuple[str, ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    beside: dict[Any, tuple[str, torch.Tensor | None]] = field(default_factory=dict)
    form: Any = None

    def name(self, position: int) -> str:
        """What the tensor at `position` is called where something is said of it."""
        if position < len(self.names):
            return self.names[position]
        return f"result {position + 1}" if len(self.tensors) > 1 else "the result"

    def kind(self, position: int) -> str:
        """What kind of tensor the one at `position` was."""
        return self.kinds[position] if position < len(self.kinds) else ""

    def joined(self, keys: Iterable[Any]) -> Results:
        """The same with some of what is `beside` among the tensors, and whether each is there."""
        found = [self.beside[key] for key in keys]
        there = [(name, tensor) for name, tensor in found if tensor is not None]
        return replace(
            self,
            tensors=(*self.tensors, *(tensor for _, tensor in there)),
            names=(*map(self.name, range(len(self.tensors))), *(name for name, _ in there)),
            others=(*self.others, *(n if t is not None else f"no {n}" for n, t in found)),
            beside={},
        )

    def only(self, some: Sequence[int], numbers: Sequence[int], others: Sequence[int]) -> Results:
        """The same without the rest: positions of tensors, numbers and other values."""
        new = {old: i for i, old in enumerate(some)}
        return replace(
            self,
            tensors=tuple(self.tensors[i] for i in some),
            numbers=tuple(self.numbers[i] for i in numbers),
            others=tuple(self.others[i] for i in others),
            names=tuple(self.name(i) for i in some),
            kinds=tuple(self.kind(i) for i in some),
            shared=tuple(new[i] for i in self.shared if i in new),
            alike=tuple((new[i], new[j]) for i, j in self.alike if i in new and j in new),
        )


def kept(
    result: Any,
    given: Any,
    changed: Iterable[tuple[str, Any]] = (),
    beside: dict[Any, tuple[str, torch.Tensor | None]] | None = None,
) -> Results:
    """What a call gave, being `given` its arguments, and what it has `changed`.

    That comes with what it is called. `beside`: what it has changed of what it reaches without
    being given it, by what tells it from the rest.
    """
    import torch

    found = [leaf for part in parts(result) for leaf in _plainly(part)]
    gave = [leaf for leaf in found if isinstance(leaf, torch.Tensor)]
    rest = [leaf for leaf in found if not isinstance(leaf, torch.Tensor)]
    names = [f"result {i + 1}" for i in range(len(gave))] if len(gave) > 1 else ["the result"]
    after = [(name, leaf) for name, part in changed for leaf in _plainly(part)]
    more = [(name, leaf) for name, leaf in after if isinstance(leaf, torch.Tensor)]
    rest += [leaf for _, leaf in after if not isinstance(leaf, torch.Tensor)]
    theirs = {_place(t) for t in tensors(given)} - {None}
    places = [_place(t) for t in gave]
    return Results(
        tuple(map(_copy, [*gave, *(tensor for _, tensor in more)])),
        tuple(n for n in rest if _is_number(n)),
        tuple(i for i, place in enumerate(places) if place in theirs),
        tuple(_snapshot(n) for n in rest if not _is_number(n) and not _is_consumed(n)),
        (*names[: len(gave)], *(name for name, _ in more)),
        consumed=any(map(_is_consumed, rest)),
        form=form(result),
        kinds=tuple(map(_kind, gave)),
        alike=tuple(_alike(places)),
        beside={
            key: (name, None if tensor is None else _copy(tensor))
            for key, (name, tensor) in (beside or {}).items()
        },
    )


def _alike(places: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """The first of those that lie in one place, and each of the others."""
    for i, place in enumerate(places):
        if place is not None and (first := places.index(place)) < i:
            yield first, i


def _plainly(leaf: Any) -> Iterator[Any]:
    """The tensors that a leaf is made of, or itself: NumPy's arrays, nested tensors."""
    import torch

    if isinstance(leaf, torch.Tensor):
        for tensor in leaf.unbind() if leaf.is_nested else (leaf,):
            yield from _unquantized(tensor) if tensor.is_quantized else (tensor,)
        return
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(leaf, numpy.ndarray):
        yield leaf
        return
    yield "an array of NumPy"  # which a tensor is not
    if isinstance(leaf, numpy.ma.MaskedArray):  # what is behind the mask does not count
        yield from _of_array(numpy.ma.getmaskarray(leaf))
        leaf = numpy.asarray(leaf.filled(numpy.zeros((), leaf.dtype)[()]))
    yield from _of_array(leaf)


def _of_array(array: Any) -> Iterator[Any]:
    """A tensor where torch has its dtype; else its shape, its dtype, and what it holds."""
    import torch

    if array.dtype.kind in "biufc":
        try:
            yield torch.from_numpy(array.copy())
        except TypeError:  # of a dtype that torch has not
            yield array.tolist()
        return
    yield array.shape
    yield str(array.dtype)
    if array.dtype.kind != "O":
        yield array.tolist()
        return
    for item in array.ravel():
        for part in parts(item):
            yield from _plainly(part)


def _unquantized(tensor: torch.Tensor) -> Iterator[Any]:
    """The integers of a quantized tensor, and what they stand for."""
    import torch

    yield str(tensor.qscheme())
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        yield from (tensor.q_scale(), tensor.q_zero_point())
    else:
        yield tensor.q_per_channel_axis()
        yield from (tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points())
    yield tensor.int_repr()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool | enum.Enum)


def _is_consumed(value: Any) -> bool:
    return isinstance(value, deque) and value.maxlen == 0


def _snapshot(value: Any) -> Any:
    """What a later call may change, as it is now."""
    return bytearray(value) if isinstance(value, bytearray) else value


def _place(tensor: torch.Tensor) -> int | None:
    """Where its memory is; None for what has none of its own, such as a sparse tensor."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):
        return None


def _kind(tensor: torch.Tensor) -> str:
    """What is told of a tensor beside its numbers: class, layout, whether it asks for gradients."""
    layout = str(tensor.layout).removeprefix("torch.")
    wants = " that requires grad" if tensor.requires_grad else ""
    return f"{type(tensor).__name__}{'' if layout == 'strided' else f' ({layout})'}{wants}"


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, with the same strides as far as each has a place of its own."""
    import torch

    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor.to_dense().clone()
    shape = tensor.shape
    for dim, step in enumerate(tensor.stride()):
        if step == 0 and shape[dim] > 1:  # it is expanded
            tensor = tensor.narrow(dim, 0, 1)
    return _copy_of_own(tensor).expand(shape)


def _copy_of_own(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    copy = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    try:
        return copy.copy_(tensor)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        return tensor.clone()  # of elements that share a place, as those of sliding windows do
