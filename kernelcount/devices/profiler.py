"""Adapter to torch's profiler: record one call, and do not take another profiler's word for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelcount.devices.base import MARK


def record(
    call: Callable[[], object],
    trace: Path,
    activities: Sequence[Any],
    synchronize: Callable[[], None],
) -> None:
    """Run `call` once under torch.profiler and write the trace; what it raises passes through.

    A profiler inside the call takes the session away: exporting what is left crashes (torch 2.13),
    or whichever of the two stops last raises (torch 2.11 on a GPU). The trace is written without
    rows then, which the readers take for what it is.
    """
    if is_profiling():
        trace.write_text(_EMPTY)
        call()
        return
    synchronize()
    try:
        profiler = _recorded(call, activities, synchronize)
    except RuntimeError as error:
        if not _TAKEN.search(str(error)):
            raise
        profiler = None
    if profiler is None:
        trace.write_text(_EMPTY)
    else:
        profiler.export_chrome_trace(str(trace))


def _recorded(
    call: Callable[[], object], activities: Sequence[Any], synchronize: Callable[[], None]
) -> Any:
    """The stopped profiler with the record of one call; None where another took the session."""
    from torch.profiler import profile, record_function

    with profile(activities=activities, acc_events=True) as profiler:
        with record_function(MARK):
            call()
        synchronize()
        taken = is_profiling() is False
    return None if taken else profiler


# What torch says when two profilers meet: torch/csrc/autograd/profiler_kineto.cpp.
_TAKEN = re.compile(r"Kineto profiler|[Pp]rofiler is already")


_EMPTY = json.dumps({"schemaVersion": 1, "traceEvents": []})


def is_profiling() -> bool | None:
    """Whether a profiler is at work on this thread; None where this torch does not tell."""
    import torch

    try:
        return bool(torch.autograd._profiler_enabled())
    except AttributeError:
        return None
