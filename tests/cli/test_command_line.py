"""What a person or a program sees of the command line, in this process: no worker is started."""

import dataclasses
import inspect
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from counting import CASES

from kernelcount import __version__, app, runners
from kernelcount.cli import output
from kernelcount.cli.run import run
from kernelcount.model import (
    Capture,
    Check,
    Diagnosis,
    Environment,
    Job,
    Records,
    Report,
    Run,
)

OPERATIONS = CASES / "operations.py"
SAVED = Path(__file__).parent.parent / "data"


# ── a good run ───────────────────────────────────────────────────────────────────────────────────

ONE = ("--variant", "eager", "--device", "cpu", "--seconds", "0")


@pytest.mark.parametrize(
    ("form", "begins"),
    [("table", "add_relu"), ("json", '{\n  "schema": 1,'), ("markdown", ""), ("csv", "")],
)
def test_every_format_is_written(kernelcount, form, begins):
    code, out, err = kernelcount("run", f"{OPERATIONS}:add_relu", *ONE, "--format", form)
    assert code == 0, err
    assert out.startswith(begins)
    assert out.endswith("\n")
    assert all(line.endswith(" s)") for line in err.splitlines())  # progress, where it is slow


def test_a_run_says_what_it_counted(kernelcount):
    code, out, _ = kernelcount("run", f"{OPERATIONS}:add_relu", *ONE, "--format", "json")
    document = json.loads(out)
    (variant,) = document["variants"]
    assert code == 0
    assert (document["command"], document["target"]["spec"]) == ("run", f"{OPERATIONS}:add_relu")
    assert document["target"]["inputs"] == ["f32[64,64]"]
    assert variant["cpu_ops"] == {"aten": 2, "generated": 0}
    assert (variant["kernels"], variant["launches"]) == (None, None)


