"""Have a GPU's counters read for the functions of `moving.py`: bytes to and from DRAM.

    python tests/gpu/counted_bytes.py tests/data/h200/dram.json

All run in eager mode, in one process under `ncu`, a kernel before each that nothing else launches,
so that the log is told apart. It takes half a minute.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import moving
import torch

from kernelcount.examination import counters
from kernelcount.inputs.arguments import InputOptions
from kernelcount.inputs.generated import from_specs
from kernelcount.ncu import log, metrics
from kernelcount.ncu.process import FLAGS

WARM_UPS = 3
BEYOND_L2 = 64 << 20  # floats, written before each call so that no argument is left in a cache
MARK = "spin_kernel"  # what torch.cuda._sleep launches


def main(path: Path) -> None:
    """Write how many bytes each read and wrote, under its name and arguments."""
    with tempfile.TemporaryDirectory() as folder:
        logged = Path(folder, "log.csv")
        command = [
            counters.installed() or "ncu", *FLAGS, "--log-file", str(logged),
            "--metrics", f"{metrics.READ},{metrics.WRITTEN}", sys.executable, __file__, "--child",
        ]  # fmt: skip
        subprocess.run(command, check=True)
        kernels = log.parse(logged.read_text()).kernels
    calls: list[list[log.Profiled]] = []
    for kernel in kernels:
        if kernel.name == MARK:
            calls.append([])
        else:
            calls[-1].append(kernel)
    figures = {
        " ".join((name, *inputs)): [
            round(sum(kernel.metrics[metric] or 0 for kernel in own))
            for metric in (metrics.READ, metrics.WRITTEN)
        ]
        for (name, inputs), own in zip(moving.CASES, calls, strict=True)
    }
    about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__.partition("+")[0]}
    path.write_text(json.dumps({**about, "read and written": figures}, indent=1) + "\n")


def child() -> None:
    """Call each, under `ncu`."""
    profiler = torch.cuda.cudart()
    for name, inputs in moving.CASES:
        function = getattr(moving, name)
        args = from_specs(function, None, InputOptions(specs=inputs, device="cuda")).args
        with torch.no_grad():
            for _ in range(WARM_UPS):
                function(*args)
            torch.randn(BEYOND_L2, device="cuda").relu_()
            torch.cuda.synchronize()
            profiler.cudaProfilerStart()
            torch.cuda._sleep(1)
            function(*args)
            torch.cuda.synchronize()
            profiler.cudaProfilerStop()


if __name__ == "__main__":
    child() if sys.argv[1:] == ["--child"] else main(Path(sys.argv[1]))
