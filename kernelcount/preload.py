"""What the fork server imports and does once, so that no worker forked from it has to.

It never runs a line of the user's code, and never starts a GPU.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelcount.boot import PACKAGE


def _warm_up() -> None:
    """Count something on paper: Dynamo and Inductor set much up at their first use."""
    import torch

    from kernelcount import capture, inputs, variants
    from kernelcount.model import Target
    from kernelcount.paper import gpu

    def ordinary(x: Any, weight: Any) -> Any:
        hidden = torch.nn.functional.gelu(torch.matmul(x, weight)).relu()
        return torch.softmax(hidden, -1).sum() + hidden.mean()

    device: Any = gpu.of_card(None)
    with device.importing():
        pass
    with device.prepare():
        options = inputs.InputOptions(specs=("f32[8,8]", "f32[8,8]"), device="cuda")
        arguments = inputs.build(ordinary, options, None)
    subject = capture.Subject(
        Target("warm-up"), arguments, lambda _: arguments, device, device.environment()
    )
    with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder:
        for name in variants.DEFAULT:
            way = capture.way(variants.parse(name), ordinary)
            capture.measure(subject, way, Path(folder), lambda _: None)


def _load() -> None:
    from kernelcount import capture, devices, inputs, target, together, variants, worker  # noqa: F401
    from kernelcount.paper import gpu  # noqa: F401
    from kernelcount.probes import compiler
    from kernelcount.worker import device

    compiler.load()
    if not device.may_have_a_gpu():
        with suppress(Exception):  # a job that is asked for tells why it cannot be counted
            _warm_up()
    # Or the collector of each forked process would write to all this memory, and so copy it.
    gc.collect()
    gc.freeze()


if (wanted := os.environ.pop(PACKAGE, None)) is not None:
    if wanted != str(Path(__file__).parent):
        # Another kernelcount comes first on this path: its workers would not be the caller's.
        for name in [n for n in sys.modules if n.partition(".")[0] == "kernelcount"]:
            del sys.modules[name]
        raise ImportError(f"this is not the kernelcount at {wanted}")
    _load()
