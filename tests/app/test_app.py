"""The use cases: what is refused before anything runs, and what is said beside a report."""

import sys
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcount import app
from kernelcount.errors import KernelcountError, UsageError
from kernelcount.model import (
    Beside,
    Capture,
    Environment,
    Job,
    Lane,
    Note,
    Rates,
    Records,
    Report,
    Run,
    Timing,
    Unmeasured,
    Work,
)
from kernelcount.runners import Results

SPEC = str(Path(__file__).parent.parent / "cases" / "operations.py") + ":add_relu"


# ── refused at once ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variants": ("egar",)}, "--variant 'egar'"),
        ({"variants": ("eager", "eager")}, "--variant eager stands twice"),
        ({"device": "cudaa"}, "'cudaa' is not one of cuda, xpu, cpu, paper; did you mean cuda?"),
        ({"inputs": ("f32[N",)}, "--input f32[N: the ] is missing"),
        ({"dtype": "float32"}, "did you mean f32?"),
        ({"dtype": "bfloat16"}, "did you mean bf16?"),
        ({"inputs": ("f32[N]",), "maker": "mine"}, "--input and --inputs exclude each other"),
        ({"timeout": 0.0}, "--timeout 0: write a number of seconds above 0"),
        ({"timeout": -1.0}, "--timeout -1"),
        ({"timeout": float("nan")}, "--timeout nan"),
        ({"timeout": float("inf")}, "--timeout inf"),
        ({"backward": True, "no_grad": True}, "--backward and --no-grad exclude each other"),
        ({"sizes": (8, 16, 8)}, "--size: 8 stands twice"),
        ({"remedy": True, "seconds": 0.0}, "--remedy and --seconds 0 exclude each other"),
        ({"reference": True, "seconds": 0.0}, "--reference and --seconds 0 exclude each other"),
        ({"cold": True, "seconds": 0.0}, "--cold and --seconds 0 exclude each other"),
        ({"cold": True, "seconds": 1.0, "device": "cpu"}, "--cold keeps inputs out of a GPU's"),
        (
            {"seed": 99999999999999999999},
            f"--seed 99999999999999999999: write a number from {-(2**63)} to {2**63 - 1}",
        ),
        ({"seed": 2**63}, "--seed 9223372036854775808: write a number from"),
        ({"seed": -(2**63) - 1}, "--seed -9223372036854775809: write a number from"),
        ({"seconds": float("inf")}, "write a number of seconds, at most 1e+09"),
        ({"remedy": True, "seconds": 1.0, "device": "paper"}, "--remedy: nothing runs on paper"),
        ({"remedy": True, "seconds": 1.0, "gpu": "A100"}, "--remedy: nothing runs on paper"),
    ],
)
def test_what_cannot_be_is_refused_before_a_worker_starts(options, said):
    with pytest.raises(UsageError) as error:
        app.check_job(Job(SPEC, **options))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nowhere.py:f", "there is no file nowhere.py"),
        (SPEC.partition(":")[0], "does not say which function"),
        (SPEC.replace("operations", "operation"), "did you mean"),
        (":f", "names no module"),
    ],
)
def test_a_target_that_is_not_there_is_refused_before_a_worker_starts(spec, said):
    with pytest.raises(UsageError) as error:
        app.check_job(Job(spec))
    assert said in str(error.value)


def test_files_that_could_not_be_written_are_refused_before_anything_is_measured(tmp_path):
    missing = tmp_path / "missing" / "report.json"
    with pytest.raises(UsageError, match=f"--output .*: there is no folder {missing.parent}"):
        app.check_files(output=missing, save=None)
    with pytest.raises(UsageError, match="this is a folder; name a file in it"):
        app.check_files(save=tmp_path)


def test_two_flags_that_name_one_file_are_refused(tmp_path):
    file = tmp_path / "x.json"
    with pytest.raises(UsageError, match="--output and --save name the same file"):
        app.check_files(output=file, save=file)
    app.check_files(output=Path("/dev/null"), save=Path("/dev/null"))


