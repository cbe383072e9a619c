"""`run --ncu` from end to end, on the fake device and under a fake ncu.

Each call of ncu that runs the program starts a Python that imports torch, some four seconds' worth:
where it is the log that matters, the fake ncu is told what the program would have launched.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kernelcount.examination import counters as examined
from kernelcount.model import Environment
from kernelcount.ncu import process
from kernelcount.traces import saved

FAKE = Path(__file__).parent / "fake_ncu.py"
TARGET = """
    import sys
    from kernelcount.devices.fake import launch
    def f(x):
        launch("void ns::add<float>(float*)", duration_us=3.0, op="aten::add")
        launch("triton_poi_fused_0", duration_us=1.0)
"""
LAUNCHED = ("void ns::add<float>(float*)", "triton_poi_fused_0")
# Were it to reach stdout, there would be more than one document.
PRINTS = '        if "pytest" not in sys.modules: print("under ncu")'
EAGER = ("--device", "fake", "--variant", "eager", "--seconds", "0", "--no-paper", "--ncu")


@pytest.fixture
def ncu(monkeypatch, tmp_path):
    """Put a fake ncu on the path; what it is called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program, played = folder / "ncu", folder / FAKE.name
    played.symlink_to(FAKE)  # so that its processes bear the name of this folder
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{played}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    monkeypatch.setenv("FAKE_NCU_CALLS", str(tmp_path / "calls"))

    def calls():
        if not (tmp_path / "calls").is_file():
            return []
        return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]

    return calls


@pytest.fixture
def run(kernelcount, target, ncu, monkeypatch):
    """Run a function of the user's with --ncu: its one variant in the JSON, and the exit code."""

    def ran(text=TARGET, *flags, failure="", launched=()):
        monkeypatch.setenv("FAKE_NCU", failure)
        monkeypatch.setenv("FAKE_NCU_LAUNCHED", json.dumps(launched) if launched else "")
        spec = f"{target(text)}:f"
        code, out, err = kernelcount("run", spec, *EAGER, *flags, "--format", "json")
        assert "variants" in out, err
        return json.loads(out)["variants"][0], code

    return ran


def notes(variant):
    return {note["code"]: note["detail"] for note in variant["notes"]}


def test_the_steady_call_is_run_again_and_every_kernel_has_its_counters(
    run, ncu, tmp_path, monkeypatch
):
    # The second run differs from the first in what is asked for and in nothing else: see below.
    monkeypatch.setenv("FAKE_NCU_ONCE", str(tmp_path / "launched"))
    variant, code = run(TARGET + PRINTS, "--save", str(tmp_path / "saved.json"))
    assert (code, variant["kernels"], variant["notes"]) == (0, 2, [])
    assert variant["dram"] == {"read": 1_600_001_024, "written": 799_997_952, "basis": "ncu"}
    assert variant["rows"][0]["counters"] == {
        "dram_read": 800_000_512, "dram_written": 399_998_976, "time_ns": 276_320,
        "occupancy": 0.8125, "dram_share": 0.925, "sm_share": pytest.approx(0.115),
        "stall": "long_scoreboard", "basis": "ncu",
    }  # fmt: skip
    (kept,) = saved.load((tmp_path / "saved.json").read_bytes(), "saved")
    assert [c.stall for c in kept.counters] == ["long_scoreboard"] * 2
    first, second = ncu()
    programs = [flags[flags.index(sys.executable) :] for flags in (first, second)]
    folders = [str(Path(f[f.index("--log-file") + 1]).parent) for f in (first, second)]
    assert [p[-1].count(f) for p, f in zip(programs, folders, strict=True)] == [1, 1]
    assert programs[0] == [part.replace(*folders[::-1]) for part in programs[1]]
    for flags in (first, second):
        text = " ".join(flags)
        for flag in (
            "--csv", "--print-units base", "--clock-control none", "--cache-control none",
            "--profile-from-start off", "--target-processes application-only",
        ):  # fmt: skip
            assert flag in text
    assert first[first.index("--metrics") + 1].startswith("dram__bytes_read.sum,")
    assert "group:smsp__pcsamp_warp_stall_reasons" in second[second.index("--metrics") + 1]


