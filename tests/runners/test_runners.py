"""Where a job is done: what a process of its own saves the caller from, and what in-process keeps.

A worker takes some four seconds to start from nothing. Where it is not the start that is looked at,
they are forked from a process that has imported torch.
"""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from counting import operations

from kernelcount import runners, worker
from kernelcount.errors import Interrupted, KernelcountError
from kernelcount.model import (
    NOT_TIMED,
    Capture,
    Environment,
    Job,
    Note,
    Target,
    Timing,
    Unmeasured,
)
from kernelcount.runners import Results, in_process, processes
from kernelcount.runners.listening import Listener
from kernelcount.runners.processes import _frame
from kernelcount.traces import saved

EAGER = ("eager",)


def quiet(_):
    """Take progress and do nothing with it."""


def left_over(mark):
    """Processes that bear `mark` in their command line."""
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in cmdline.read_bytes():
                found.append(cmdline.parent.name)
        except OSError:
            continue
    return found


# ── a process of its own ─────────────────────────────────────────────────────────────────────────


WRONG = """
import ctypes, os, signal, subprocess, sys, threading, time
import atexit
import torch
assert sys.stdin.read() == ""
atexit.register(lambda: time.sleep(0.01))
def crashes(x):
    ctypes.string_at(0)
def ends(x):
    os._exit(0)
def works(x):
    sys.stdout = sys.stderr = None
    if hasattr(sys, "argv"): del sys.argv
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(600,)).start()
    if os.fork() == 0:
        time.sleep(600)
    os.fork()  # the child comes back into the caller
    os.closerange(0, 1000)
    return x + 1
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory, forking):
    """What came of three functions that do wrong, one after the other: path, results, seconds."""
    path = tmp_path_factory.mktemp("wrong") / "users.py"
    path.write_text(WRONG)
    variants = ("eager", f"{path}:ends", f"{path}:works")
    began = time.monotonic()
    job = Job(f"{path}:crashes", device="cpu", sizes=(4,), variants=variants)
    with forking() as in_fork, pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_GRACE", 0.5)  # the last one has a thread that never ends
        return path, in_fork(job, quiet), time.monotonic() - began


def test_a_crash_costs_its_variant_and_says_where(wrong):
    assert wrong[1].outcomes[0] == Unmeasured(
        "eager", "the process died of SIGSEGV at users.py:8, in crashes", None, 3, raised=True
    )
    assert wrong[1].targets[2].inputs == ("f32[4]",)


def test_a_process_that_ends_itself_costs_its_variant(wrong):
    path, results, _ = wrong
    reason = "the process ended itself with exit code 0 (warm-up, call 1)"
    assert results.outcomes[1] == Unmeasured(f"{path}:ends", reason, None, 3, raised=True)


def test_a_process_that_is_killed_as_without_memory_is_not_the_functions_fault(target, in_fork):
    spec = target("import os\ndef f(x): os.kill(os.getpid(), 9)") + ":f"
    outcome = in_fork(Job(spec, device="cpu", sizes=(4,), variants=EAGER), quiet).outcomes[0]
    assert "the process died of SIGKILL" in outcome.reason
    assert (outcome.code, outcome.raised) == (3, False)


def test_a_function_that_does_everything_wrong_but_works_is_counted(wrong):
    path, results, seconds = wrong
    assert operations(results.outcomes[2]) == {"add": 1}
    assert seconds < 120
    assert left_over(str(path)) == []


def test_one_that_ends_while_the_module_is_imported_ends_the_job(target, in_fork):
    path = target("import os\nos._exit(0)")
    with pytest.raises(KernelcountError, match="ended itself with exit code 0") as error:
        in_fork(Job(f"{path}:f", device="cpu", sizes=(4,)), quiet)
    assert error.value.code == 2
    assert "importing" in str(error.value)


def test_out_of_time_says_which_line_it_was_at_and_leaves_no_child_behind(
    target, tmp_path, in_fork
):
    path = target(f"""
        import subprocess, threading, time
        def f(x):
            code = "import time; time.sleep(600)"
            subprocess.Popen(["python3", "-c", code + " # {tmp_path}/orphan-1"])
            subprocess.Popen(
                ["python3", "-c", code + " # {tmp_path}/orphan-2"], start_new_session=True
            )
            threading.Thread(target=time.sleep, args=(600,)).start()
            while True:
                time.sleep(0.01)
    """)
    began = time.monotonic()
    job = Job(f"{path}:f", device="cpu", sizes=(4,), variants=EAGER, timeout=1.0)
    results = in_fork(job, quiet)
    assert time.monotonic() - began < 30
    reason = "no answer within --timeout 1 s; it was at users.py:12, in f"
    assert results.outcomes[0] == Unmeasured("eager", reason, None, 3)
    assert left_over(f"{tmp_path}/orphan-1") == []
    if sys.platform == "linux":  # elsewhere a session of its own cannot be told
        assert left_over(f"{tmp_path}/orphan-2") == []


def test_an_import_that_never_ends_is_ended(target, in_fork):
    path = target("import time\nwhile True: time.sleep(0.01)")
    with pytest.raises(KernelcountError, match="no answer within --timeout 1 s") as error:
        in_fork(Job(f"{path}:f", device="cpu", sizes=(4,), timeout=1.0), quiet)
    assert str(error.value).endswith("it was at users.py:3, in <module>")
    assert error.value.code == 3


def test_keyboard_interrupt_raised_by_the_function_interrupts(target, in_fork):
    path = target("def f(x):\n    raise KeyboardInterrupt")
    with pytest.raises(KernelcountError, match="the function raised KeyboardInterrupt") as error:
        in_fork(Job(f"{path}:f", device="cpu", sizes=(4,)), quiet)
    assert error.value.code == 130


@pytest.mark.parametrize("which", ["f", "g"])
def test_keyboard_interrupt_raised_while_times_are_taken_interrupts_too(target, in_fork, which):
    path = target(f"""
        calls = dict(f=0, g=0)
        def call(name, x):
            calls[name] += 1
            if name == {which!r} and calls[name] == 30:
                raise KeyboardInterrupt
            return x + 1
        def f(x): return call("f", x)
        def g(x): return call("g", x)
    """)
    job = Job(f"{path}:f", device="cpu", sizes=(4,), variants=("eager", f"{path}:g"), seconds=1.0)
    with pytest.raises(Interrupted) as error:
        in_fork(job, quiet)
    assert error.value.code == 130
    assert str(error.value) == (
        "interrupted: the function raised KeyboardInterrupt (timing); what was counted before is"
        " not shown"
    )


def test_a_worker_ends_with_its_parent(target, tmp_path):
    # At its import already, which comes two seconds before the compiler's.
    path = target(f"""
        import os, time
        open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
        time.sleep(600)
    """)
    code = f"""