@pytest.mark.parametrize(
    ("variants", "sizes", "files"),
    [
        (("eager",), (), ["t.json.gz"]),
        (
            ("eager", "compile:dynamic"),
            (),
            ["t.eager.json.gz", "t.compile-dynamic.json.gz"],
        ),
        (("eager",), (8, 16), ["t.8.eager.json.gz", "t.16.eager.json.gz"]),
        (("../a.py:f", "eager"), (8,), ["t.---a.py-f.json.gz", "t.eager.json.gz"]),
    ],
)
def test_each_variant_and_size_has_a_trace_file_of_its_own(variants, sizes, files):
    made = app.trace_files(Path("/x/t.json.gz"), variants, sizes)
    assert [Path(name).name for name in made] == [f.replace("---a", "..-a") for f in files]


def test_a_trace_keeps_a_name_without_a_suffix():
    assert app.trace_files(Path("/x/t"), ("a", "b"), ()) == ("/x/t.a", "/x/t.b")


# ── what is said on stderr ───────────────────────────────────────────────────────────────────────


def answer(job, *outcomes, said=()):
    """The answer to a job that had these outcomes."""

    def runner(job, *_):
        results = Results(job, dict(enumerate(outcomes)), {}, Environment(), dict(said))
        results.unwritten = ["--trace t.json: No space left on device"] if job.traces else []
        return results

    return app.run(job, runner, lambda _: None)


FINE = Capture("eager", records=Records())


def test_what_paper_says_stands_beside_what_was_measured():
    said = Beside(FINE, same_calls=True)

    class OnPaper:
        def ready(self, environment):
            self.device = environment.device

        def found(self, outcomes, _):
            assert self.device == "NVIDIA H200"
            return {0: said} if outcomes[0] == FINE else {}

    def runner(job, _, companion):
        companion.ready(Environment("NVIDIA H200", "cuda"))
        return Results(job, {0: FINE, 1: Unmeasured("compile", "lost")})

    report = app.run(Job(SPEC), runner, lambda _: None, OnPaper()).report
    assert report.runs[0].besides == (said, None)


def on_an_h200(job, *_):
    """A runner that measures one kernel for a microsecond."""
    kernel = Records(
        (Work("k", "kernel", "add", (8,)),), (Lane("0", "7"),),
        array("i", [0]), array("i", [0]), array("q", [0]), array("q", [1000]),
    )  # fmt: skip
    environment = Environment("NVIDIA H200", "cuda", "2.11.0")
    timing = Timing((10_000.0,))
    launched = Capture("eager", environment, records=kernel, launches=1, timing=timing)
    return Results(job, {0: launched, 1: Unmeasured("compile", "lost")})


def test_each_variant_that_was_measured_has_a_verdict_by_the_rates_of_its_gpu():
    asked = []

    def rates(device, torch):
        asked.append((device, torch))
        return Rates(device, torch, 132, eager_ns=9_000.0)

    run = app.run(Job(SPEC), on_an_h200, lambda _: None, rates=rates).report.runs[0]
    assert asked == [("NVIDIA H200", "2.11.0")]
    assert [v and v.verdict for v in run.verdicts] == ["launch-bound", None]


def test_without_rates_of_its_own_a_gpu_is_judged_by_those_of_its_data_sheet():
    found = app.run(Job(SPEC), on_an_h200, lambda _: None, rates=lambda *_: None).report.runs[0]
    (eager, _) = found.verdicts
    assert eager.verdict is None
    assert "what launching costs here was not measured" in eager.reason


def test_naming_a_card_means_paper():
    asked = []

    def runner(job, *_):
        asked.append(job.device)
        return Results(job, {0: FINE, 1: FINE})

    app.run(Job(SPEC, gpu="A100"), runner, lambda _: None)
    assert asked == ["paper"]


RAISED = "raised ValueError: bad\nTraceback (most recent call last):\n  ..."


def test_an_error_that_all_variants_share_is_said_once():
    eager = Unmeasured("eager", "raised ValueError: bad", None, 2)
    compiled = Unmeasured("compile", "raised ValueError: bad", None, 3)
    got = answer(Job(SPEC), eager, compiled, said=((0, RAISED), (1, RAISED)))
    assert got.said == (f"eager, compile: {RAISED}",)
    assert got.exit_code == 2


def test_where_eager_fails_too_the_compilers_own_frames_are_left_out():
    eager = Unmeasured("eager", "raised ValueError: bad", None, 2)
    compiled = Unmeasured("compile", "raised TorchError: bad", None, 3)
    got = answer(Job(SPEC), eager, compiled, said=((0, RAISED), (1, "raised TorchError: bad\n...")))
    assert got.said == (f"eager: {RAISED}", "compile: raised TorchError: bad")