def test_a_module_that_reads_the_arguments_and_sets_defaults_is_respected(kernelcount, tmp_path):
    # A copy, for a process imports a file once, and test_cases.py has its effects to look at.
    path = shutil.copy(CASES / "FC67_import_side_effects.py", tmp_path)
    code, out, err = kernelcount("run", f"{path}:step", *ONE, "--size", "4", "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert document["target"]["inputs"] == ["f64[4]"]
    codes = [note["code"] for note in document["variants"][0]["notes"]]
    assert codes == ["default-dtype", "grad-disabled"]


def test_a_list_of_sizes_is_a_sweep(kernelcount, target):
    spec = target("def f(x): return x + 1") + ":f"
    code, out, _ = kernelcount("run", spec, *ONE, "--size", "8,1e3", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert [run["size"] for run in document["sizes"]] == [8, 1000]
    assert "variants" not in document


def test_inputs_are_given_one_by_one(kernelcount, target):
    spec = target("def f(x, k, mask=None): return x.masked_fill(mask, 0.0) * k") + ":f"
    given = ("--input", "bf16[N,2]", "--input", "3", "--input", "mask=bool[N,2]", "--size", "4")
    code, out, err = kernelcount("run", spec, *ONE, *given, "--format", "json")
    assert code == 0, err
    assert json.loads(out)["target"]["inputs"] == ["bf16[4,2]", "3", "mask=bool[4,2]"]


def test_saved_captures_and_the_report_are_written_and_read_again(kernelcount, tmp_path):
    saved, report = tmp_path / "saved.json", tmp_path / "report.json"
    files = ("--save", saved, "--output", report, "--format", "json")
    code, out, err = kernelcount("run", f"{OPERATIONS}:mlp", *ONE, *files)
    assert (code, out) == (0, ""), err
    first = json.loads(report.read_text())
    code, out, _ = kernelcount("read", saved, "--format", "json")
    assert code == 0
    again = json.loads(out)
    assert again["variants"][0]["rows"] == first["variants"][0]["rows"]
    assert again["environment"] == first["environment"]


def test_traces_of_several_variants_go_to_several_files(kernelcount, target, tmp_path):
    path = target("def f(x): return x + 1\ndef g(x): return x * 1")
    variants = ("--variant", "eager", "--variant", "compile:backend=eager")
    trace = ("--trace", tmp_path / "t.json.gz", "--size", "4", "--device", "cpu")
    code, _, err = kernelcount("run", f"{path}:f", *variants, *trace)
    assert code == 0, err
    made = sorted(p.name for p in tmp_path.glob("t.*"))
    assert made == ["t.compile-backend=eager.json.gz", "t.eager.json.gz"]
    code, _, err = kernelcount("read", tmp_path / made[1])
    assert code == 3
    assert "CPU operations alone" in err


def test_the_same_call_gives_the_same_counts(kernelcount):
    rows = []
    for _ in range(2):
        _, out, _ = kernelcount("run", f"{OPERATIONS}:mlp", *ONE, "--format", "json")
        rows.append([(r["name"], r["count"]) for r in json.loads(out)["variants"][0]["rows"]])
    assert rows[0] == rows[1]


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def test_where_the_function_raises_there_is_a_document_with_an_error_and_the_other_variants(
    kernelcount, target
):
    spec = target("""
        def f(x):
            raise ValueError("bad batch 3")
        def g(x):
            return x + 1
    """)
    variants = ("--variant", "eager", "--variant", f"{spec}:g", "--size", "4", "--device", "cpu")
    code, out, err = kernelcount("run", f"{spec}:f", *variants, "--format", "json")
    document = json.loads(out)
    assert code == 2
    assert document["error"] == {"code": 2, "message": "eager: raised ValueError: bad batch 3"}
    eager, other = document["variants"]
    assert (eager["status"], eager["reason"]) == ("unmeasured", "raised ValueError: bad batch 3")
    assert (other["status"], other["cpu_ops"]["aten"]) == ("measured", 1)
    assert err.splitlines()[0] == "kernelcount: eager: raised ValueError: bad batch 3"
    assert err.splitlines()[-1] == "ValueError: bad batch 3"
    assert "kernelcount/" not in err


def test_an_error_of_both_variants_is_told_once(kernelcount, target):
    spec = target("def f(x): raise ValueError('bad')") + ":f"
    variants = ("--variant", "eager", "--variant", "compile:backend=eager", "--size", "4")
    code, out, err = kernelcount("run", spec, *variants, "--device", "cpu")
    assert code == 2
    assert err.count("Traceback") == 1
    assert err.startswith("kernelcount: eager, compile:backend=eager: raised ValueError: bad\n")
    assert "Unknown: raised ValueError: bad." in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "nowhere.py:f"), 2, "there is no file nowhere.py"),
        (("run", f"{OPERATIONS}:nope", "--device", "cpu"), 2, "has no nope"),
        (("run", f"{OPERATIONS}:add_relu", "--size", "12x"), 2, "'12x' is not a size"),
        (("run", f"{OPERATIONS}:add_relu", "--timeout", "0"), 2, "--timeout 0"),
        (("run", f"{OPERATIONS}:add_relu", "--timeout", "soon"), 2, "--timeout"),
        (("run", f"{OPERATIONS}:add_relu", "--sizee", "8"), 2, "No such option: --sizee"),
        (("run", f"{OPERATIONS}:add_relu", "--output", "/no/where/x"), 2, "there is no folder"),
        (("run", f"{OPERATIONS}:add_relu", "--device", "cuda"), 3, "sees no cuda device"),
        (("run", f"{OPERATIONS}:add_relu", "--device", "gpu"), 2, "did you mean cuda?"),
        (("run",), 2, "Missing argument 'TARGET'"),
        (("read", "nowhere.json"), 2, "nowhere.json: no such file"),
        (("raed", "x.json"), 2, "No such command 'raed'"),
    ],
)
def test_a_failure_is_a_few_lines_and_with_json_a_document_too(kernelcount, arguments, code, said):
    if "cuda" in arguments:
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU here")
    got, out, err = kernelcount(*arguments)
    assert (got, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) <= 3
    got, out, err = kernelcount(*arguments, "--format", "json")
    document = json.loads(out)
    assert got == document["error"]["code"] == code
    assert said in document["error"]["message"]
    assert document["command"] == (arguments[0] if arguments[0] != "raed" else "")
    assert said in err


