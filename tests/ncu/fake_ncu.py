"""A stand-in for `ncu`: runs the program, and writes a log on what the fake device launched.

The log is in the format that the Nsight Compute CLI documentation describes, its figures by rule.
``FAKE_NCU`` asks for a failure: see `FAILURES`, and in `main`. Where ``FAKE_NCU_LAUNCHED`` names
kernels (in JSON), the program is not run: these are what it would have launched. Where
``FAKE_NCU_ONCE`` names a file, the program is run once, and later calls are told what it launched.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit",
    "Metric Value",
)  # fmt: skip
VALUES = {
    "dram__bytes_read.sum": ("byte", "800,000,512"),
    "dram__bytes_write.sum": ("byte", "399,998,976"),
    "gpu__time_duration.sum": ("nsecond", "276,320"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "81.25"),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "92.5"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "11.5"),
}
STALLS = {"long_scoreboard": "9,120", "wait": "310", "selected": "20,000"}
FAILURES = {
    "permission": (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
        "Performance Counters on the target device 0."
    ),
    "busy": (
        "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no "
        "other tool (like DCGM) is concurrently collecting profiling data."
    ),
    "strange": "==ERROR== Something nobody has heard of",
}


def table(names, metrics):
    """The rows of these kernels, a line for each metric."""
    asked = {name: VALUES[name] for name in metrics if name in VALUES}
    if any(name.startswith("group:") for name in metrics):
        stem = "smsp__pcsamp_warps_issue_stalled_"
        asked |= {stem + reason: ("warp", count) for reason, count in STALLS.items()}
    yield COLUMNS
    for number, name in enumerate(names):
        where = (number, 1234, "python3.12", "127.0.0.1", name, 1, 7, "(128, 1, 1)", "(977, 1, 1)")
        for metric, (unit, value) in asked.items():
            section = "Command line profiler metrics"
            yield (*where, 0, "9.0", section, metric, unit, value)


def quoted(cells):
    return ",".join('"' + str(cell).replace('"', '""') + '"' for cell in cells)


def log(names, metrics, passes):
    lines = ["==PROF== Connected to process 1234 (/usr/bin/python3.12)"]
    lines += [
        f'==PROF== Profiling "{name}" - {i}: 0%....50%....100% - {passes} pass'
        + ("" if passes == 1 else "es")
        for i, name in enumerate(names)
    ]
    lines.append("==PROF== Disconnected from process 1234")
    if not names:
        lines.append("==WARNING== No kernels were profiled.")
    return "\n".join([*lines, *map(quoted, table(names, metrics))]) + "\n"


def launched(program, folder):
    """The program's exit code, and the kernels that it launches in its range."""
    if names := os.environ.get("FAKE_NCU_LAUNCHED"):
        (folder / "end").touch()  # the program's sign that nothing failed
        return 0, json.loads(names)
    once = os.environ.get("FAKE_NCU_ONCE")
    if once and Path(once).exists():
        (folder / "end").touch()
        return 0, json.loads(Path(once).read_text())
    with tempfile.TemporaryDirectory() as own:
        seen = Path(own, "range")
        code = subprocess.call(program, env={**os.environ, "KERNELCOUNT_FAKE_RANGE": str(seen)})
        names = json.loads(seen.read_text()) if seen.is_file() else []
    if once:
        Path(once).write_text(json.dumps(names))
    return code, names


def main(arguments):
    failure = os.environ.get("FAKE_NCU", "")
    if calls := os.environ.get("FAKE_NCU_CALLS"):
        with Path(calls).open("a") as file:
            file.write(json.dumps(arguments) + "\n")
    given = arguments.index(sys.executable)
    flags, program = arguments[:given], arguments[given:]
    target = Path(flags[flags.index("--log-file") + 1])
    metrics = flags[flags.index("--metrics") + 1].split(",")
    if failure in FAILURES:
        print(FAILURES[failure])
        target.write_text("==PROF== Connected to process 1234\n" + FAILURES[failure] + "\n")
        return 1
    if failure == "hang":
        time.sleep(600)
    code, names = launched(program, target.parent)
    if failure == "other":
        names = ["another", *names[1:]]
    names = [name.partition("<")[0].rpartition("::")[2] for name in names]
    target.write_text(log(names, metrics, 2 if failure == "replayed" else 1))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
