"""The command line as a process: signals, and a stdout that holds the result and nothing else.

A worker from nothing takes some four seconds to start: where one that is forked tells the same,
it is forked.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from counting import CASES

COMMAND = [sys.executable, "-m", "kernelcount"]
TINY = ("--size", "4", "--variant", "eager", "--device", "cpu", "--seconds", "0")


def test_whatever_the_function_prints_stdout_is_one_document():
    spec = f"{CASES / 'FC64_writes_to_stdout.py'}:chatty"
    command = [*COMMAND, "run", spec, *TINY, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert json.loads(done.stdout)["variants"][0]["cpu_ops"] == {"aten": 1, "generated": 0}
    for text in ("loading my", "banner from C code", '"not": "yours"', "child process", "bye"):
        assert text in done.stderr


def test_a_remedy_that_ends_the_process_costs_neither_counts_nor_times(kernelcount_forked, target):
    path = target("""
        import os
        from kernelcount import remedies
        del remedies.REMEDIES["compile"]  # half a minute of C++, for nothing that is asked here
        def f(x): return x + 1 if x.dtype is torch.float32 else os._exit(7)
    """)
    flags = ("--size", "4", "--variant", "eager", "--device", "cpu", "--seconds", "0.01")
    code, out, err = kernelcount_forked("run", f"{path}:f", *flags, "--remedy", "--format", "json")
    assert code == 0, err
    (eager,) = json.loads(out)["variants"]
    reasons = {r["name"]: (r["status"], r["reason"]) for r in eager["remedies"]}
    assert eager["call_time_ns"] > 0
    assert reasons["bf16"] == ("failed", "the process ended while this was tried")
    assert reasons["TF32"][0] == "not tried"


def is_alive(pid):
    """Whether a process still runs, after a moment; one that nobody has waited for does not."""
    for _ in range(40):
        try:
            if not Path("/proc", pid, "cmdline").read_bytes():
                return False
        except OSError:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("text", "signals"),
    [
        ("def f(x):\n    {child}\n    {ready}\n    while True: pass", [signal.SIGINT]),
        ("{child}\n{ready}\nwhile True: pass", [signal.SIGTERM] * 3),
    ],
    ids=["ctrl-c-in-the-call", "three-terms-in-the-import"],
)
def test_a_signal_ends_all_at_once(target, tmp_path, text, signals):
    child = "import subprocess; p = subprocess.Popen(['sleep', '600'], start_new_session=True)"
    pids = tmp_path / "pids"
    ready = f"import os; open({str(pids)!r}, 'w').write(f'{{p.pid}} {{os.getpid()}} ')"
    path = target(text.format(child=child, ready=ready))
    arguments = ["run", f"{path}:f", *TINY, "--format", "json"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while not (pids.exists() and pids.read_text().endswith(" ")) and time.monotonic() < until:
        time.sleep(0.05)
    began = time.monotonic()
    for number in signals:
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert json.loads(out)["error"] == {"code": 130, "message": "interrupted"}
    assert err.splitlines()[-1] == "kernelcount: interrupted"
    assert "Traceback" not in err
    for pid in pids.read_text().split():
        assert not is_alive(pid)


def test_neither_closed_streams_nor_modules_of_the_current_folder_are_a_trap(target, tmp_path):
    for name in ("random", "json", "typing", "signal", "torch", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')\n")
    target("def f(x): return x + 1")
    report = tmp_path / "report.json"
    command = f'exec "$@" --format json --output {report} <&- >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *COMMAND, "run", "users.py:f", *TINY],
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )
    assert done.returncode == 0
    assert json.loads(report.read_text())["variants"][0]["cpu_ops"]["aten"] == 1
