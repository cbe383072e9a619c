"""Real values behind tensors that have none, for code whose path depends on them.

A GPU tensor on paper is a shape without memory. Each op on one is written down as a step; where the
user's code asks for a value, the steps that it hangs on are done on the CPU, and no others: whether
a mask is all true is known without the model's matrix products. Memory is followed, not tensors, so
views and in-place changes need no care.
"""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakValueDictionary, finalize

from kernelcount.paper.adapter import name_of, unique_id
from kernelcount.paper.places import STAND_IN, is_on, refuse_layouts
from kernelcount.paper.steps import Memory, Place, Step, leaves, mapped, needed

LIMIT = 4 << 30
"""Bytes of values that are kept at most. A choice: a laptop has more, and a CPU computes on as much
in seconds; what needs more is left unmeasured."""

_FIRST_LOOK = 1024  # memories known before the dead are looked for; then whenever they have doubled

# They make memory of which nothing is known: zeros, so that a run can be repeated.
_ALLOCATES = ("empty", "new_empty")


class NoValue(BaseException):
    """A value that cannot be worked out. No `Exception`, so that no user's code goes on without."""


class Values:
    """What is known of the values of GPU tensors: steps that are yet to be done, and CPU memory.

    `asked`: the first op that asked for a value, None where none has. `doubtful`: ops on the way to
    a value that the CPU does not have; zeros stand for what they give. `stale`: why no value can be
    told any more, None where it can.
    """

    def __init__(self) -> None:
        self.asked: str | None = None
        self.doubtful: set[str] = set()
        self.stale: str | None = None
        self._seed, self._drawn = 0, 0
        self._count = self._bytes = self._seen = 0
        self._memories: dict[int, tuple[Any, Memory]] = {}
        self._host: WeakValueDictionary[int, Memory] = WeakValueDictionary()
        self._look_at = _FIRST_LOOK

    def begin(self) -> None:
        """What was asked so far is of another run."""
        self.asked, self.doubtful, self.stale = None, set(), None

    def seed(self, seed: int) -> None:
        """Begin the GPU's random numbers anew."""
        self._seed, self._drawn = seed, 0

    def follow(self, func: Any, args: Any, kwargs: Any, result: Any, changed: list[Any]) -> None:
        """Write down an op that was done on shapes. `changed`: the arguments that it writes."""
        if name_of(func)[1].startswith(_ALLOCATES):
            return
        given = {unique_id(t) for t in leaves((args, kwargs)) if is_on(t)}
        made = [t if is_on(t) and self._is_new(t, given) else None for t in leaves(result)]
        if changed or any(t is not None for t in made):
            step = self._step(func, args, kwargs, changed)
            step.makes([None if t is None else self._place(t) for t in made])

    def ask(self, func: Any, args: Any, kwargs: Any, changed: list[Any]) -> Any:
        """What an op gives that only values can give: a number, a CPU tensor, or a new shape."""
        if self.stale is not None:
            raise NoValue(self.stale)
        self.asked = self.asked or str(func)
        self.keep(changed)
        step = self._step(func, args, kwargs, changed)
        try:
            for before in needed(step):
                self._do(before)
            result = step.result(self._contents)
        finally:
            step.forget()
        refuse_layouts(leaves(result))
        if changed:
            return changed[0] if hasattr(result, "dtype") else result and type(result)(changed)
        # linspace of ends that are on the GPU makes its result where it is told to, or on the host.
        elsewhere = "cpu" if name_of(func)[1] in ("linspace", "logspace") else ""
        to_host = str(kwargs.get("device", elsewhere)).startswith("cpu")
        return result if to_host else mapped(result, self._on_gpu)

    def held_beyond(self, most: int) -> int:
        """Bytes that tensors hold on the GPU just now, as far as ops met them; 0 up to `most`."""
        if self._seen > most:  # with those that were freed since it was last looked
            self._forget(at_once=True)
            self._seen = sum(memory.size for _, memory in self._memories.values())
        return self._seen if self._seen > most else 0

    def keep(self, changed: list[Any]) -> None:
        """Tensors are about to be changed: what was copied from the host's was as they are now."""
        for tensor in changed if self._host else ():
            if not is_on(tensor) and (memory := self._host.pop(unique_id(tensor), None)):
                memory.part_from_host()

    def _step(self, func: Any, args: Any, kwargs: Any, changed: list[Any]) -> Step:
        self._count += 1
        step = Step(self._count, func, mapped(args, self._noted), mapped(kwargs, self._noted))
        if step.is_random():
            self._drawn += 1
            step.seed = hash((self._seed, self._drawn))
        step.changes([self._place(t).memory for t in changed if is_on(t)])
        return step

    def _noted(self, value: Any) -> Any:
        """An argument as a step keeps it: what it was then, also if it changes later."""
        import torch

        if isinstance(value, torch.Tensor):
            return self._place(value) if is_on(value) else self._host_place(value)
        if isinstance(value, torch.device) and value.type == STAND_IN:
            return torch.device("cpu")
        # A generator of the user's would be drawn from when nobody expects it.
        return None if isinstance(value, torch.Generator) else value

    def _is_new(self, tensor: Any, given: set[int]) -> bool:
        """Whether a result shares its memory with nothing that was there before."""
        key = unique_id(tensor)
        return key not in given and key not in self._memories

    def _place(self, tensor: Any) -> Place:
        from torch.multiprocessing.reductions import StorageWeakRef

        key = unique_id(tensor)
        if key not in self._memories:
            storage = tensor.untyped_storage()
            self._forget()
            # As long as there is a weak reference, no other storage gets this key.
            self._memories[key] = (StorageWeakRef(storage), Memory(storage.nbytes()))
            self._seen += storage.nbytes()
        return Place.of(tensor, self._memories[key][1])

    def _host_place(self, tensor: Any) -> Any:
        key = unique_id(tensor)
        if (memory := self._host.get(key)) is None:
            memory = self._host[key] = Memory.of_host(tensor.untyped_storage())
        return Place.of(tensor, memory)

    def _on_gpu(self, value: Any) -> Any:
        """A tensor on the stand-in, for one that was worked out."""
        import torch

        if not isinstance(value, torch.Tensor):
            return value
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=STAND_IN)
        self._put(self._place(made), value)
        return made

    def _do(self, step: Step) -> None:
        """Do a step, and have done with it."""
        import torch

        try:
            result = step.result(self._contents)
            found = [t if isinstance(t, torch.Tensor) else None for t in leaves(result)]
            for place, value in zip(step.made, found, strict=False):
                if place is not None and value is not None:
                    self._put(place, value)
        except Exception:  # noqa: BLE001  a user's own op may raise anything
            # What has no CPU kernel, such as a fused attention: zeros stand in, and a note says so.
            self.doubtful.add(str(step.func))
        step.forget()

    def _put(self, place: Place, value: Any) -> None:
        if value.numel() and value.device.type == "cpu":
            place.view(self._contents(place.memory)).copy_(value)

    def _contents(self, memory: Memory) -> Any:
        """The CPU memory behind a GPU's, made where there is none yet."""
        if memory.contents is None:
            if self._bytes + memory.size > LIMIT:
                self._forget(at_once=True)
                gc.collect()
            if self._bytes + memory.size > LIMIT:
                raise NoValue(
                    f"the path depends on values, and these are more than {LIMIT >> 30} GiB: "
                    "ask for a smaller --size"
                )
            memory.allocate()
            self._bytes += memory.size
            finalize(memory, self._freed, memory.size)
        return memory.contents

    def _freed(self, size: int) -> None:
        self._bytes -= size

    def _forget(self, *, at_once: bool = False) -> None:
        """Drop what is known of tensors that are gone."""
        if not at_once and len(self._memories) < self._look_at:
            return
        gone = [key for key, (reference, _) in self._memories.items() if reference.expired()]
        for key in gone:
            del self._memories[key]
        self._look_at = max(_FIRST_LOOK, 2 * len(self._memories))
