"""Record an atlas on a GPU: how many kernels each call of a library op launches there.

    python tests/gpu/record_atlas.py FILE

writes one for the card of this machine and this torch; KERNELCOUNT_ATLAS=FILE has paper use it.
The ops are those of which no rule of `paper` knows. Each is called on arrays of several classes of
shape and dtype, and what it launched is read off the profiler's trace, as for any other call.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcount import devices
from kernelcount.devices.base import MARK, Device
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Capture
from kernelcount.paper import adapter
from kernelcount.paper.atlas import Entry, dtype_of, dump, shapes_of
from kernelcount.paper.mode import op_of
from kernelcount.paper.rules import Op
from kernelcount.reading import read_trace

SHAPES = ((256,), (65_536,), (1_000_000,), (64, 4096), (1024, 1024))
"""Short, long and very long rows; few and many of them."""

SQUARES = (256, 1024, 4096)
"""Sides of matrices: below, about and beyond what fills a large card with tiles."""

_CALLS = 2  # profiled calls that must agree


@dataclass(frozen=True)
class Case:
    """One call to be recorded: the op as ATen names it, and a function that makes it.

    `prepare` makes the arguments on a torch device.
    """

    op: str
    call: Callable[..., Any]
    prepare: Callable[[str], Sequence[Any]]


def cases() -> Iterator[Case]:
    """The calls that the atlas is made of."""
    import torch

    along: dict[str, Callable[..., Any]] = {
        "sort": lambda x, _: torch.sort(x),
        "topk": lambda x, _: torch.topk(x, 10),
        "cumsum": lambda x, _: torch.cumsum(x, -1),
        "nonzero": lambda _, mask: torch.nonzero(mask),
        "index": lambda x, mask: x[mask],
        "_unique2": lambda x, _: torch.unique(x),
        "logsumexp": lambda x, _: torch.logsumexp(x, -1),
        "median": lambda x, _: torch.median(x),
        "isinf": lambda x, _: torch.isinf(x),
    }
    for op, call in along.items():
        for shape in SHAPES:
            for dtype in (torch.float32, torch.bfloat16):
                yield Case(op, call, _with_mask(dtype, shape))
    for n in SQUARES:
        for dtype in (torch.float32, torch.bfloat16):
            yield Case("mm", torch.mm, _arrays(dtype, (n, n), (n, n)))
            yield Case("addmm", torch.addmm, _arrays(dtype, (n,), (n, n), (n, n)))
            yield Case("bmm", torch.bmm, _arrays(dtype, (8, n, 64), (8, 64, n)))


def _arrays(dtype: Any, *shapes: tuple[int, ...]) -> Callable[[str], Sequence[Any]]:
    def made(device: str) -> Sequence[Any]:
        import torch

        return [torch.randn(shape, device=device).to(dtype) for shape in shapes]

    return made


def _with_mask(dtype: Any, shape: tuple[int, ...]) -> Callable[[str], Sequence[Any]]:
    """An array and where it is positive, made before the call: the making is no part of it."""

    def made(device: str) -> Sequence[Any]:
        [x] = _arrays(dtype, shape)(device)
        return [x, x > 0]

    return made


def record(
    device: Device,
    name: str,
    scratch: Path,
    progress: Callable[[str], None],
    wanted: Iterator[Case] | None = None,
) -> tuple[Entry, ...]:
    """Record every case on a device that torch calls `name`; what cannot be run is left out.

    Raises NotMeasuredError where nothing could be recorded.
    """
    entries: dict[tuple[object, ...], Entry] = {}
    for case in wanted or cases():
        progress(f"recording {case.op}")
        entry = _recorded(case, device, name, scratch / "trace.json")
        if entry is not None:
            entries[entry.op, entry.dtype, entry.shapes, entry.parameters] = entry
    if not entries:
        raise NotMeasuredError("none of the ops could be recorded on this device")
    return tuple(entries.values())


def _recorded(case: Case, device: Device, name: str, trace: Path) -> Entry | None:
    try:
        given = case.prepare(name)
        op = _seen(case, given)
    except (RuntimeError, NotImplementedError):  # no such op for this dtype, or no memory
        return None
    counts: set[tuple[int, int]] = set()
    for _ in range(_CALLS):
        device.profile(lambda: case.call(*given), trace)
        outcome = read_trace(trace, case.op, mark=MARK)
        if isinstance(outcome, Capture):
            counts.add((outcome.count("kernel"), outcome.count("copy")))
    if op is None or len(counts) != 1:
        return None
    kernels, copies = counts.pop()
    where = device.environment()
    card = (where.device or "").removeprefix("NVIDIA ")
    source = f"recorded on an {card} with torch {where.torch}"
    return Entry(
        case.op, dtype_of(op), shapes_of(op), op.parameters, kernels, copies, card,
        where.torch or "", source,
    )  # fmt: skip


def _seen(case: Case, given: Sequence[Any]) -> Op | None:
    """The call as the rules of paper see it; this is its warm-up, too."""
    seen: list[Op] = []

    class Watch(adapter.dispatch_mode()):  # type: ignore[misc]
        """Keeps the ops of one name."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            op = op_of(func, args, kwargs or {}, [])
            seen.extend([op] if op.name == case.op else [])
            return func(*args, **(kwargs or {}))

    with Watch():
        case.call(*given)
    return seen[0] if seen else None


def main(path: Path) -> None:
    """Record every case on the GPU here. Raises KernelcountError where there is none."""
    device, name = devices.choose("cuda")
    with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder, device.prepare():
        entries = record(device, name, Path(folder), lambda text: print(text, file=sys.stderr))
    path.write_text(dump(entries))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
