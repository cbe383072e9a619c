"""The process that looks: what it says, and what its end says."""

import io
import json
import os

import pytest

from kernelcount import app
from kernelcount.conclusions import rates
from kernelcount.errors import NotMeasuredError
from kernelcount.examination import __main__ as process
from kernelcount.examination import checks, child, microbenchmarks, recorder
from kernelcount.model import Check, Note, Rates
from kernelcount.paper.atlas import Atlas, Entry, load


@pytest.fixture
def told(monkeypatch, tmp_path):
    """What the process says, run here, where there is this GPU or none."""
    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    monkeypatch.setattr(checks, "all_checks", lambda _: iter([Check("torch", True, "there")]))
    monkeypatch.setenv("KERNELCOUNT_CACHE", str(tmp_path / "cache"))

    def run(wanted="", gpu=None, made=None, reached=REACHED):
        def measured(*_):
            if reached is None:
                raise NotMeasuredError("this GPU is none of ours")
            return reached

        monkeypatch.setattr(microbenchmarks, "measure", measured)
        monkeypatch.setattr(checks, "found_gpu", lambda: gpu)
        monkeypatch.setattr(recorder, "record", lambda *_: made)
        reading, writing = os.pipe()
        process.main(writing, str(wanted))
        with os.fdopen(reading) as pipe:
            return child._listened(pipe, lambda _: None)

    return run


REACHED = Rates(
    "NVIDIA H200", "2.11.0", 132, 4e12, matmul=(("f32", 5e13),), missing=(("copy_l2", "unknown"),),
    notes=(Note("gpu-shared", "another process uses it"),), measured_at="2026-01-01T00:00:00Z",
)  # fmt: skip
MADE = Atlas("H200", "2.11.0", "13.0", (Entry("mm", "float32", 2, 0, ("8x8*2",)),))


def test_the_checks_are_told_one_by_one(told):
    diagnosis, done = told()
    assert done
    assert diagnosis.checks == (Check("torch", True, "there"),)
    assert (diagnosis.code, diagnosis.recorded) == (0, "")


def test_an_atlas_is_written_and_how_to_use_it_is_told(told, tmp_path):
    path = tmp_path / "mine.json"
    diagnosis, _ = told(path, (None, "cuda"), MADE)
    assert load(path) == MADE
    assert f"{path}: 1 library calls and 0 classes of shape" in diagnosis.recorded
    assert f"KERNELCOUNT_ATLAS={path} kernelcount run" in diagnosis.recorded
    assert "--gpu H200" in diagnosis.recorded


def test_a_card_that_paper_does_not_know_is_told(told, tmp_path):
    made = Atlas("A10G", "2.11.0", "13.0", MADE.entries)
    diagnosis, _ = told(tmp_path / "mine.json", (None, "cuda"), made)
    assert "there is no --gpu A10G yet" in diagnosis.recorded


def test_what_the_gpu_reaches_is_told_and_kept(told, tmp_path):
    diagnosis, _ = told(gpu=(None, "cuda"))
    assert diagnosis.rates == REACHED
    assert diagnosis.kept == f"kept in {tmp_path / 'cache' / 'rates.json'}"
    assert rates.kept("NVIDIA H200", "2.11.0") == REACHED


def test_without_a_gpu_nothing_is_measured_and_it_says_why(told, tmp_path):
    diagnosis, _ = told()
    assert (diagnosis.rates, diagnosis.unrated) == (None, "there is no GPU here")
    assert not (tmp_path / "cache").exists()


def test_a_gpu_that_is_not_measured_says_why(told):
    diagnosis, done = told(gpu=(None, "xpu"), reached=None)
    assert (done, diagnosis.code) == (True, 0)
    assert (diagnosis.rates, diagnosis.unrated) == (None, "this GPU is none of ours")


def test_rates_that_cannot_be_kept_are_told_all_the_same(told, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "rates.json").write_text("my own")
    diagnosis, _ = told(gpu=(None, "cuda"))
    assert diagnosis.rates == REACHED
    assert diagnosis.kept.startswith("not kept: ")
    assert "delete or move it" in diagnosis.kept
    assert (tmp_path / "cache" / "rates.json").read_text() == "my own"


def test_without_a_gpu_nothing_is_recorded(told, tmp_path):
    diagnosis, done = told(tmp_path / "mine.json")
    assert done
    assert (diagnosis.code, "no GPU here" in diagnosis.said) == (3, True)
    assert diagnosis.checks
    assert not (tmp_path / "mine.json").exists()


def test_a_file_that_cannot_be_written_is_a_usage_error(told, tmp_path):
    diagnosis, _ = told(tmp_path / "none" / "mine.json", (None, "cuda"), MADE)
    assert diagnosis.code == 2


def test_a_process_that_dies_keeps_what_it_found():
    line = json.dumps(["check", {"name": "GPU", "ok": True, "detail": "H200", "remedy": ""}])
    diagnosis, done = child._listened(io.StringIO(f"{line}\n"), lambda _: None)
    assert not done
    cut = child._cut_short(diagnosis, -11)
    assert (cut.code, len(cut.checks)) == (3, 1)
    assert cut.said == "the process that looks died of signal 11; the last check done is: GPU"


def test_the_caller_imports_no_torch_and_shows_what_is_done(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELCOUNT_CACHE", str(tmp_path))
    said = []
    diagnosis = app.doctor(None, said.append)
    assert said[0] == "importing torch"
    assert [c.name for c in diagnosis.checks][:2] == ["torch", "GPU"]
