"""What `ncu` is asked for, and what becomes of it.

The names and what they mean: NVIDIA Nsight Compute documentation, Kernel Profiling Guide.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelcount.model import Counters

READ = "dram__bytes_read.sum"
WRITTEN = "dram__bytes_write.sum"
TIME = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
STALLS = "group:smsp__pcsamp_warp_stall_reasons"

PASSES: tuple[tuple[str, ...], ...] = ((READ, WRITTEN, TIME), (OCCUPANCY, DRAM, SM, STALLS))
"""Each is a run of its own. The first is so small that ncu can collect it while a kernel runs once:
where one is run again, it finds in the L2 cache what the run before left there, and the bytes that
it reads from DRAM are too few. The second takes several passes, on which shares depend little."""

ASKED = (READ, WRITTEN, TIME, OCCUPANCY, DRAM, SM)
"""Those that have one value. A group is named in a log by its members."""

_STALL = "smsp__pcsamp_warps_issue_stalled_"
_NO_STALL = ("selected",)
"""Members of the group that are none: the warp issued an instruction."""


def counters(values: Mapping[str, float | None]) -> Counters:
    """What the metrics of one kernel say; the times are in nanoseconds."""
    return Counters(
        _whole(values.get(READ)),
        _whole(values.get(WRITTEN)),
        _whole(values.get(TIME)),
        values.get(OCCUPANCY),
        values.get(DRAM),
        values.get(SM),
        stall(values),
    )


def stall(values: Mapping[str, float | None]) -> str | None:
    """The reason for which most of the sampled warps waited; None where none was sampled."""
    samples = {
        name.removeprefix(_STALL): count
        for name, count in values.items()
        if name.startswith(_STALL) and count
    }
    reasons = {r: n for r, n in samples.items() if r not in _NO_STALL}
    return max(reasons, key=reasons.__getitem__, default=None)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
