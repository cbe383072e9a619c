"""``kernelcount read``: exit codes and streams; as a program, pipes, signals, memory."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from traces.rows import annotation, kernel, launch

COMMAND = [sys.executable, "-m", "kernelcount", "read"]
GOOD = [launch(1, 10), kernel(1, 100)]
LOST = [launch(1, 10), launch(2, 20), kernel(1, 100)]


@pytest.fixture
def read(kernelcount):
    """Read these in this process: exit code, stdout, stderr."""
    return lambda *arguments: kernelcount("read", *arguments)


@pytest.fixture
def file(tmp_path):
    """A trace of these rows."""

    def written(rows, name="trace.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": rows}))
        return path

    return written


def test_json_is_one_document_on_stdout_and_stderr_is_silent_where_all_is_well(file):
    command = [*COMMAND, str(file(GOOD)), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert json.loads(done.stdout)["variants"][0]["kernels"] == 1
    assert done.stderr == ""


def test_lost_records_are_exit_3_and_said_on_stderr(read, file):
    path = file(LOST)
    code, out, err = read(path, "--format", "json")
    assert code == 3
    assert json.loads(out)["variants"][0]["status"] == "unmeasured"
    assert err.startswith(f"kernelcount: {path}: 1 of 2 launches has no device record")


def test_of_several_files_all_are_read_and_the_highest_code_counts(read, file, tmp_path):
    files = [file(GOOD, "a"), tmp_path / "none", file(LOST, "b"), file(GOOD, "c")]
    code, out, err = read(*files, "--format", "json")
    assert code == 3
    variants = json.loads(out)["variants"]
    assert [v["name"] for v in variants] == list(map(str, files))
    assert [v["kernels"] for v in variants] == [1, None, 1, 1]
    assert "no such file" in err
    assert read(*files[:2])[0] == 2


def test_a_file_that_cannot_be_read_is_exit_2_with_a_document_where_json_was_asked_for(
    read, tmp_path
):
    code, out, err = read(tmp_path, "--format", "json")
    assert code == 2
    assert json.loads(out)["error"] == {"code": 2, "message": err.strip()[len("kernelcount: ") :]}


def test_what_a_file_holds_never_acts_on_the_terminal(read, file):
    evil = "k\x1b[31m\r\n\x9b2J\u202e"
    path = file([*GOOD, kernel(2, 120, name=evil), annotation(evil, 0, 9)])
    for arguments in (
        (path,),
        (path, "--full"),
        (path, "--region", "zzz"),
        (path, "--format", "csv"),
    ):
        _, out, err = read(*arguments)
        assert not set(out + err) & set("\x1b\r\x9b\u202e")


def test_a_trace_may_come_through_a_pipe(file):
    for data in (file(GOOD).read_bytes(), gzip.compress(file(GOOD).read_bytes())):
        done = subprocess.run(
            [*COMMAND, "/dev/stdin", "--format", "json"],
            input=data,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0
        assert json.loads(done.stdout)["variants"][0]["kernels"] == 1


def test_a_reader_that_goes_away_is_no_error(file):
    done = subprocess.run(
        f"{' '.join(COMMAND)} {file(GOOD)} --format json | head -c 1",
        shell=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_reads_ends_it_within_a_second_with_exit_code_130(tmp_path, number):
    pipe = tmp_path / "trace.json"
    os.mkfifo(pipe)
    process = subprocess.Popen([*COMMAND, str(pipe)], stderr=subprocess.PIPE)
    with pipe.open("wb") as writer:
        writer.write(b'{"traceEvents": [')
        writer.flush()
        time.sleep(0.2)
        process.send_signal(number)
        start = time.monotonic()
        _, err = process.communicate(timeout=10)
    assert time.monotonic() - start < 1
    assert process.returncode == 130
    assert b"Traceback" not in err


def _rows(number):
    for i in range(number):
        yield launch(i, 10 * i)
        yield kernel(i, 10 * i + 5, name=f"kernel_{i % 50}", **{"registers per thread": 32})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak")
@pytest.mark.parametrize("separator", [",", ",\n"], ids=["in one line", "a line for each"])
def test_memory_does_not_grow_with_the_file(tmp_path, separator):
    peaks = []
    for number in (500, 40_000):
        path = tmp_path / f"{number}.json"
        path.write_text('{"traceEvents": [' + separator.join(map(json.dumps, _rows(number))) + "]}")
        peaks.append(_peak(path, number))
    assert path.stat().st_size > 12_000_000
    assert peaks[1] - peaks[0] < 1.5 * path.stat().st_size  # some 190 bytes a record


_MEASURED = """
import atexit, re, sys
def say():
    sys.stderr.write(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
atexit.register(say)
from kernelcount.cli import main
main()
"""


def _peak(path, kernels):
    """Bytes that reading it took at most; what the system tells a parent counts the parent too."""
    command = [sys.executable, "-c", _MEASURED, "read", str(path), "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["variants"][0]["kernels"] == kernels
    return 1024 * int(done.stderr)