def test_stdout_holds_the_result_alone_whatever_the_user_prints(
    kernelcount_forked, target, ncu, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU_LAUNCHED", json.dumps(LAUNCHED))
    spec = f"{target(TARGET + '        print(1)')}:f"
    code, out, err = kernelcount_forked("run", spec, *EAGER, "--full")
    assert code == 0, err
    assert "\n1\n" not in out
    assert "1" in err.splitlines()
    assert "DRAM bytes 2.4 GB by Nsight Compute" in " ".join(out.split())
    assert "waits: long scoreboard" in " ".join(out.split())


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ("permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("busy", "another profiler uses the GPU's counters"),
        ("strange", "ncu: Something nobody has heard of"),
    ],
)
def test_where_counters_cannot_be_read_a_note_says_why_and_the_rest_stands(run, ncu, failure, said):
    variant, code = run(failure=failure)
    assert (code, variant["kernels"], variant["dram"]) == (0, 2, None)
    assert said in notes(variant)["no-counters"]
    assert variant["rows"][0]["counters"] is None
    assert len(ncu()) == 1


def test_other_kernels_than_were_counted_are_not_matched(run):
    variant, code = run(failure="other", launched=LAUNCHED)
    assert (code, variant["dram"]) == (0, None)
    assert notes(variant)["ncu-differs"] == (
        "under Nsight Compute the call launched other kernels: another, triton_poi_fused_0; "
        "no counter is matched to any"
    )


def test_another_number_of_kernels_is_told(run):
    variant, _ = run(launched=(*LAUNCHED, LAUNCHED[1]))
    assert notes(variant)["ncu-differs"].startswith(
        "under Nsight Compute the call launched 3 kernels where 2 were counted"
    )


def test_bytes_of_several_runs_of_a_kernel_are_told(run):
    variant, _ = run(failure="replayed", launched=LAUNCHED)
    assert "each kernel was run 2 times" in notes(variant)["ncu-replayed"]
    assert variant["dram"] is not None


def test_a_function_that_fails_there_alone_keeps_its_count(run):
    variant, code = run("""
        import sys
        from kernelcount.devices.fake import launch
        def f(x):
            if "pytest" not in sys.modules:
                raise ValueError("not twice")
            launch("k")
    """)
    assert (code, variant["kernels"]) == (0, 1)
    assert notes(variant)["no-counters"] == ("no counters: under ncu: raised ValueError: not twice")


def test_one_that_hangs_is_ended_with_all_that_it_started(run, monkeypatch, tmp_path):
    monkeypatch.setattr(process, "LONGEST", 1.0)
    began = time.monotonic()
    variant, code = run(failure="hang")
    assert time.monotonic() - began < 20
    assert (code, variant["kernels"]) == (0, 2)
    assert "no answer under ncu within 1 s" in notes(variant)["no-counters"]
    left = subprocess.run(["pgrep", "-f", f"{tmp_path}/bin/fake_ncu.py"], capture_output=True)
    assert left.stdout == b""


def test_without_ncu_it_is_said_where_it_comes_from(run, monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join(("/usr/bin", "/bin")))
    monkeypatch.setattr(examined, "_PLACE", "/nowhere")
    if shutil.which("ncu"):
        pytest.skip("ncu is installed here")
    variant, code = run()
    assert code == 0
    assert "Nsight Compute is not installed" in notes(variant)["no-counters"]


def test_a_function_that_launches_nothing_is_not_asked_about(run, ncu):
    variant, code = run("def f(x):\n    pass")
    assert (code, variant["dram"], ncu()) == (0, None, [])


def test_the_process_ends_when_its_parent_is_gone(tmp_path):
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    wait = f"from pathlib import Path; child._end_with(Path({str(pipe)!r}))"
    child = subprocess.Popen([sys.executable, "-c", f"from kernelcount.ncu import child; {wait}"])
    alive, until = None, time.monotonic() + 60
    while alive is None and time.monotonic() < until:
        with suppress(OSError):  # nobody reads from it yet
            alive = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    os.close(alive)
    assert child.wait(10) == 130


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--device", "cpu"), "the CPU has none of these"),
        (("--device", "paper"), "on paper nothing runs"),
        (("--gpu", "A100"), "on paper nothing runs"),
        (("--device", "xpu"), "this is one of Intel's"),
    ],
)
def test_where_there_are_no_such_counters_nothing_is_begun(kernelcount, target, flags, why):
    spec = f"{target('raise SystemExit')}:f"
    code, _, err = kernelcount("run", spec, "--ncu", *flags)
    assert code == 2
    assert "--ncu" in err
    assert why in err


def test_a_device_that_is_found_to_be_another_makers_is_refused(kernelcount, target, monkeypatch):
    from kernelcount.devices.fake import Fake

    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    monkeypatch.setattr(Fake, "environment", lambda _: Environment("AMD Instinct MI300X", "hip"))
    code, _, err = kernelcount("run", f"{target('def f(x): pass')}:f", "--device", "fake", "--ncu")
    assert code == 2
    assert "one of AMD's" in err