def test_an_unknown_format_is_refused_with_the_nearest_name(kernelcount):
    code, out, err = kernelcount("run", f"{OPERATIONS}:mlp", "--format", "jsn")
    assert (code, out) == (2, "")
    assert "'jsn' is not one of table, json, markdown, csv; did you mean json?" in err


def test_a_report_that_cannot_be_written_is_shown_instead(kernelcount):
    code, out, err = kernelcount("run", f"{OPERATIONS}:mlp", *ONE, "--output", "/dev/full")
    assert code == 2
    assert out.startswith("mlp")
    assert err == "kernelcount: --output /dev/full: No space left on device"


def test_control_characters_of_the_users_never_reach_the_terminal(kernelcount, target):
    spec = target("def f(x): raise ValueError('\\x1b[31mred\\x07')") + ":f"
    _, out, err = kernelcount("run", spec, *ONE, "--size", "4")
    assert "\x1b" not in out + err
    assert "\\x1b[31mred" in err


# ── help and start ───────────────────────────────────────────────────────────────────────────────


def test_the_version_is_told(kernelcount):
    assert kernelcount("--version") == (0, f"kernelcount {__version__}\n", "")


def test_no_arguments_at_all_show_the_help_and_are_no_success(kernelcount):
    code, out, err = kernelcount()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")


def test_help_names_every_flag_of_the_contract_and_no_hidden_device(kernelcount):
    code, out, err = kernelcount("run", "--help")
    assert (code, err) == (0, "")
    flags = "size input inputs dtype variant device backward no-grad eval timeout format output"
    for flag in (*flags.split(), "save", "trace", "seed", "full", "plot"):
        assert f"--{flag} " in out
    assert "fake" not in out.lower()


