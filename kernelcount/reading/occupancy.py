"""The occupancy of kernels of which Kineto writes 0 %, worked out from the launch and the GPU.

Kineto (`CuptiActivity` and its occupancy calculator) allows a block no more shared memory than
`sharedMemPerBlock`, 48 KiB, so that one that asks for more, as most products on tensor cores do,
fits no multiprocessor by it. It also rounds to whole percents. A share that is 0 is therefore
never known by it. On recorded traces of an H200 what is worked out here is within a percent of
Kineto's figure for each of the other launches.

The limits of a multiprocessor are in the trace but for three, which are of the compute capability:
blocks, what shared memory the system keeps for each block, and by how many registers a warp takes
them (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the occupancy
calculator of Nsight Compute).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from kernelcount.model import Records, Work

_BLOCKS = {
    (7, 0): 32, (7, 5): 16, (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24, (9, 0): 32,
    (10, 0): 32,
}  # fmt: skip
_REGISTERS_AT_ONCE = 256  # a warp takes as many, or a multiple
_AMPERE = 8  # from which on the system keeps shared memory for each block
_QUARTERS = 4  # of a multiprocessor, each with registers of its own


@dataclass(frozen=True, slots=True)
class Limits:
    """What a GPU of NVIDIA's has: `multiprocessors`, and in each of them the rest.

    `kept`: bytes of shared memory that the system takes for each block.
    """

    multiprocessors: int
    warp: int
    threads: int
    registers: int
    shared_memory: int
    blocks: int
    kept: int


def worked_out(records: Records, header: dict[str, Any]) -> Records:
    """The records, with an occupancy where Kineto has 0: worked out, or None where it cannot be.

    `header` is the trace's, with the properties of its devices. Where these differ, it is not
    known which of them a launch was on.
    """
    works = records.works
    if not any(work.occupancy == 0 for work in works):
        return records
    found = set(_limits(header.get("deviceProperties")))
    limits = found.pop() if len(found) == 1 else None
    return replace(
        records,
        works=tuple(
            replace(w, occupancy=of_launch(w, limits) if limits else None) if w.occupancy == 0
            else w
            for w in works
        ),
    )  # fmt: skip


def _limits(devices: Any) -> Iterator[Limits | None]:
    """Those of each device; None for one of which they are not known."""
    for device in devices if isinstance(devices, list) else ():
        known = device if isinstance(device, dict) else {}
        names = (
            "numSms", "warpSize", "maxThreadsPerMultiprocessor", "regsPerMultiprocessor",
            "sharedMemPerMultiprocessor", "computeMajor", "computeMinor",
        )  # fmt: skip
        values = [v for name in names if type(v := known.get(name)) is int]
        if len(values) < len(names) or min(values[:5]) < 1:
            yield None
            continue
        sms, warp, threads, registers, shared, major, minor = values
        blocks, kept = _BLOCKS.get((major, minor)), 1024 if major >= _AMPERE else 0
        yield Limits(sms, warp, threads, registers, shared, blocks, kept) if blocks else None


def of_launch(work: Work, gpu: Limits) -> float | None:
    """Warps at work over those that a multiprocessor can hold, 0 to 1, averaged over them all.

    None where the launch is not known, or such a block fits no multiprocessor.
    """
    if not work.grid or not work.block or work.registers is None or work.shared_memory is None:
        return None
    blocks, threads = prod(work.grid), prod(work.block)
    if blocks < 1 or threads < 1 or work.registers < 0 or work.shared_memory < 0:
        return None
    warps = -(-threads // gpu.warp)
    fit = [gpu.blocks, gpu.threads // (warps * gpu.warp)]
    if work.registers:
        taken = -(-work.registers * gpu.warp // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        fit.append(gpu.registers // _QUARTERS // taken * _QUARTERS // warps)
    if work.shared_memory + gpu.kept:
        fit.append(gpu.shared_memory // (work.shared_memory + gpu.kept))
    if min(fit) < 1:
        return None
    at_once = min(blocks, min(fit) * gpu.multiprocessors) / gpu.multiprocessors
    return at_once * warps * gpu.warp / gpu.threads
