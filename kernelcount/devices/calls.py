"""What a host call by this name does, for every vendor whose names are known.

The names are those of CUPTI's, rocprofiler's and Intel PTI's callback tables as Kineto writes them;
some bear a suffix such as ``_v7000`` or ``_ptsz``.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Call(IntEnum):
    """What a host call does to the GPU."""

    OTHER = 0
    LAUNCH = 1
    """Puts a kernel on the GPU."""
    GRAPH = 2
    """Launches a graph: one launch, any number of kernels."""
    MEMORY = 3
    """Starts a memcpy or a memset: no launch, but its record belongs to the call."""
    CAPTURE_BEGIN = 4
    CAPTURE_END = 5
    """Between these two, launches are recorded into a graph and run nothing."""


_PATTERNS: tuple[tuple[Call, str], ...] = (
    (Call.GRAPH, r"(cuda|cu|hip)GraphLaunch\w*"),
    # cuLaunchHostFunc and cudaLaunchHostFunc run a host function: they are no kernel launch.
    (Call.LAUNCH, r"(cuda|cu|hip)([A-Z]\w*)?Launch\w*Kernel\w*"),
    (Call.LAUNCH, r"cuLaunch(Grid(Async)?)?|cudaLaunch|hipLaunchByPtr"),
    (Call.LAUNCH, r"(ur|pi)(ext|Ext)?Enqueue(Cooperative)?Kernel(Launch)?\w*"),
    (Call.LAUNCH, r"zeCommandList(Immediate)?AppendLaunch\w*Kernel\w*"),
    (Call.MEMORY, r"(cuda|cu|hip)(Mem(cpy|set)|GraphMem)\w*"),
    (Call.MEMORY, r"(ur|pi)(ext|Ext)?Enqueue(USM|Mem)\w*|zeCommandListAppendMemory\w*"),
    (Call.CAPTURE_BEGIN, r"(cuda|cu|hip)StreamBeginCapture\w*"),
    (Call.CAPTURE_END, r"(cuda|cu|hip)StreamEndCapture\w*"),
)
# cudaMemcpy and its kin without Async come back when the copy is made, from GPU to GPU aside (CUDA
# Runtime API, "API synchronization behavior"); hipMemcpyWithStream is what torch calls with ROCm.
_WAITING = re.compile(
    r"(cuda|hip)(Device|Stream|Event)Synchronize\w*|(cu|hip)(Ctx|Stream|Event)Synchronize\w*"
    r"|(cuda|cu|hip)Memcpy(?!\w*(Async|Peer|DtoD))\w*"
    r"|ur(QueueFinish|EventWait)|ze(Event|Fence|CommandList)HostSynchronize"
    r"|zeCommandQueueSynchronize"
)
_LONGEST = 200  # characters; no API has a call of a longer name, but a file may
_COMPILED = tuple((call, re.compile(pattern)) for call, pattern in _PATTERNS)

_VENDORS = (
    ("cuda", re.compile(r"(cuda|cu)[A-Z]")),
    ("hip", re.compile(r"hip[A-Z]")),
    ("xpu", re.compile(r"(ze|ur|pi)(ext)?[A-Z]")),
)


@lru_cache(maxsize=4096)
def classify(name: str) -> Call:
    """What the call of this name does; `Call.OTHER` for one that puts nothing on the GPU."""
    if len(name) > _LONGEST:
        return Call.OTHER
    return next((call for call, p in _COMPILED if p.fullmatch(name)), Call.OTHER)


def waits(name: str) -> bool:
    """Whether the host stands still in the call of this name until the GPU has done something."""
    return len(name) <= _LONGEST and _WAITING.fullmatch(name) is not None


def vendor(name: str) -> str | None:
    """The kind of device whose API has a call of this name: cuda, hip, xpu, or None."""
    return next((kind for kind, pattern in _VENDORS if pattern.match(name)), None)