from kernelcount.runners import in_worker
from kernelcount.model import Job
in_worker(Job({path + ":f"!r}, device="cpu", sizes=(4,)), lambda _: None)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    pid = tmp_path / "pid"
    until = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    process = Path("/proc", pid.read_text())
    while process.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not process.exists()


# ── where it was ─────────────────────────────────────────────────────────────────────────────────

FAULT = """Fatal Python error: Segmentation fault

Current thread 0x00007f6241203b80 (most recent call first):
  File "{torch}/nn/functional.py", line 545 in linear
  File "<string>", line 1 in <lambda>
  File "/home/me/net.py", line 14 in forward
  File "/home/me/net.py", line 3 in f
"""


def test_the_innermost_line_of_the_users_own_is_named(tmp_path):
    import torch

    fault = tmp_path / "fault"
    assert _frame(fault) is None
    fault.write_text(FAULT.format(torch=Path(torch.__file__).parent))
    assert _frame(fault) == "at net.py:14, in forward"


def test_where_there_is_none_nothing_is_named(tmp_path):
    fault = tmp_path / "fault"
    fault.write_text(f'  File "{runners.__file__}", line 3 in f\n')
    assert _frame(fault) is None


# ── the caller's own process ─────────────────────────────────────────────────────────────────────


def test_in_process_leaves_arguments_and_folder_of_the_program_alone(target, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = target("""
        import os, sys
        os.chdir("/")
        sys.argv.append("more")
        def f(x):
            raise ValueError("bad")
    """)
    argv, folder = [*sys.argv], Path.cwd()
    results = in_process(
        Job(f"{path}:f", device="cpu", sizes=(4,), variants=("eager", "compile")), quiet
    )
    assert (sys.argv, Path.cwd()) == (argv, folder)
    assert [o.code for o in results.outcomes.values()] == [2, 3]


def test_in_process_a_keyboard_interrupt_is_the_callers(target, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = target("def f(x):\n    raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        in_process(Job(f"{path}:f", device="cpu", sizes=(4,)), quiet)


# ── outcomes of a job ────────────────────────────────────────────────────────────────────────────


def test_what_is_hopeless_for_one_variant_is_not_tried_for_the_others_at_that_size():
    results = Results(Job("f.py:f", sizes=(8, 9), variants=("eager", "compile", "m:g")))
    results.settle(0, Unmeasured("eager", "out of memory", None, 3), "out of memory", "not tried")
    assert list(results.outcomes) == [0, 1, 2]
    assert results.outcomes[2] == Unmeasured("m:g", "not tried", None, 3)
    assert results.said == {0: "out of memory"}


def test_a_job_that_fails_after_some_outcomes_keeps_them():
    results = Results(Job("f.py:f", variants=("eager", "compile")))
    listener = Listener(results, quiet)
    results.settle(0, Unmeasured("eager", "died"))
    listener.fail("the file is gone\nand more", 2, whole=True)
    assert results.outcomes[1] == Unmeasured("compile", "the file is gone", None, 2)
    assert results.said[1] == "the file is gone\nand more"


def done(index, capture):
    return worker.Done(index, msgspec.Raw(saved.dump([capture])))


def test_a_process_that_ends_while_times_are_taken_costs_those_that_have_none_yet():
    timing = Timing((1.0,), 1, ("eager",))
    remembered = Capture("compile", notes=(Note("memoised", "kept"),))
    results = Results(Job("m:f", variants=("eager", "m:g", "m:h", "compile"), seconds=1.0))
    listener = Listener(results, quiet)
    for index, capture in enumerate(
        [
            Capture("eager"),
            Capture("m:g"),
            Capture("m:h", notes=(Note(NOT_TIMED, "x"),)),
            remembered,
        ]
    ):
        listener.take(worker.Begin(index))
        listener.take(done(index, capture))
    listener.take(worker.Together())
    listener.take(done(0, Capture("eager", timing=timing)))
    listener.fail("the process died of SIGSEGV\nand more", 3)
    notes = [tuple(n.detail for n in results.outcomes[i].notes) for i in range(4)]
    assert notes == [(), ("not timed: the process died of SIGSEGV",), ("x",), ("kept",)]


@pytest.mark.parametrize("sizes", [(4,), (4, 5)], ids=["one size", "a sweep"])
@pytest.mark.parametrize("counted", [0, 1, 2])
@pytest.mark.parametrize("together", [False, True])
def test_an_interrupt_is_one_whatever_is_done_and_never_without_a_word(sizes, counted, together):
    job = Job("m:f", variants=("eager", "m:g"), sizes=sizes, seconds=1.0)
    listener = Listener(Results(job), quiet)
    for index in range(counted):
        listener.take(worker.Begin(index))
        listener.take(done(index, Capture(job.variants[index])))
    listener.take(worker.Together() if together else worker.Begin(min(counted, 1)))
    with pytest.raises(Interrupted, match="interrupted: by the function") as error:
        listener.take(worker.Failed(130, "interrupted: by the function"))
    assert ("what was counted before is not shown" in str(error.value)) == bool(counted)


def test_the_environment_is_told_once_before_anything_is_measured():
    told = []

    class Companion:
        ready = told.append

    listener = Listener(Results(Job("f.py:f")), lambda _: None, Companion)
    cpu = Environment("CPU", "cpu")
    for _ in range(2):
        listener.take(worker.Ready(cpu, Target("f.py:f")))
    assert told == [cpu]


def test_progress_names_the_variant_and_the_size_where_there_are_several():
    said = []
    for sizes in ((), (8, 9)):
        job = Job("f.py:f", sizes=sizes)
        listener = Listener(Results(job), said.append)
        listener.take(worker.Progress("importing torch"))
        listener.take(worker.Begin(1))
        listener.take(worker.Progress("warm-up, call 2"))
    assert said == [
        "importing torch",
        "compile: warm-up, call 2",
        "importing torch",
        "compile at size 8: warm-up, call 2",
    ]
