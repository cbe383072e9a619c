"""Ops that are written down to be done later, in whatever part a value hangs on.

A step reads and writes memories. Done out of turn, it must find in each what it would have found in
turn: what wrote there before it comes before it, and so does what is yet to read what it writes
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import ref

from kernelcount.paper.adapter import negated

Contents = Callable[["Memory"], Any]
"""Gives the CPU memory that stands behind a GPU's."""


class Memory:
    """What lies under tensors: its `size` in bytes, and once it is known what it holds.

    `writers` and `readers` are steps that are yet to be done, in the order in which they came.
    """

    __slots__ = ("__weakref__", "contents", "readers", "size", "writers")

    def __init__(self, size: int) -> None:
        self.size = size
        self.contents: Any = None
        self.writers: list[Step] = []
        self.readers: list[ref[Step]] = []

    @classmethod
    def of_host(cls, storage: Any) -> Memory:
        """Memory of the host's, which is there already and is shared."""
        memory = cls(storage.nbytes())
        memory.contents = storage
        return memory

    def allocate(self) -> None:
        """Have contents: zeros, until a step writes something else."""
        import torch

        self.contents = torch.zeros(self.size, dtype=torch.uint8, device="cpu").untyped_storage()

    def part_from_host(self) -> None:
        """Have contents of its own, which stay when the host's change."""
        self.contents = self.contents.clone()


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor's place in memory, for as long as the tensor itself may be gone or changed."""

    memory: Memory
    dtype: Any
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    conjugate: bool
    negative: bool

    @classmethod
    def of(cls, tensor: Any, memory: Memory) -> Place:
        """The place of a tensor that lies in `memory`."""
        return cls(
            memory, tensor.dtype, tensor.storage_offset(), tuple(tensor.size()),
            tuple(tensor.stride()), tensor.is_conj(), tensor.is_neg(),
        )  # fmt: skip

    def view(self, contents: Any) -> Any:
        """A CPU tensor that shows this place."""
        import torch

        view = torch.empty(0, dtype=self.dtype, device="cpu")
        pairs = zip(self.size, self.stride, strict=True)
        last = 0 if 0 in self.size else self.offset + sum((n - 1) * s for n, s in pairs) + 1
        if contents.nbytes() < last * view.element_size():  # grown since, as by ``resize_``
            contents.resize_(last * view.element_size())
        view.set_(contents, self.offset, self.size, self.stride)
        view = view.conj() if self.conjugate else view
        return negated(view) if self.negative else view


class Step:
    """An op with places in the place of its tensors. `number` counts steps as they came.

    `made`: where its results go, None for one that is not needed. `seed`: for random numbers.
    """

    __slots__ = ("__weakref__", "_changed", "_read", "args", "func", "kwargs", "made", "number",
                 "seed")  # fmt: skip

    def __init__(self, number: int, func: Any, args: Any, kwargs: Any) -> None:
        self.number, self.func, self.args, self.kwargs = number, func, args, kwargs
        self.made: list[Place | None] = []
        self.seed: int | None = None
        self._changed: list[Memory] = []
        self._read = [p.memory for p in leaves((args, kwargs)) if isinstance(p, Place)]
        for memory in self._read:
            memory.readers.append(ref(self))

    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        import torch

        # Inductor's own bear no tag.
        inductors = self.func.name().startswith("prims::inductor_")
        return inductors or torch.Tag.nondeterministic_seeded in self.func.tags

    def changes(self, memories: list[Memory]) -> None:
        """It writes into memories that are there."""
        self._changed += memories
        for memory in memories:
            memory.writers.append(self)

    def makes(self, places: list[Place | None]) -> None:
        """It fills memory of its own."""
        self.made = places
        self.changes([p.memory for p in places if p is not None])

    def result(self, contents: Contents) -> Any:
        """What the op gives on the CPU; what it changes is changed. Raises what the op raises."""

        def shown(value: Any) -> Any:
            return value.view(contents(value.memory)) if isinstance(value, Place) else value

        args, kwargs = mapped(self.args, shown), mapped(self.kwargs, shown)
        if self.seed is None:
            return self.func(*args, **kwargs)
        return _drawn(self.seed, lambda: self.func(*args, **kwargs))

    def forget(self) -> None:
        """It is done: let go of what it held."""
        for memory in self._changed:
            if self in memory.writers:
                memory.writers.remove(self)
        for memory in self._read:
            memory.readers = [r for r in memory.readers if r() not in (None, self)]
        self.args, self.kwargs, self.made = (), {}, []
        self._changed, self._read = [], []

    def before(self) -> Iterator[Step]:
        """The steps that must be done before this one, as far as they are next to it."""
        for memory in (*self._read, *self._changed):
            yield from (s for s in memory.writers if s.number < self.number)
        for memory in self._changed:
            for reader in memory.readers:
                step = reader()
                if step is not None and step.number < self.number:
                    yield step


def needed(step: Step) -> list[Step]:
    """All the steps that must be done before this one, in order."""
    found = {step.number: step}
    waiting = [step]
    while waiting:
        for other in waiting.pop().before():
            if other.number not in found:
                found[other.number] = other
                waiting.append(other)
    del found[step.number]
    return [found[number] for number in sorted(found)]


def _drawn(seed: int, call: Callable[[], Any]) -> Any:
    """What `call` gives with random numbers from `seed`; the user's own go on as if nothing was."""
    import torch

    generator = torch.default_generator
    state = generator.get_state()
    generator.manual_seed(seed)
    try:
        return call()
    finally:
        generator.set_state(state)


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
