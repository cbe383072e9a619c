"""Workers forked from a warm process. Its start takes as long as importing torch: some seconds."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from counting import CASES

from kernelcount import warm
from kernelcount.errors import KernelcountError
from kernelcount.model import Capture, Job, Unmeasured


def fork(spec, *variants, **options):
    """What came of a job on paper, by variant."""
    job = Job(spec, variants=variants or ("eager",), device="paper", **options)
    results = warm.in_fork(job, lambda _: None)
    return {o.name: o for o in results.outcomes.values()}


def kernels(outcome):
    assert isinstance(outcome, Capture), outcome
    return outcome.count("kernel")


def test_what_a_module_does_to_its_process_never_reaches_the_next():
    add_relu = f"{CASES / 'operations.py'}:add_relu"
    alone = fork(add_relu, "eager", "compile")
    spoiled = fork(f"{CASES / 'FC67_import_side_effects.py'}:step")
    codes = {note.code for note in spoiled["eager"].notes}
    assert {"default-dtype", "grad-disabled"} <= codes
    assert spoiled["eager"].target.inputs == ("f64[8]",)
    after = fork(add_relu, "eager", "compile")
    assert after == alone
    assert (kernels(after["eager"]), kernels(after["compile"])) == (2, 1)


def test_a_process_that_dies_costs_its_variant_and_the_next_one_has_another(target):
    path = target(
        "import os, signal\n"
        "def f(x): return os.kill(os.getpid(), signal.SIGKILL) if dies() else x + 1\n"
        "def dies(): return not torch.compiler.is_compiling() and ARMED\n"
        "def g(x): return x + 1\n"
        "ARMED = True\n"
    )
    outcomes = fork(f"{path}:f", "eager", f"{path}:g")
    assert isinstance(outcomes["eager"], Unmeasured)
    assert "died of SIGKILL" in outcomes["eager"].reason
    assert kernels(outcomes[f"{path}:g"]) == 1
    assert kernels(fork(f"{path}:g")["eager"]) == 1


def test_a_process_that_ends_itself_as_it_is_imported_says_so(target):
    path = target("import os\nos._exit(7)\ndef f(x): return x")
    with pytest.raises(KernelcountError, match="the process ended itself with exit code 7"):
        fork(f"{path}:f")


def test_one_that_hangs_is_ended_when_time_is_up_with_the_line_it_was_at(target):
    path = target("import time\ndef f(x):\n    time.sleep(600)\n    return x")
    began = time.monotonic()
    (outcome,) = fork(f"{path}:f", timeout=1.0).values()
    assert time.monotonic() - began < 60
    assert "no answer within --timeout 1 s; it was at users.py:4, in f" in outcome.reason


def test_each_has_the_callers_environment_of_the_moment_and_its_folder(
    target, monkeypatch, tmp_path
):
    path = target(
        "import os\n"
        "def f(x): return [x + 1] * int(os.environ.get('OFTEN', 1)) + [os.path.exists('here')]\n"
        "def make_inputs(n=8, device='cpu'):\n"
        "    return (torch.ones(int(os.environ.get('OFTEN', 1)), device=device),)\n"
    )
    for n in (3, 5):
        monkeypatch.setenv("OFTEN", str(n))
        (outcome,) = fork(f"{path}:f").values()
        assert outcome.target.inputs == (f"f32[{n}]",)
    monkeypatch.chdir(tmp_path)
    assert kernels(fork("users.py:f")["eager"]) == 1


SCRIPT = """
import sys
print("main runs", file=sys.stderr)
sys.argv = ["kernelcount", "check", "b.yaml", "--format", "json"]
from kernelcount.cli import main
main()
"""


def test_a_callers_script_is_not_run_again_and_its_folder_and_streams_are_its_own(target, tmp_path):
    target("print('imported')\ndef f(x):\n    print('called')\n    return x + 1")
    target("raise SystemExit('a random.py of the user')", "random.py")
    target("raise SystemExit('a signal.py of the user')", "signal.py")
    (tmp_path / "b.yaml").write_text(
        "target: users.py:f\ndevice: paper\nbudget: {eager: {kernels: 2, launches: 1}}\n"
    )
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "main.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script/main.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(warm.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1, done.stderr
    statuses = [entry["status"] for entry in json.loads(done.stdout)["budgets"]]
    assert statuses == ["broken", "undecided"]
    assert done.stderr.count("main runs") == done.stderr.count("imported\n") == 1
    assert "called\n" in done.stderr


# ── beside what is measured ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "driver", "begins"),
    [
        ({}, True, True),
        ({"device": "cuda:1"}, True, True),
        ({}, False, False),
        ({"device": "paper"}, True, False),
        ({"gpu": "H100"}, True, False),
        ({"device": "cpu"}, True, False),
    ],
)
def test_torch_is_imported_ahead_where_there_may_be_a_gpu(
    monkeypatch, tmp_path, options, driver, begins
):
    begun = []
    monkeypatch.setattr(warm, "_serve", lambda *, quiet: begun.append(quiet))
    monkeypatch.setattr(warm, "_DRIVER", tmp_path if driver else tmp_path / "none")
    with warm.beside(Job("a.py:f", **options)) as paper:
        assert begun == [True] * begins
        assert paper.found({}, lambda _: None) == {}


@pytest.mark.parametrize(("quiet", "heard"), [(True, ""), (False, "out\nerr\n")])
def test_what_the_warm_process_says_at_its_start_never_reaches_stdout(
    monkeypatch, capfd, quiet, heard
):
    def starts():
        os.write(1, b"out\n")
        os.write(2, b"err\n")

    monkeypatch.setattr(warm, "_served", threading.Event())
    monkeypatch.setattr(warm.forkserver, "ensure_running", starts)
    warm._serve(quiet=quiet)
    os.write(1, b"afterwards\n")
    assert capfd.readouterr() == ("afterwards\n", heard)
