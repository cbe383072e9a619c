"""Streams, events and waits on paper: they put work in order, and a count does not hang on it.

In compiled code they may keep Inductor from fusing across them, which is not followed here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from kernelcount.paper.scene import Scene

Told = Callable[[str], None]


def not_compiled(scene: Scene) -> Told:
    """A function that refuses what it is told of, where compiled code calls it.

    torch.compile takes its result for constant, so calls it itself while it traces.
    """
    why = "in compiled code: whether Inductor fuses across it is not known here"
    return _if_traced(lambda what: scene.refusals.setdefault(f"{what} {why}"))


def _if_traced(do: Callable[[str], object], otherwise: Callable[[str], object] = str) -> Told:
    """`do` is for compiled code, `otherwise` for all other."""
    import torch

    def found(what: str) -> None:
        traced = str(sys._getframe(1).f_globals.get("__name__", "")).startswith("torch._dynamo")
        (do if traced else otherwise)(what)

    constant: Told = torch.compiler.assume_constant_result(found)
    return constant


class Stream:
    """torch.cuda.Stream, on which nothing ever waits."""

    refused: ClassVar[Any]
    awaited: ClassVar[Any]
    event: ClassVar[Any]

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:  # noqa: ARG002
        self.refused("a stream")
        self.priority, self.stream_id, self.device_index, self.cuda_stream = priority, 0, 0, 0

    @property
    def device(self) -> Any:
        """The one card."""
        import torch

        return torch.device("cuda", 0)

    def query(self) -> bool:
        """Whether all is done: always."""
        self.refused("a stream")
        return True

    def record_event(self, event: Any = None) -> Any:
        """An event, as given or new."""
        self.refused("a stream")
        return self.event() if event is None else event

    def wait_stream(self, stream: Any) -> None:  # noqa: ARG002
        """Do nothing."""
        self.refused("a stream")

    def wait_event(self, event: Any) -> None:  # noqa: ARG002
        """Do nothing."""
        self.refused("a stream")

    def synchronize(self) -> None:
        """Do nothing, where the CPU would wait."""
        self.refused("a stream")
        self.awaited("Stream.synchronize")


class Event:
    """torch.cuda.Event, which is over at once."""

    refused: ClassVar[Any]
    awaited: ClassVar[Any]
    timed: ClassVar[Any]

    def __init__(self, *_: Any, **__: Any) -> None:
        self.refused("an event")

    def record(self, stream: Any = None) -> None:  # noqa: ARG002
        """Do nothing."""
        self.refused("an event")

    def wait(self, stream: Any = None) -> None:  # noqa: ARG002
        """Do nothing."""
        self.refused("an event")

    def query(self) -> bool:
        """Whether it is over: always."""
        self.refused("an event")
        return True

    def synchronize(self) -> None:
        """Do nothing, where the CPU would wait."""
        self.refused("an event")
        self.awaited("Event.synchronize")

    def elapsed_time(self, end: Any) -> float:  # noqa: ARG002
        """No number, for no time passes on paper; what hangs on it is left open."""
        self.timed()
        return math.nan


class On:
    """The context of a stream, which changes nothing."""

    refused: ClassVar[Any]

    def __init__(self, stream: Any) -> None:
        self.refused("a stream")
        self.stream = stream

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def waiting(scene: Scene) -> dict[str, Callable[..., None]]:
    """By name in torch: what waits for the whole device. See `adapter.waits_traced`."""

    def awaited(what: str) -> None:
        scene.note_wait("explicit", what)

    noted = _if_traced(str, awaited)

    def made(what: str) -> Callable[..., None]:
        def synchronize(device: Any = None) -> None:  # noqa: ARG001
            noted(what)

        synchronize.__qualname__ = synchronize.__name__
        return synchronize

    return {name: made(f"torch.{name}") for name in ("cuda.synchronize", "accelerator.synchronize")}


def standing_in(scene: Scene, refused: Told) -> dict[str, Any]:
    """By name in torch: streams and events. `refused`: `not_compiled` of the scene."""

    def awaited(what: str) -> None:
        scene.note_wait("explicit", what)

    def timed() -> None:
        scene.doubts.setdefault("what hangs on a time between events")

    def bound(kind: type, **more: Any) -> Any:
        told = {"refused": refused, "awaited": _if_traced(str, awaited), **more}
        return type(kind.__name__, (kind,), {k: staticmethod(v) for k, v in told.items()})

    event = bound(Event, timed=timed)
    stream, on = bound(Stream, event=event), bound(On)

    def current_stream(device: Any = None) -> Any:
        return stream(device)

    def set_stream(stream: Any) -> None:  # noqa: ARG001
        refused("a stream")

    return {
        "cuda.Stream": stream,
        "cuda.ExternalStream": stream,
        "cuda.Event": event,
        "cuda.stream": on,
        "cuda.set_stream": set_stream,
        "cuda.current_stream": current_stream,
        "cuda.default_stream": current_stream,
        "accelerator.current_stream": current_stream,
        "accelerator.set_stream": set_stream,
    }
