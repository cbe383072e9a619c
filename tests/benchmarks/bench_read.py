"""How fast `kernelcount read` reads big traces, and in how much memory, beside `json.load`.

    python tests/benchmarks/bench_read.py [--megabytes 430] [--runs 3] [--folder DIR] [--skip-json]

It writes one trace in each layout, reads each some times in processes of its own and prints the
best time, the processor time of that run and the peak memory. Traces in --folder are kept and used
again. pytest does not collect this file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MEGA = 1_000_000

NAMES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
    " std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "nvjet_hsh_128x128_64x6_1x2_h_bz_TNT",
    "triton_poi_fused_add_relu_0",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int,"
    " float, float const*, float const*, float const*, float*, float*, float*)",
)
_PYTHON = ("_call_impl", "forward", "_wrapped_call_impl", "linear")

_OP = """  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::{name}", "pid": 424, "tid": 424,
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {i},"Record function id": 0, "Sequence number": {i}, "Fwd thread id": 0, "Ev Idx": {i}
    }}
  }},
"""  # noqa: E501
_FUNCTION = """  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py({line}): {name}", "pid": 424, "tid": 424,
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "Python parent id": {parent}, "Python id": {i}, "Ev Idx": {i}
    }}
  }},
"""  # noqa: E501
_KERNEL = """  {{
    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7,
    "ts": {ts:.3f}, "dur": 2.000,
    "args": {{
      "External id": {external},      "queued": 0, "device": 0, "context": 1,      "stream": 7, "correlation": {i},      "registers per thread": 32,      "shared memory": 0,      "blocks per SM": 7.401515,      "warps per SM": 29.606060,      "grid": [{grid}, 1, 1],      "block": [128, 1, 1],      "est. achieved occupancy %": 46
    }}
  }},
  {{
    "ph": "f", "id": {i}, "pid": 0, "tid": 7, "ts": {ts:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"""  # noqa: E501
_LAUNCH = """  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 424, "tid": 424,
    "ts": {ts:.3f}, "dur": 3.250,
    "args": {{
      "External id": {external},      "cbid": 211, "correlation": {i}
    }}
  }},
  {{
    "ph": "s", "id": {i}, "pid": 424, "tid": 424, "ts": {ts:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
"""
_HEAD = """
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0
    }
    ],
  "displayTimeUnit": "ms",
  "traceEvents": [
"""
_TAIL = """  {
    "name": "process_name", "ph": "M", "ts": 5123940688481.230, "pid": 424, "tid": 0,
    "args": {
      "name": "python3"
    }
  }
  ]
}
"""


def kineto(kernels: int) -> Iterator[str]:
    """Kineto's own layout and order: the host's rows first, then device rows and their launches."""
    start = 5123940688000.0
    yield _HEAD
    for i in range(kernels):
        ts = start + 20.0 * i
        yield "".join(
            _FUNCTION.format(line=j, name=name, ts=ts + j, dur=18.0 - 2 * j, parent=i, i=4 * i + j)
            for j, name in enumerate(_PYTHON)
        )
        yield _OP.format(name="linear", ts=ts + 4, dur=14.0, i=2 * i)
        yield _OP.format(name="addmm", ts=ts + 5, dur=12.0, i=2 * i + 1)
    for i in range(kernels):
        ts, external, correlation = start + 20.0 * i, 2 * i + 1, 15 * i + 1000
        name = NAMES[i % len(NAMES)]
        grid = 977 + i % 13
        yield _KERNEL.format(name=name, ts=ts + 12, external=external, i=correlation, grid=grid)
        yield _LAUNCH.format(ts=ts + 6, external=external, i=correlation)
    yield _TAIL


def one_event_a_line(kernels: int) -> Iterator[str]:
    """A launch, a kernel and ten python_function rows each, one event a line, by `json.dumps`."""
    yield '{"schemaVersion":1,"traceEvents":[\n'
    for i in range(kernels):
        yield ",\n".join(map(json.dumps, _plain_rows(i))) + (",\n" if i + 1 < kernels else "\n")
    yield "]}\n"


def all_in_one_line(kernels: int) -> Iterator[str]:
    """The same rows without a single newline."""
    yield '{"schemaVersion":1,"traceEvents":['
    for i in range(kernels):
        rows = (json.dumps(row, separators=(",", ":")) for row in _plain_rows(i))
        yield ",".join(rows) + ("," if i + 1 < kernels else "")
    yield "]}"


def _plain_rows(i: int) -> Iterator[dict[str, object]]:
    ts = 5.0 * i
    host = {"ph": "X", "pid": 9, "tid": 9, "ts": ts}
    yield host | {
        "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1.0, "args": {"correlation": i}
    }  # fmt: skip
    yield {
        "ph": "X", "cat": "kernel", "name": f"k{i % 50}", "pid": 0, "tid": 7, "ts": ts + 2,
        "dur": 2.0, "args": {"device": 0, "stream": 7, "correlation": i},
    }  # fmt: skip
    for j in range(10):
        yield host | {
            "cat": "python_function", "name": f"lib/mod{j}.py({j}): f", "dur": 4.0,
            "args": {"Python id": 10 * i + j},
        }  # fmt: skip


LAYOUTS: dict[str, Callable[[int], Iterator[str]]] = {
    "kineto": kineto,
    "one-event-a-line": one_event_a_line,
    "all-in-one-line": all_in_one_line,
}


class Run(NamedTuple):
    """One process: seconds by the clock and of the processor, bytes of memory, its output."""

    wall: float
    user: float
    peak: int
    output: bytes


def measure(command: list[str]) -> Run:
    """Run a command to its end. Raises RuntimeError where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}")
    return Run(wall, usage.ru_utime, usage.ru_maxrss * 1024, output)


