"""One tensor, or the gradient of one, with a copy of what it was."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kernelcount.memory import available

if TYPE_CHECKING:
    import torch

_SHARE = 4  # copies take a quarter of the free memory at most: the call needs the rest


class Room:
    """How much memory the copies may take, on each device."""

    def __init__(self, without: Collection[int] = ()) -> None:
        self._left: dict[str, int] = {}
        self._without = without

    def take(self, tensor: torch.Tensor, *, also_in_main_memory: bool) -> str | None:
        """The device for a copy: the tensor's own, else main memory, else None: no room."""
        import torch

        if id(tensor) in self._without:
            return None
        own = str(tensor.device)
        for device in (own, "cpu") if also_in_main_memory and own != "cpu" else (own,):
            if device not in self._left:
                api = getattr(torch, torch.device(device).type, None)
                measure = getattr(api, "mem_get_info", None)
                free = available() if measure is None else measure(device)[0]
                self._left[device] = int(free) // _SHARE
            if tensor.nbytes <= self._left[device]:
                self._left[device] -= tensor.nbytes
                return device
        return None


class Kept:
    """One tensor with a copy of its contents, and the storage and strides that it had."""

    def __init__(
        self, tensor: torch.Tensor, room: Room, *, also_in_main_memory: bool = False
    ) -> None:
        self.tensor = self._tensor = tensor
        self.was_changed = self.lost = self._unseen = False
        self._was_leaf, self._requires_grad = tensor.is_leaf, tensor.requires_grad
        self._copy = _clone(tensor, room, also_in_main_memory)
        self._storage = tensor.untyped_storage() if self._copy is not None else None
        self._layout = _layout(tensor)
        self._version = _version(tensor)

    def restore(self) -> None:
        """Put contents, storage and strides back where they have changed."""
        try:
            self._restore()
        except RuntimeError:  # no memory, a device that has failed, a view that cannot be detached
            self.lost = True

    @property
    def is_changed(self) -> bool:
        """Whether a call has changed it, or may have."""
        return self.was_changed or self._is_changed() or self._is_moved()

    def overlook(self) -> None:
        """Take it as it is now for what it was."""
        self._layout, self._version = _layout(self._tensor), _version(self._tensor)

    def compare(self) -> None:
        """Look whether the contents have changed although the version has not."""
        if self._unseen or self._copy is None or self._version is None:
            return
        same = _version(self._tensor) == self._version and not self._is_moved()
        if same and self._differs():
            self._unseen = self.was_changed = True

    def forget_if_unchanged(self) -> None:
        """Free the copy where no call has changed the tensor."""
        self.compare()
        if not self.is_changed:
            self._copy = self._storage = None

    def _restore(self) -> None:
        import torch

        tensor = self._tensor
        if self._was_leaf and not tensor.is_leaf:
            tensor.detach_()  # or the graph would grow from call to call
        if tensor.is_leaf and tensor.requires_grad != self._requires_grad:
            tensor.requires_grad_(self._requires_grad)
        moved = self._is_moved()
        if not moved and not self._is_changed():
            return
        self.was_changed = True
        if self._copy is None or self._storage is None:
            self.lost = True
        else:
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                if moved:
                    self._move_back(self._storage)
                tensor.copy_(self._copy)
        self._layout, self._version = _layout(tensor), _version(tensor)

    def _is_moved(self) -> bool:
        return _layout(self._tensor) != self._layout

    def _is_changed(self) -> bool:
        if self._version is None:  # an inference tensor does not count its versions
            return self._copy is not None and self._differs()
        return self._unseen or _version(self._tensor) != self._version

    def _differs(self) -> bool:
        """Whether the contents are others than at first, as far as can be told; NaN equals NaN."""
        import torch

        assert self._copy is not None
        try:
            now, then = self._tensor.detach(), self._copy.to(self._tensor.device)
            if torch.equal(now, then):
                return False
            return not bool(((now == then) | (now.isnan() & then.isnan())).all())
        except RuntimeError:  # no memory for it, or a dtype that knows no comparison
            return False

    def _move_back(self, storage: torch.UntypedStorage) -> None:
        """Have the tensor show the storage again that it showed at first."""
        import torch

        tensor = self._tensor
        offset, size, stride, dtype = self._layout[1:]
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        if 0 not in size and storage.nbytes() < (last + 1) * dtype.itemsize:
            storage.resize_((last + 1) * dtype.itemsize)
        empty = torch.empty(0, dtype=dtype, device=storage.device)
        tensor.data = empty.set_(storage, offset, size, stride)


class Gradient:
    """The ``.grad`` of a leaf."""

    def __init__(self, leaf: torch.Tensor, room: Room) -> None:
        self.leaf = self._leaf = leaf
        self._gradient, self._was_another = leaf.grad, False
        self._kept = None if leaf.grad is None else Kept(leaf.grad, room)

    @property
    def is_changed(self) -> bool:
        """Whether a call has changed it, or put another in its place."""
        another = self._was_another or self._leaf.grad is not self._gradient
        return another or (self._kept is not None and self._kept.is_changed)

    def clear(self) -> None:
        """Have none."""
        self._leaf.grad = None

    def restore(self) -> None:
        """Have the one it had, with the contents it had."""
        if self._kept is not None:
            self._kept.restore()
        if self._leaf.is_leaf and self._leaf.grad is not self._gradient:
            self._leaf.grad = self._gradient
            self._was_another = True


def _version(tensor: torch.Tensor) -> int | None:
    """How often it was changed in place; None for an inference tensor, which does not count."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return None


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Where it lies and how: address of the storage, offset, size, strides, dtype; or nothing."""
    try:
        place = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
        return (*place, tuple(tensor.size()), tuple(tensor.stride()), tensor.dtype)
    except (RuntimeError, TypeError):  # sparse, nested, a subclass without any
        return ()


def _clone(tensor: torch.Tensor, room: Room, also_in_main_memory: bool) -> torch.Tensor | None:
    """A copy with the same strides; None where there is none to be had (memory, meta, sparse)."""
    import torch

    if tensor.device.type == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    try:
        device = room.take(tensor, also_in_main_memory=also_in_main_memory)
        if device is None:
            return None
        with torch.no_grad():
            empty = torch.empty_strided(
                tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device
            )
            return empty.copy_(tensor)
    except (RuntimeError, TypeError):  # elements that share a place: never written in place
        return None
