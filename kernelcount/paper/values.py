"""Real values behind tensors that have none, for code whose path depends on them.

A GPU tensor on paper is a shape without memory. Where the user's code asks for a value, the run is
repeated with values: every memory of a GPU tensor gets a CPU memory beside it, and every op is done
there too. Memory is matched, not tensors, so views and in-place changes need no care.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from kernelcount.errors import NotMeasuredError
from kernelcount.paper.adapter import unique_id

LIMIT = 4 << 30
"""Bytes of values that are kept at most. A choice: a laptop has more, and a CPU computes on as much
in seconds; what needs more is left unmeasured."""


class ValueNeeded(BaseException):
    """The user's code asks for a value where there are only shapes. `op` is what asked."""

    def __init__(self, op: str) -> None:
        super().__init__(op)
        self.op = op


class Values:
    """CPU memory beside the memory of GPU tensors.

    `active`: whether there is any; `asked`: the op for whose sake. `doubtful`: ops that the CPU
    cannot do; `lost`: a tensor was asked for its values of which nobody knows how it was made.
    `taping`: what runs is remembered, to be done once values are asked for,
    since a module is imported but once, in a process and not in a count.
    """

    _taped: ClassVar[list[tuple[str, Callable[[Values], Any], Any]]] = []
    _origins_taped: ClassVar[dict[int, tuple[Any, Any]]] = {}

    def __init__(self) -> None:
        self.active = False
        self.asked: str | None = None
        self.doubtful: set[str] = set()
        self.lost = False
        self.taping = False
        self._memory: dict[int, tuple[Any, Any]] = {}
        self._origins = dict(self._origins_taped)

    def remember(self, made: Any, origin: Any) -> None:
        """Keep the host tensor that a GPU tensor was copied from, in case its values are asked for.

        A module is moved once, before anybody knows whether its values matter.
        """
        self._origins[unique_id(made)] = (made.untyped_storage(), origin)
        if self.taping:
            self._origins_taped[unique_id(made)] = self._origins[unique_id(made)]

    def activated(self, op: str) -> Values:
        """Values that are kept from here on, since `op` asks for one.

        They begin with those of the host tensors that were copied, and with what was taped.
        """
        new = Values()
        new._origins = self._origins
        new.activate(op)
        return new

    def activate(self, op: str) -> None:
        """Keep values from here on, since `op` asks for one."""
        self.active, self.asked = True, op
        for name, call, written in self._taped:
            self.run(name, partial(call, self), written)

    @contextmanager
    def taped(self) -> Iterator[None]:
        """Remember what runs inside."""
        self.taping = True
        try:
            yield
        finally:
            self.taping = False

    def remember_op(self, name: str, call: Callable[[Values], Any], written: Any) -> None:
        """Tape an op: `call` does it on the values it is given."""
        self._taped.append((name, call, written))

    def of(self, tensor: Any, *, asked: bool = False) -> Any:
        """The CPU tensor that holds the values of a GPU tensor: the same memory for the same.

        `asked`: the values are needed, not only the place for them.
        """
        import torch

        key = unique_id(tensor)
        self.lost |= asked and key not in self._memory and key not in self._origins
        memory = self._beside(tensor)
        view = torch.empty(0, dtype=tensor.dtype, device="cpu")
        return view.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())

    def run(self, name: str, call: Callable[[], Any], written: Any) -> None:
        """Do an op on values. `written` are the GPU tensors that it made, in order."""
        import torch

        try:
            results = [t for t in leaves(call()) if isinstance(t, torch.Tensor)]
        except (RuntimeError, NotImplementedError):
            # What has no CPU kernel, such as a fused attention: zeros stand in, and a note says so.
            self.doubtful.add(name)
            results = []
        for made, value in zip(leaves(written), results, strict=False):
            self.give(made, value)

    def give(self, made: Any, value: Any) -> None:
        """Give a GPU tensor its values, unless it shares the memory of one that has them."""
        if made.numel() and unique_id(made) not in self._memory and value.device.type == "cpu":
            self.of(made).copy_(value)

    def _beside(self, tensor: Any) -> Any:
        import torch
        from torch.multiprocessing.reductions import StorageWeakRef

        key = unique_id(tensor)
        if key not in self._memory:
            storage = tensor.untyped_storage()
            self._forget()
            total = storage.nbytes() + sum(m.nbytes() for _, m in self._memory.values())
            if total > LIMIT:
                raise NotMeasuredError(
                    f"the path depends on values, and these are more than {LIMIT >> 30} GiB: "
                    "ask for a smaller --size"
                )
            host = torch.zeros(storage.nbytes(), dtype=torch.uint8, device="cpu")
            memory = host.untyped_storage()
            self._memory[key] = (StorageWeakRef(storage), memory)
            if key in self._origins:
                self.of(tensor).copy_(self._origins[key][1])
        return self._memory[key][1]

    def _forget(self) -> None:
        """Drop the memory of tensors that are gone: their keys may be given anew."""
        gone = [key for key, (ref, _) in self._memory.items() if ref.expired()]
        for key in gone:
            del self._memory[key]


def leaves(value: Any) -> Iterator[Any]:
    """The values in nested tuples, lists and dicts, in order."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nesting with every leaf changed."""
    if isinstance(value, tuple | list):
        items = [mapped(v, change) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: mapped(v, change) for k, v in value.items()}
    return change(value)
