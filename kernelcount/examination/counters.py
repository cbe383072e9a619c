"""Whether Nsight Compute (`ncu`) is here, and whether the driver lets it read counters.

NVIDIA's driver may keep a GPU's performance counters to administrators, who are on Linux the
processes with the capability CAP_SYS_ADMIN: https://developer.nvidia.com/ERR_NVGPUCTRPERM.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from kernelcount.devices.base import Device
from kernelcount.model import Check

_PARAMETERS = Path("/proc/driver/nvidia/params")
_STATUS = Path("/proc/self/status")

# What NVreg_RestrictProfilingToAdminUsers sets has another name where newer drivers show it.
_RESTRICTED = re.compile(
    r"^(?:RmProfilingAdminOnly|(?:NVreg_)?RestrictProfilingToAdminUsers): *(\d+)$", re.MULTILINE
)

_CAP_SYS_ADMIN = 21
"""The number of the bit, from linux/capability.h."""

_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)

_PLACE = "/usr/local/cuda/bin"
"""Where CUDA's installers for Linux put `ncu`, also where that is not on PATH."""

INSTALL = (
    "Nsight Compute comes with the CUDA toolkit, and alone from "
    "developer.nvidia.com/nsight-compute; ncu has to be on PATH"
)
ALLOW = (
    "sudo, or in a container --cap-add=SYS_ADMIN, lifts it for one process; "
    "NVreg_RestrictProfilingToAdminUsers=0 as an option of the kernel module nvidia lifts it for "
    "all: developer.nvidia.com/ERR_NVGPUCTRPERM"
)


def check(gpu: tuple[Device, str] | None) -> Check:
    """Whether a kernel's own counters can be asked; `gpu` is what there is on this machine."""
    found = installed()
    if gpu is None:
        here = f"{found} is there" if found else "not installed"
        return Check("ncu", False, f"{here}; there is no GPU to read counters of")
    if gpu[0].environment().kind != "cuda":
        return Check("ncu", False, "Nsight Compute reads counters of NVIDIA's GPUs alone")
    if found is None:
        return Check("ncu", False, "Nsight Compute is not installed", INSTALL)
    restricted = for_administrators()
    if restricted is None:
        unknown = f"{found}; not known whether it may read counters: {_PARAMETERS} does not say"
        return Check("ncu", False, unknown, ALLOW)
    if not restricted:
        return Check("ncu", True, f"{found}; the driver lets every user read counters")
    if is_administrator():
        return Check("ncu", True, f"{found}; the driver lets this process read counters, as root's")
    denied = f"{found}; the driver keeps counters to administrators, and this process is none"
    return Check("ncu", False, denied, ALLOW)


def installed() -> str | None:
    """The path of `ncu`, or None."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), _PLACE])
    return shutil.which("ncu", path=path)


def for_administrators() -> bool | None:
    """Whether the driver keeps counters to administrators; None where it does not say."""
    with suppress(OSError):
        if seen := _RESTRICTED.search(_PARAMETERS.read_text(errors="replace")):
            return seen[1] != "0"
    return None


def is_administrator() -> bool:
    """Whether the driver takes this process for one: root in a container often is none."""
    with suppress(OSError):
        if seen := _CAPABILITIES.search(_STATUS.read_text(errors="replace")):
            return bool(int(seen[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False
