"""Kineto's Chrome trace JSON, and what its older versions and other writers made of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernelcount.errors import UnreadableError
from kernelcount.traces.elements import Elements, Fault
from kernelcount.traces.source import Source


class Args(msgspec.Struct, frozen=True, gc=False):
    """The arguments of a device or host row that are used, in Kineto's order. Sizes are in bytes.

    `occupancy`, in percent, is Kineto's estimate from the launch and the GPU's properties.

    msgspec looks for a key first where it stands in this order.
    """

    external_id: int | None = msgspec.field(default=None, name="External id")
    device: int | None = None
    stream: int | str | None = None
    correlation: int | None = None
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared_memory: int | None = msgspec.field(default=None, name="shared memory")
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    graph_node: int | None = msgspec.field(default=None, name="graph node id")

    def completed(self, other: Args) -> Args:
        """These arguments, and of the other's those that are missing here."""
        known = {
            name: value
            for args in (other, self)
            for name in self.__struct_fields__
            if (value := getattr(args, name)) is not None
        }
        return Args(**known)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False, tag_field="cat", tag=""):
    """One row. `ts` and `dur` are in microseconds as the trace has them; None: not a number."""

    ph: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: Args = NO_ARGS


class Kernel(Event, gc=False, tag="kernel"):
    """A kernel on the device."""


class Copy(Event, gc=False, tag="gpu_memcpy"):
    """A memcpy on the device."""


class Fill(Event, gc=False, tag="gpu_memset"):
    """A memset on the device."""


class Runtime(Event, gc=False, tag="cuda_runtime"):
    """A call of the runtime's API on the host. ROCm's bear this category too."""


class Driver(Event, gc=False, tag="cuda_driver"):
    """A call of the driver's API on the host."""


class XpuRuntime(Runtime, gc=False, tag="xpu_runtime"):
    """A call of Intel's runtime on the host."""


class XpuDriver(Driver, gc=False, tag="xpu_driver"):
    """A call of Intel's driver on the host."""


class Op(Event, gc=False, tag="cpu_op"):
    """An operator on the host: an ATen op, an autograd node, a compiled region."""


class Annotation(Event, gc=False, tag="user_annotation"):
    """A range on the host that the user, the profiler or a framework named."""


_ROLES: tuple[type[Event], ...] = (
    Kernel, Copy, Fill, Runtime, Driver, XpuRuntime, XpuDriver, Op, Annotation,
)  # fmt: skip

# Categories that hold nothing to count. The names are those of Kineto's ActivityType, of
# torch/csrc/profiler and of the flow rows between them.
_PASSED_OVER = (
    "ac2g", "async_cpu_to_gpu", "fwdbwd", "python_function", "overhead", "gpu_user_annotation",
    "cuda_sync", "cuda_event", "cpu_instant_event", "external_correlation", "Trace",
    "cuda_profiler_range", "glow_runtime", "mtia_runtime", "mtia_ccp_events", "mtia_insight",
    "hpu_op", "collective_comm", "gpu_pm_counter", "privateuse1_runtime", "privateuse1_driver",
)  # fmt: skip


class Other(Event, gc=False, tag=""):
    """Half of a begin-end pair that is nothing to count, or whose category the other half has."""


# Such a row is decoded for its phase alone; a begin or an end is refused here, and `_convert` makes
# it an `Other`, so that begins and ends of one thread stay in step.
_Phase = Literal[
    "X", "s", "f", "t", "i", "I", "M", "C", "b", "n", "e", "N", "O", "D", "P", "S", "T", "p", "F"
]
_IGNORED: tuple[type[msgspec.Struct], ...] = tuple(
    msgspec.defstruct(f"_Ignored{i}", [("ph", _Phase, "X")], tag_field="cat", tag=name, gc=False)
    for i, name in enumerate(_PASSED_OVER)
)

# PyTorch 1.8 to 1.11 wrote capitalised categories without a vendor.
_OLD_SPELLINGS: dict[str, type[Event]] = {
    "Kernel": Kernel,
    "Memcpy": Copy,
    "Memset": Fill,
    "Runtime": Runtime,
    "Operator": Op,
}
_ROLE: dict[str, type[Event]] = {
    **{str(role.__struct_config__.tag): role for role in _ROLES},
    "concurrent_kernel": Kernel,
    "hip_runtime": Runtime,
}

_UNION: Any = None
for _type in (*_ROLES, *_IGNORED):
    _UNION = _type if _UNION is None else _UNION | _type
_DECODER: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[_UNION])