def test_help_loads_no_torch_and_takes_no_time():
    code = (
        "import sys\n"
        "from kernelcount import cli\n"
        "sys.argv = ['kernelcount', 'run', '--help']\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'rich', 'yaml', 'msgspec', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = os.times()  # what it took of a core, whatever else the machine does: some 0.2 s
    took = after.children_user + after.children_system
    assert took - before.children_user - before.children_system < 1.0


def test_the_command_line_counts_a_saved_capture_without_torch(tmp_path):
    saved = tmp_path / "saved.json"
    capture = Capture("eager", Environment(kind="cuda"), records=Records())
    app.save(app.Answer(Report("run", Environment(), (Run((capture,)),))), saved)
    code = (
        "import sys\n"
        "from kernelcount import cli\n"
        f"sys.argv = ['kernelcount', 'read', {str(saved)!r}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def broken():
    """A stream whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        yield stream


@pytest.fixture
def full():
    """A stream onto a full disk."""
    with Path("/dev/full").open("w") as stream:
        yield stream


def test_a_closed_pipe_is_no_error(monkeypatch, broken):
    monkeypatch.setattr(sys, "stdout", broken)
    output.write("much\n" * 100_000)
    output.write("more\n")


def test_so_it_is_on_stderr(monkeypatch, broken):
    monkeypatch.setattr(sys, "stderr", broken)
    output.tell("a line")
    output.tell("another")


def test_no_line_of_an_error_is_a_command_to_github(capsys):
    output.tell("users.py:f: raised\n::error::mine\n  ::set-env name=A::b\nat a::b, ##[error]x")
    assert capsys.readouterr().err.splitlines() == [
        "kernelcount: users.py:f: raised",
        "kernelcount: ::error::mine",
        "kernelcount:   ::set-env name=A::b",
        "at a::b, ## [error]x",
    ]
    output.tell("")
    assert capsys.readouterr().err == "kernelcount: \n"


def test_nor_is_a_line_of_progress(monkeypatch, capsys):
    with output.status() as say:
        monkeypatch.setattr("time.monotonic", lambda: 1e9)
        say("::error::x.py")
    assert capsys.readouterr().err.startswith("kernelcount: ::error::x.py (")


def test_a_full_disk_is_one(monkeypatch, capsys, full):
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(SystemExit) as ended:
        output.write("text\n")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "kernelcount: stdout: No space left on device\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_redrawn_on_a_terminal_and_taken_away_again(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "_REDRAW", 0.0)
    with output.status() as say:
        say("eager: warm-up\x1b[2J")
    assert terminal.getvalue() == "\r\x1b[2Keager: warm-up\\x1b[2J (0 s)\r\x1b[2K"


def test_elsewhere_it_is_a_line_now_and_then_and_at_first_none(monkeypatch, capsys):
    with output.status() as say:
        say("too early")
        monkeypatch.setattr("time.monotonic", lambda: 1e9)
        say("later")
        say("too soon")
    assert capsys.readouterr().err.startswith("later (")
    assert "too" not in capsys.readouterr().err


def test_job_options_reach_the_job(kernelcount, monkeypatch, target):
    jobs = []

    def runner(job, *_):
        jobs.append(job)
        raise SystemExit(0)

    monkeypatch.setattr(runners, "in_worker", runner)
    spec = target("def f(x): return x") + ":f"
    flags = "--size 64k --dtype bf16 --device cuda --seed 3 --backward --eval --timeout 2.5"
    flags += " --seconds 0.5 --reference --cold"
    kernelcount("run", spec, *flags.split(), "--inputs", "mine", "--variant", "compile:dynamic")
    assert jobs == [
        Job(
            spec,
            sizes=(64000,),
            maker="mine",
            dtype="bf16",
            device="cuda",
            variants=("compile:dynamic",),
            seed=3,
            backward=True,
            evaluate=True,
            timeout=2.5,
            seconds=0.5,
            reference=True,
            cold=True,
        )
    ]


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def looked(monkeypatch):
    """What the process that looks would have found."""

    def found(**result):
        checks = (Check("GPU", False, "there is none", "--device paper"),)
        monkeypatch.setattr(app, "doctor", lambda *_: Diagnosis(checks, **result))

    return found


def test_doctor_says_what_can_be_measured(kernelcount, looked, tmp_path):
    looked()
    assert kernelcount("doctor")[:2] == (0, "GPU  no   there is none\n          --device paper\n")
    code, out, _ = kernelcount("doctor", "--format", "json", "--output", tmp_path / "found.json")
    assert (code, out) == (0, "")
    assert json.loads((tmp_path / "found.json").read_text())["checks"][0]["ok"] is False


def test_an_atlas_that_could_not_be_recorded_is_exit_code_3(kernelcount, looked, tmp_path):
    looked(code=3, said="there is no GPU here to record on")
    code, out, err = kernelcount("doctor", "--record-atlas", tmp_path / "a.json")
    assert (code, err) == (3, "kernelcount: there is no GPU here to record on")
    assert out.startswith("GPU  no")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--record-atlas", "/nowhere/a.json"), "there is no folder /nowhere"),
        (("--format", "csv"), "--format 'csv' is not one of table, json"),
        (("--gpu", "H200"), "No such option: --gpu"),
    ],
)
def test_doctor_refuses_what_it_cannot_do(kernelcount, looked, arguments, message):
    looked()
    code, out, err = kernelcount("doctor", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_every_flag_of_a_run_is_a_field_of_the_job_or_is_made_into_one():
    flags = set(inspect.signature(run).parameters)
    fields = {f.name for f in dataclasses.fields(Job)}
    made = {"target": "spec", "size": "sizes", "variant": "variants", "trace": "traces"}
    assert set(made) <= flags
    assert set(made.values()) <= fields
    shown = {"form", "output", "save", "plot", "full", "no_paper"}
    assert flags - set(made) - shown == fields - set(made.values())
