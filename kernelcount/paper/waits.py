"""Which ops make the CPU wait for the GPU, and at which line of the user's: told without either.

Paths are files of PyTorch below ``aten/src/ATen/native``. What a library waits for inside of its
calls is not known here.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from kernelcount.callers import is_ours, site
from kernelcount.model import Sync, SyncKind
from kernelcount.paper import rules
from kernelcount.paper.adapter import unique_id
from kernelcount.paper.places import device_of, is_on

# They find out how much there is before they can make room for it: cuda/Nonzero.cu, cuda/Unique.cu,
# cuda/SummaryOps.cu (bincount), Repeat.cpp (without its output_size).
_BY_NAME: dict[str, SyncKind] = {
    "nonzero": "nonzero",
    "masked_select": "mask",
    "equal": "bool",
    "_unique2": "inside an op",
    "unique_dim": "inside an op",
    "unique_consecutive": "inside an op",
    "bincount": "inside an op",
}
_INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")
# How Python tests a value, from 3.10 to 3.14; it calls for all else.
_TESTS = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT", "CONTAINS_OP")


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
    return [at(kind, _called(op, kind)) for kind in _kinds(op, pinned)]


def _called(op: rules.Op, kind: SyncKind) -> str:
    """The op as a trace has it: the outermost."""
    if op.name == "_local_scalar_dense":
        return "is_nonzero" if kind == "bool" else "item"
    return "to" if op.name == "_to_copy" else op.name


def at(kind: SyncKind, op: str) -> Sync:
    """A wait at the line of the user's that runs just now."""
    here = sys._getframe(1)
    place = site(here)
    if place is None:
        return Sync(kind, op=op, seen_by=("paper",))
    return Sync(kind, place.file, place.line, place.function, op, seen_by=("paper",))


def in_graph(name: str, wait: SyncKind | None) -> SyncKind | None:
    """The wait that a call in Inductor's code makes; `wait`: what the code itself says."""
    return wait or _BY_NAME.get(name.removeprefix("aten.").partition(".")[0])


def _kinds(op: rules.Op, pinned: Pinned) -> Iterator[SyncKind]:
    if op.name == "_local_scalar_dense":
        yield "bool" if _tests(sys._getframe()) else "item"
    elif op.name in rules.COPIES:
        yield from _copy(op, pinned)
    elif op.name in _INDEXED:
        yield from _index(op)
    elif op.name == "repeat_interleave" and op.kwargs.get("output_size") is None:
        yield "inside an op"
    elif op.name in _BY_NAME and any(t.numel() for t in op.read):
        yield _BY_NAME[op.name]


def _tests(frame: FrameType | None) -> bool:
    """Whether the innermost code that is not ours asks whether something is true."""
    while frame is not None and (is_ours(frame.f_code.co_filename) or _keeps_from_compiling(frame)):
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(_TESTS)


def _keeps_from_compiling(frame: FrameType) -> bool:
    """Whether it is Dynamo's frame round what is not to be compiled, such as our mode."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(("torch._dynamo", "torch._compile"))


def _copy(op: rules.Op, pinned: Pinned) -> Iterator[SyncKind]:
    """cuda/Copy.cu: between host and GPU it is waited for, unless that is asked not to be.

    What goes to the host then comes to pinned memory where it is made for that (TensorConversions).
    """
    source, target = rules.copied(op)
    if not target.numel() or is_on(source) == is_on(target):
        return
    at_once = rules.argument(op, 2 if op.name == "copy_" else 5, "non_blocking", False)
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
    given = [*op.args[1], op.args[2] if op.name != "index" else None]
    for tensor in given:
        if tensor is not None and device_of(tensor).type == "cpu":
            yield "pageable copy"
    for _ in range(masks):
        yield "mask"