_EVENTS = "traceEvents"
_WANTED = frozenset({"deviceProperties"})


class KinetoTrace:
    """One trace, read once from start to end.

    Iterate over `batches`; afterwards `header` holds the document's other values, `faults` what is
    wrong with it, `strange` how many elements are no events, `old` how many rows of each role bear
    a category as PyTorch spelt it before 1.12, and `legacy` how many rows are of the old autograd
    profiler's making, which did not tell kernels from ops.
    """

    def __init__(self, path: Path, source: Source | None = None) -> None:
        self.path = path
        self.strange = self.legacy = 0
        self.old: Counter[type[Event]] = Counter()
        self._source = source or Source(path)
        self._elements = Elements(
            self._source.blocks(), _EVENTS, _DECODER.decode, self._convert, _WANTED
        )

    def batches(self) -> Iterator[list[Event]]:
        """Yield the rows that matter or are passed over; ask `type(row)` which it is.

        Raises UnreadableError where the file holds no list of events at all.
        """
        yield from self._elements.batches()
        if not self._elements.found:
            faults = "; ".join(f.detail for f in self.faults)
            raise UnreadableError(
                f"{self.path}: no {_EVENTS} in it"
                + (f": {faults}" if faults else "; it is JSON, but not a trace")
            )

    @property
    def header(self) -> dict[str, Any]:
        """Top-level values other than the events."""
        return self._elements.header

    @property
    def faults(self) -> list[Fault]:
        """What is wrong with the document, its compression and its encoding included."""
        faults = list(self._elements.faults)
        if self._source.replaced:
            faults.append(Fault("not-utf8", "some bytes are no text: they were replaced", False))
        if self._source.cut_short is None:
            return faults
        cut = Fault("truncated", self._source.cut_short, fatal=True)
        return [*(f for f in faults if f.code != "truncated"), cut]

    def _convert(self, row: Any) -> Event | None:
        """An element that is not as Kineto writes it, or None where it is nothing to count."""
        if not isinstance(row, dict):
            self.strange += 1
            return None
        if row.get("pid") == "CUDA functions":
            self.legacy += 1
        event = _event(row)
        category = row.get("cat")
        if event is not None and isinstance(category, str) and category in _OLD_SPELLINGS:
            self.old[type(event)] += 1
        return event


def device_rows(source: Source) -> Iterator[tuple[Event, str]]:
    """The kernels, copies and fills of a trace, each with all of its fields in one text.

    Rows are alike in every field where these texts are alike.
    """
    whole: Elements[Any] = Elements(source.blocks(), _EVENTS, msgspec.json.decode, lambda e: e)
    for batch in whole.batches():
        for row in batch:
            event = _event(row) if isinstance(row, dict) else None
            if isinstance(event, Kernel | Copy | Fill):
                yield event, json.dumps(row, sort_keys=True)


def _event(row: dict[str, Any]) -> Event | None:
    category = row.get("cat")
    role = None
    if isinstance(category, str):
        role = _ROLE.get(category) or _OLD_SPELLINGS.get(category)
    if role is None:
        if row.get("ph") not in ("B", "E"):
            return None
        role = Other
    args = row.get("args")
    return role(
        ph=_text(row.get("ph")),
        name=_text(row.get("name")),
        pid=_place(row.get("pid")),
        tid=_place(row.get("tid")),
        ts=_number(row.get("ts")),
        dur=_number(row.get("dur")),
        args=_args(args) if isinstance(args, dict) else NO_ARGS,
    )


def _args(args: dict[str, Any]) -> Args:
    return Args(
        correlation=_integer(args.get("correlation")),
        device=_integer(args.get("device")),
        stream=_place(args.get("stream")),
        external_id=_integer(args.get("External id", args.get("external id"))),
        grid=_integers(args.get("grid")),
        block=_integers(args.get("block")),
        occupancy=_number(args.get("est. achieved occupancy %")),
        registers=_integer(args.get("registers per thread")),
        shared_memory=_integer(args.get("shared memory")),
        graph_node=_integer(args.get("graph node id")),
    )


def _text(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _place(value: Any) -> int | str | None:
    if isinstance(value, str):
        return _text(value)
    return _integer(value)


def _number(value: Any) -> float | None:
    """A finite number, also where it is written as text; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _integer(value: Any) -> int | None:
    """A whole number, also where it is written as text or with a decimal point."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _integers(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    numbers = tuple(n for n in map(_integer, value) if n is not None)
    return numbers if len(numbers) == len(value) else None
