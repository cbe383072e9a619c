"""What ran: records of a device, and the rows that they are summed up in."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Activity = Literal["kernel", "copy", "fill", "aten", "generated"]
"""Device records are kernels, copies (memcpy) and fills (memset). Where no GPU was involved, the
records are CPU operations: ATen ops that do work, and kernels that Inductor generated."""

NO_TIME = -(1 << 63)
"""In a column of nanoseconds: the time is missing or invalid."""


@dataclass(frozen=True, slots=True)
class Note:
    """A warning as data. `code` is stable and documented; `detail` is one sentence."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Work:
    """What ran: identity and launch configuration of a record.

    `label` is the op that launched it, the outermost one where ops call each other, and `op` the
    innermost; None where that is not known. `between`: the ops between these two, from the outside
    in. `grid` and `block` are in blocks and threads,
    `shared_memory` in bytes, as are `read` and `written`: what one execution moves through GPU
    memory, modelled; None where that was not worked out. `flops`: the floating-point operations of
    a matrix product, a convolution or attention, made at `precision` (see `Paper`); else None.
    `at_most`: the bytes are all of what somebody's own kernel is given, of which it may leave out.
    `occupancy`, 0 to 1: the share of the warps that a multiprocessor can hold, as the profiler
    estimates it from the launch, or `reading` does where it has none.
    """

    name: str
    activity: Activity
    label: str | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    registers: int | None = None
    shared_memory: int | None = None
    op: str | None = None
    read: int | None = None
    written: int | None = None
    flops: int | None = None
    precision: str | None = None
    at_most: bool = False
    occupancy: float | None = None
    between: tuple[str, ...] = ()

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that it is in, from the outermost to the innermost, as far as they are known."""
        return tuple(op for op in (self.label, *self.between, self.op) if op is not None)

    @property
    def caption(self) -> str | None:
        """The op, or the own name of a kernel that needs no other: Triton's, a generated one's.

        None for a C++ kernel without an op, as in a graph replay: its name is no label.
        """
        if self.label is None and self.activity in ("kernel", "generated"):
            return self.name if self.name.isidentifier() else None
        return self.label


@dataclass(frozen=True, slots=True)
class Lane:
    """Where it ran. Stream 7 of device 0 is not stream 7 of device 1."""

    device: str
    stream: str


@dataclass(frozen=True, slots=True)
class Record:
    """One execution. Times are in nanoseconds; None: missing or invalid in the trace."""

    work: Work
    lane: Lane
    start_ns: int | None
    duration_ns: int | None


@dataclass(frozen=True, slots=True)
class Records:
    """Records in the order in which they started, kept in columns.

    A trace of a million kernels stays at some 30 bytes a record: `work` and `lane` index the
    tables `works` and `lanes`; `start_ns` and `duration_ns` hold `NO_TIME` where there is none.
    `call`: what is the same for records that one call of an op launched; empty: it is not known.
    """

    works: tuple[Work, ...] = ()
    lanes: tuple[Lane, ...] = ()
    work: array[int] = field(default_factory=lambda: array("i"))
    lane: array[int] = field(default_factory=lambda: array("i"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    duration_ns: array[int] = field(default_factory=lambda: array("q"))
    call: array[int] = field(default_factory=lambda: array("q"), compare=False)

    def __len__(self) -> int:
        return len(self.work)

    def __iter__(self) -> Iterator[Record]:
        for w, lane, start, duration in zip(
            self.work, self.lane, self.start_ns, self.duration_ns, strict=True
        ):
            yield Record(
                self.works[w],
                self.lanes[lane],
                None if start == NO_TIME else start,
                None if duration == NO_TIME else duration,
            )


@dataclass(frozen=True, slots=True)
class Row:
    """All records of one name and label (see `Work.caption`).

    `time_ns` is None where no record has a valid time; `read` and `written`, in bytes, where what
    one of them moves was not worked out, and `flops` where one has no formula. `at_most`: as in
    `Work`, of any of them.
    """

    name: str
    label: str | None
    activity: Activity
    count: int
    time_ns: int | None
    read: int | None = None
    written: int | None = None
    flops: int | None = None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class DeviceTally:
    """Kernels on one device and the sum of their durations, in nanoseconds."""

    kernels: int
    kernel_time_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """Kernels launched during one ``ProfilerStep#`` range, wherever they ran."""

    name: str
    kernels: int
    kernel_time_ns: int
