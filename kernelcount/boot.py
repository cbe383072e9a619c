"""How a process of ours is started: what stands in the current folder cannot break its start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import kernelcount

PACKAGE = "KERNELCOUNT_PACKAGE"
"""The variable that names the folder of the package whose workers are to be forked."""

# Neither the current folder nor this package's may come before the standard library on the import
# path, or a user's random.py would break torch.
_START = """
import sys
if sys.path[0] == "":
    sys.path.pop(0)
import importlib.util
spec = importlib.util.spec_from_file_location("kernelcount", {init!r})
package = importlib.util.module_from_spec(spec)
sys.modules["kernelcount"] = package
spec.loader.exec_module(package)
"""


def command(then: str) -> list[str]:
    """The command line of a Python that does `then`: statements that import from kernelcount."""
    return [sys.executable, "-c", _START.format(init=str(Path(kernelcount.__file__))) + then]


def environment() -> dict[str, str]:
    """The caller's environment; the profiler's own log stays quiet unless the caller has a wish."""
    return {"KINETO_LOG_LEVEL": "99", **os.environ}
