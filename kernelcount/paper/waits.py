"""Which ops make the CPU wait for the GPU, and at which line of the user's: told without either.

Paths are files of PyTorch below ``aten/src/ATen/native``. What a library waits for inside of its
calls is not known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

from kernelcount.model import Sync, SyncKind
from kernelcount.origins.callers import is_users, site
from kernelcount.paper import adapter, reads, rules
from kernelcount.paper.adapter import unique_id
from kernelcount.paper.places import is_on

_INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")


class Pinned:
    """Host memory that is pinned, as far as the user asked for it: on paper none really is."""

    def __init__(self) -> None:
        self._memories: dict[int, Any] = {}

    def note(self, tensor: Any) -> None:
        """Take the memory of this tensor for pinned."""
        from torch.multiprocessing.reductions import StorageWeakRef

        # As long as there is a weak reference, no other storage gets this key.
        self._memories[unique_id(tensor)] = StorageWeakRef(tensor.untyped_storage())

    def __contains__(self, tensor: Any) -> bool:
        return bool(self._memories) and unique_id(tensor) in self._memories


def waits(op: rules.Op, pinned: Pinned) -> list[Sync]:
    """The waits that one op makes when it is called where this is called from."""
    found = [at(kind, name) for kind, name in _found(op, pinned)]
    return [replace(w, constant=True) for w in found] if found and _of_numbers() else found


def is_nonzero(tensor: Any) -> Any:
    """The op that Python asks whether a tensor is true, be it ``if t``, ``bool(t)`` or ``max(t)``.

    That it was asked is told by its frame, when the value is read in it.
    """
    import torch

    return adapter.decomposed(torch.ops.aten.is_nonzero.default, (tensor,), {})


def of_numbers(call: Callable[[], Any]) -> Any:
    """Make a call that copies numbers of the user's code to the GPU, and no tensor of the user's.

    That it is so is told by this frame.
    """
    return call()


def _of_numbers() -> bool:
    return _is_within(sys._getframe(), of_numbers)


def at(kind: SyncKind, op: str) -> Sync:
    """A wait at the line of the user's that runs just now."""
    here = sys._getframe(1)
    place = site(here)
    if place is None:
        return Sync(kind, op=op, seen_by=("paper",))
    return Sync(kind, place.file, place.line, place.function, op, seen_by=("paper",))


def _found(op: rules.Op, pinned: Pinned) -> Iterator[tuple[SyncKind, str]]:
    """The kind of each wait, and the op as a trace has it: the outermost."""
    if op.name == "_local_scalar_dense":
        tested = _is_within(sys._getframe(), is_nonzero)
        yield ("bool", "is_nonzero") if tested else ("item", "item")
    elif op.name in rules.COPIES:
        name = "to" if op.name == "_to_copy" else op.name
        yield from ((kind, name) for kind in _copy(op, pinned))
    else:
        yield from inside(op)


def inside(op: rules.Op) -> Iterator[tuple[SyncKind, str]]:
    """The waits inside of an op that copies nothing between host and GPU and reads no value."""
    if op.name in _INDEXED:
        yield from ((kind, op.name) for kind in _index(op))
    else:
        yield from reads.found(op)


def _is_within(frame: FrameType | None, function: Callable[..., Any]) -> bool:
    """Whether a function of ours is being called by the user's line that runs just now."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


def _copy(op: rules.Op, pinned: Pinned) -> Iterator[SyncKind]:
    """cuda/Copy.cu: between host and GPU it is waited for, unless that is asked not to be.

    What goes to the host then comes to pinned memory where it is made for that (TensorConversions).
    """
    source, target = rules.copied(op)
    if not target.numel() or is_on(source) == is_on(target):
        return
    at_once = rules.is_non_blocking(op)
    if is_on(source):
        if not at_once or (op.name == "copy_" and target not in pinned):
            yield "copy to host"
    elif not at_once:
        yield "copy to device" if source in pinned else "pageable copy"


def _index(op: rules.Op) -> Iterator[SyncKind]:
    """A search for the true elements of each mask; and what comes from the host is copied first."""
    masks = rules.mask_count(op.args[1])
    if rules.is_masked_fill(op, masks):
        return
    for _ in range(rules.indexed_from_host(op)):
        yield "pageable copy"
    for _ in range(masks):
        yield "mask"