_JSON_READER = """
import json, sys, gzip
path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
    rows = json.load(file)["traceEvents"]
print(sum(row.get("cat") == "kernel" and row.get("ph") == "X" for row in rows))
"""


class Trace(NamedTuple):
    """A trace on disk: bytes when unpacked, and kernels."""

    path: Path
    size: int
    kernels: int


def write(path: Path, layout: str, megabytes: float) -> Trace:
    """Write a trace of about that size, unless it is there."""
    make = LAYOUTS[layout]
    kernels = round(megabytes * MEGA / (sum(map(len, make(2000))) / 2000))
    if path.exists():
        size = path.stat().st_size if path.suffix == ".json" else sum(map(len, make(kernels)))
        return Trace(path, size, kernels)
    size = 0
    with gzip.open(path, "wt", 1) if path.suffix == ".gz" else path.open("w") as file:
        for part in make(kernels):
            size += len(part)
            file.write(part)
    return Trace(path, size, kernels)


def report(trace: Trace, runs: int, *, beside_json: bool) -> None:
    """Measure one trace and print a line for each reader."""
    path = str(trace.path)
    ours = [sys.executable, "-m", "kernelcount", "read", path, "--format", "json"]
    best = min((measure(ours) for _ in range(runs)), key=lambda run: run.wall)
    found = json.loads(best.output)["variants"][0]["kernels"]
    _line(f"{trace.path.name}: kernelcount read", trace.size, best)
    if found != trace.kernels:
        print(f"  WRONG: {found} kernels, right: {trace.kernels}")
    if beside_json:
        plain = measure([sys.executable, "-c", _JSON_READER, path])
        _line(f"{trace.path.name}: json.load", trace.size, plain)


def _line(what: str, size: int, run: Run) -> None:
    print(
        f"{what:48} {size / MEGA:5.0f} MB  {run.wall:6.2f} s ({run.user:.2f} s user)"
        f"  {size / MEGA / run.wall:5.0f} MB/s  {run.peak / MEGA:5.0f} MB of memory",
        flush=True,
    )


def main() -> None:
    """Parse the flags, write the traces, measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=430)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the traces here")
    parser.add_argument("--layouts", nargs="*", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--gzip", action="store_true", help="compressed ones as well")
    parser.add_argument("--skip-json", action="store_true", help="do not run json.load")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for layout in options.layouts:
            for suffix in (".json", ".json.gz") if options.gzip else (".json",):
                path = folder / f"{layout}-{options.megabytes:.0f}{suffix}"
                trace = write(path, layout, options.megabytes)
                report(trace, options.runs, beside_json=not options.skip_json)
                if options.folder is None:
                    path.unlink()


if __name__ == "__main__":
    main()
