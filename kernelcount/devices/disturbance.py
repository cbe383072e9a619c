"""What slows a GPU down just now, by NVML; only where ``nvidia-ml-py`` is installed.

The names and numbers of NVML's clock event reasons are from its API reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelcount.model import Note

_HOT = Note("heat-limited", "while the GPU was timed, its temperature held its clocks down")

REASONS = {
    0x2: Note("clock-limited", "somebody has set the GPU's clocks"),
    0x4: Note("power-limited", "while the GPU was timed, its power limit held its clocks down"),
    0x8: Note("clock-limited", "while the GPU was timed, the hardware held its clocks down"),
    0x20: _HOT,
    0x40: _HOT,
    0x80: Note("power-limited", "while the GPU was timed, the power supply held its clocks down"),
}
"""nvmlClocksEventReason*: ApplicationsClocksSetting, SwPowerCap, HwSlowdown, SwThermalSlowdown,
HwThermalSlowdown, HwPowerBrakeSlowdown."""


def notes(uuid: str) -> list[Note]:
    """What disturbs the GPU of this UUID; nothing where NVML cannot be asked."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(dict.fromkeys(_found(pynvml, uuid)))
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _found(nvml: Any, uuid: str) -> Iterator[Note]:
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    ask = ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    bits = ask(handle)
    clocks = _clocks(nvml, handle)
    for bit, note in REASONS.items():
        if bits & bit:
            yield Note(note.code, note.detail + clocks)
    # A container does not see the process numbers of its host, so they are counted, not compared.
    if len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)) > 1:
        yield Note("gpu-shared", "another process uses the GPU: times may be longer than need be")


def _clocks(nvml: Any, handle: Any) -> str:
    """The clock of the multiprocessors and the most it can be, as far as NVML tells."""
    try:
        now = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
        most = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
    except nvml.NVMLError:
        return ""
    return f" ({now} of {most} MHz)"
