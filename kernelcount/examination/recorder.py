"""Record an atlas: how many kernels and copies each call of a library op launches on a GPU.

Many calls share a profile, each under an annotation of its own, and what each launched is read off
the trace as for any other call. Every call is made twice, with other values: only what agrees is
kept, and a class of shape only where all that was recorded of it agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelcount.devices.base import Device
from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError
from kernelcount.examination.cases import Case, all_cases
from kernelcount.examination.checks import multiprocessors
from kernelcount.model import Capture
from kernelcount.paper import adapter, atlas, classes, rules
from kernelcount.paper.atlas import Atlas, Entry
from kernelcount.paper.mode import op_of
from kernelcount.paper.places import STAND_IN
from kernelcount.reading import read_file

_BATCH = 16
"""Cases in one profile. Reading one call's count costs as much as the whole trace, so that long
traces cost more than starting the profiler again: 6 ms a case at 24, 3 ms at 8 to 12."""

_CALLS = 2  # profiled calls of each case, which must agree

_LINE = 32  # calls in one entry, which is a line of the file: more cannot be read

Count = tuple[int, int]
"""Kernels and copies of one call."""

Annotate = Callable[[str], AbstractContextManager[Any]]


@dataclass
class _Ready:
    """A case whose arguments are made, and the op as paper will meet it."""

    case: Case
    op: rules.Op
    given: list[Sequence[Any]]
    failed: bool = False
    counts: set[Count] = field(default_factory=set)


@dataclass(frozen=True)
class Measured:
    """What one call launched, and by what it is found again."""

    op: str
    dtype: str
    parameters: str
    call: str
    count: Count
    klass: classes.Class | None
    measures: tuple[int, ...] | None


def record(
    device: Device,
    name: str,
    scratch: Path,
    progress: Callable[[str], None],
    wanted: Iterable[Case] | None = None,
    annotate: Annotate | None = None,
) -> Atlas:
    """Record every case on a device that torch calls `name`; what cannot be run is left out.

    `annotate` opens an annotation of the profiler, torch's own by default. Raises NotMeasuredError
    where nothing could be recorded, or where torch was told to choose kernels in another way.
    """
    import torch

    if not atlas.as_by_default():
        raise NotMeasuredError(
            "an atlas holds for torch as it is by default, and here the precision of matrix "
            "products, cuDNN or determinism is set otherwise"
        )
    annotate = annotate or torch.profiler.record_function
    cases = list(wanted if wanted is not None else all_cases())
    measured: list[Measured] = []
    with torch.no_grad(), device.prepare():
        for first in range(0, len(cases), _BATCH):
            batch = cases[first : first + _BATCH]
            progress(f"recording {batch[0].op} ({first} of {len(cases)} calls)")
            ready = [r for case in batch if (r := _ready(case, name)) is not None]
            measured += _profiled(ready, device, scratch / "trace.json", annotate)
            del ready  # or the next arguments are made beside these
    if not measured:
        raise NotMeasuredError("none of the ops could be recorded on this device")
    where = device.environment()
    card = atlas.card_called(where.device or "", multiprocessors(device, name))
    return Atlas(card, where.torch or "", torch.version.cuda, tuple(entries(measured)))


def _ready(case: Case, name: str) -> _Ready | None:
    """Make a case's arguments and call it once; None where it cannot be run or is not one op."""
    # What the device or the op cannot do raises one of these; a case more or less is no matter.
    with suppress(RuntimeError, NotImplementedError, IndexError, KernelcountError):
        given = [case.prepare(name) for _ in range(_CALLS)]
        case.call(*given[0])
        op = _seen(case, STAND_IN) or _seen(case, name)
        return _Ready(case, op, given) if op is not None else None
    return None


def _seen(case: Case, name: str) -> rules.Op | None:
    """The call as the rules of paper see it on a torch device; None where it is not one op."""
    seen: list[rules.Op] = []

    class Watch(adapter.dispatch_mode()):  # type: ignore[misc]
        """Keeps the ops."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            results = result if isinstance(result, tuple | list) else [result]
            written = [t for t in results if hasattr(t, "dtype")]
            seen.append(op_of(func, args, kwargs or {}, written))
            return result

    try:
        given = case.prepare(name)
        with Watch():
            case.call(*given)
    except (RuntimeError, NotImplementedError):  # an op that takes values, and there are none
        if name == STAND_IN:
            return None
        raise
    working = [op for op in seen if rules.cost(op, name) != rules.NOTHING]
    return working[0] if [op.name for op in working] == [case.op] else None


def _profiled(
    ready: list[_Ready], device: Device, trace: Path, annotate: Annotate
) -> Iterator[Measured]:
    """What each call launched, of those that agree in all their calls."""
    if not ready:
        return

    def run() -> None:
        for i, one in enumerate(ready):
            for k, given in enumerate(one.given):
                with annotate(_name(i, k)):
                    try:
                        one.case.call(*given)
                    except RuntimeError:  # no memory left, for one
                        one.failed = True

    device.profile(run, trace)
    for i, one in enumerate(ready):
        counts = {_count(trace, _name(i, k)) for k in range(len(one.given))}
        if one.failed or len(counts) != 1 or None in counts:
            continue
        (count,) = counts
        assert count is not None
        klass = classes.of(one.op)
        yield Measured(
            one.op.name,
            atlas.dtypes_of(one.op),
            one.op.parameters,
            atlas.signature(one.op),
            count,
            klass,
            klass.measure(one.op) if klass is not None else None,
        )


def _name(i: int, k: int) -> str:
    return f"kernelcount.case {i}.{k}"


def _count(trace: Path, name: str) -> Count | None:
    """Kernels and copies under one annotation; None where they are not known."""
    try:
        (outcome,) = read_file(trace, name)
    except UsageError:  # the annotation is lost
        return None
    if not isinstance(outcome, Capture):
        return None
    return outcome.count("kernel"), outcome.count("copy")


def entries(measured: Sequence[Measured]) -> Iterator[Entry]:
    """What was measured as entries: a class where all agree, else the calls, alike ones together.

    A class also has to be recorded at all its corners.
    """
    groups: dict[tuple[str, str, str], list[Measured]] = {}
    for one in measured:
        if one.klass is not None:
            groups.setdefault((one.op, one.dtype, one.klass.name), []).append(one)
    whole: set[int] = set()
    for (op, dtype, name), group in groups.items():
        klass = group[0].klass
        assert klass is not None
        alike = {one.count for one in group}
        if len(alike) == 1 and klass.corners() <= {one.measures for one in group}:
            whole |= set(map(id, group))
            (count,) = alike
            yield Entry(op, dtype, *count, _calls(group), klass=name)
    lines: dict[tuple[str, str, str, Count], list[Measured]] = {}
    for one in measured:
        if id(one) not in whole:
            lines.setdefault((one.op, one.dtype, one.parameters, one.count), []).append(one)
    for (op, dtype, parameters, count), group in lines.items():
        calls = _calls(group)
        for first in range(0, len(calls), _LINE):
            yield Entry(op, dtype, *count, calls[first : first + _LINE], parameters)


def _calls(group: Sequence[Measured]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.call for one in group))
