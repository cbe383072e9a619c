"""What can be measured here: the checks, with what is and what is not there."""

from importlib.util import find_spec

import pytest

from kernelcount.devices import fake
from kernelcount.errors import NotMeasuredError, UnreadableError
from kernelcount.examination import checks


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """The checks by name, on a machine of which only this is known."""
    monkeypatch.setattr(checks, "has_driver", lambda: False)
    monkeypatch.setattr(checks, "found_gpu", lambda: None)
    monkeypatch.setattr(checks.adapter, "check", lambda: None)
    return lambda: {check.name: check for check in checks.all_checks(tmp_path)}


def test_every_check_that_fails_says_why_and_what_helps(checked):
    found = checked()
    assert list(found) == [
        "torch", "GPU", "profiler", "Triton", "C++ compiler", "paper", "atlas", "ncu",
    ]  # fmt: skip
    assert all(check.detail for check in found.values())
    assert not found["GPU"].ok
    assert "--device paper" in found["GPU"].remedy
    assert found["profiler"].detail == "not tried: there is no GPU"
    assert found["paper"].ok


@pytest.mark.parametrize(
    ("version", "ok"),
    [("2.11.0+cu130", True), ("2.14.1", True), ("2.10.2", False), ("2.15.0", False)],
)
def test_the_series_of_torch_that_are_tested(checked, monkeypatch, version, ok):
    monkeypatch.setattr("torch.__version__", version)
    assert checked()["torch"].ok is ok


def test_a_driver_without_a_torch_for_it_is_told(checked, monkeypatch):
    monkeypatch.setattr(checks, "has_driver", lambda: True)
    monkeypatch.setattr("torch.version.cuda", None)
    assert "built without CUDA, and there is a GPU" in checked()["GPU"].remedy
    monkeypatch.setattr("torch.version.cuda", "13.0")
    assert "nvidia-smi" in checked()["GPU"].remedy


class Silent(fake.Fake):
    """A device whose profiler sees nothing."""

    def profile(self, call, trace):
        super().profile(fake.other_profiler, trace)


def launching(trace):
    """A call on the fake device launches a kernel."""

    class Launching(fake.Fake):
        """One kernel a call."""

        def profile(self, call, trace):
            super().profile(lambda: fake.launch("mul"), trace)

    return checks.sign_of_life(Launching(), "cpu", trace)


def test_a_kernel_of_ours_is_a_sign_of_life(tmp_path):
    assert launching(tmp_path / "t.json") == 1


def test_a_profile_without_a_kernel_is_none(tmp_path):
    assert "no kernel" in checks.sign_of_life(fake.Fake(), "cpu", tmp_path / "t.json")
    assert "another profiler" in checks.sign_of_life(Silent(), "cpu", tmp_path / "t.json")


def test_a_profiler_without_records_is_told_with_the_way_out(tmp_path):
    check = checks._profiler((Silent(), "cpu"), tmp_path)
    assert (check.ok, check.detail[:18]) == (False, "no kernel records:")
    assert "nsys" in check.remedy


def test_a_torch_that_paper_does_not_know_is_told(checked, monkeypatch):
    def lacks():
        raise NotMeasuredError("cannot count on paper: it lacks a_name")

    monkeypatch.setattr(checks.adapter, "check", lacks)
    assert checked()["paper"].detail == "cannot count on paper: it lacks a_name"


def test_an_atlas_of_another_torch_is_not_used(checked, monkeypatch):
    monkeypatch.setattr(checks.atlas, "this_torch", lambda: ("2.13.0", "13.0"))
    found = checked()["atlas"]
    assert not found.ok
    assert "not used under torch 2.13.0 (CUDA 13.0)" in found.detail
    monkeypatch.setattr(checks.atlas, "this_torch", lambda: ("2.11.3", None))
    assert checked()["atlas"].detail.endswith("used with --device paper --gpu H200")


def test_an_atlas_that_cannot_be_read_is_told(checked, monkeypatch):
    def broken():
        raise UnreadableError("mine.json: no atlas of library calls")

    monkeypatch.setattr(checks.atlas, "shipped", broken)
    assert checked()["atlas"].detail == "mine.json: no atlas of library calls"


def test_triton_is_said_to_be_there_or_not(checked):
    assert checked()["Triton"].ok is (find_spec("triton") is not None)


def test_without_a_compiler_it_is_said_what_needs_one(checked, monkeypatch):
    monkeypatch.setattr(checks.shutil, "which", lambda *_, **__: None)
    found = checked()["C++ compiler"]
    assert (found.ok, "not on paper" in found.detail) == (False, True)