def test_a_reason_without_frames_joins_the_same_reason_with_them():
    eager = Unmeasured("eager", "raised ValueError: bad", None, 2)
    compiled = Unmeasured("compile", "raised ValueError: bad", None, 2)
    got = answer(Job(SPEC), eager, compiled, said=((0, RAISED),))
    assert got.said == (f"eager, compile: {RAISED}",)


def test_where_eager_worked_they_are_shown():
    compiled = Unmeasured("compile", "raised TorchError: bad", None, 3)
    got = answer(Job(SPEC), FINE, compiled, said=((1, "raised TorchError: bad\n..."),))
    assert got.said == ("compile: raised TorchError: bad\n...",)
    assert got.exit_code == 3


def test_a_variant_that_failed_when_it_was_timed_makes_the_exit_code_3():
    untimed = replace(FINE, notes=(Note("not-timed", "not timed: raised ValueError"),))
    assert answer(Job(SPEC), FINE, untimed).exit_code == 3
    assert Report("read", Environment(), (Run((untimed,)),)).exit_code == 0


def test_another_implementation_that_fails_is_shown_whatever_eager_did():
    job = Job(SPEC, variants=("eager", "m:g"))
    eager = Unmeasured("eager", "raised ValueError: bad", None, 2)
    other = Unmeasured("m:g", "raised TypeError: other", None, 3)
    got = answer(job, eager, other, said=((0, RAISED), (1, "raised TypeError: other\n...")))
    assert got.said[1] == "m:g: raised TypeError: other\n..."


def test_a_reason_is_said_even_where_there_is_nothing_more_to_say():
    got = answer(Job(SPEC), FINE, Unmeasured("compile", "another profiler", FINE, 3))
    assert got.said == ("compile: another profiler",)


def test_of_several_sizes_the_one_meant_is_named():
    job = Job(SPEC, sizes=(8, 9), variants=("eager",))
    failed = Unmeasured("eager", "out of memory", None, 3)
    assert answer(job, FINE, failed).said == ("eager at size 9: out of memory",)


def test_a_file_that_could_not_be_written_is_exit_code_2_although_all_was_measured():
    job = Job(SPEC, variants=("eager",), traces=("t.json",))
    got = answer(job, FINE)
    assert got.unwritten == ("--trace t.json: No space left on device",)
    assert got.exit_code == 2


def test_captures_that_cannot_be_saved_leave_the_answer_as_it_is(tmp_path):
    got = answer(Job(SPEC, variants=("eager",)), FINE)
    assert app.save(got, tmp_path / "saved.json").unwritten == ()
    failed = app.save(got, tmp_path)
    assert failed.unwritten == (f"--save {tmp_path}: Is a directory",)
    assert failed.report == got.report


def test_saved_captures_are_read_back_with_the_same_counts(count, tmp_path):
    from kernelcount import runners

    job = Job(SPEC, device="cpu", variants=("eager", "compile:backend=eager"))
    ran = app.run(job, runners.in_process, lambda _: None)
    app.save(ran, tmp_path / "saved.json")
    read = app.read([tmp_path / "saved.json"], None, lambda *_: None)
    assert [o.rows() for o in read.report.outcomes] == [o.rows() for o in ran.report.outcomes]
    assert [o.name for o in read.report.outcomes] == [
        f"{tmp_path / 'saved.json'}:eager",
        f"{tmp_path / 'saved.json'}:compile:backend=eager",
    ]


# ── read ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    good = tmp_path / "good.json"
    app.save(answer(Job(SPEC, variants=("eager",)), FINE), good)
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    got = app.read([good, bad], None, lambda *_: None)
    assert [type(o) for o in got.report.outcomes] == [Capture, Unmeasured]
    assert got.exit_code == 2
    assert len(got.said) == 1
    with pytest.raises(KernelcountError):
        app.read([bad], None, lambda *_: None)


def test_reading_loads_no_torch():
    import subprocess

    code = "import sys; from kernelcount import app; app.read; import kernelcount.reading;"
    code += "assert not {'torch', 'rich', 'yaml'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_is_read_is_not_written_over(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text("{}")
    link = tmp_path / "link.json"
    link.symlink_to(trace)
    for output in (trace, link):
        with pytest.raises(UsageError, match="this file is read"):
            app.check_files([trace], save=output)
    app.check_files([trace], save=tmp_path / "other.json")
