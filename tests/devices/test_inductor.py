"""The adapter to Inductor's settings. Where torch changes them, these tests know it first."""

import builtins

import pytest
from counting import codes, operations

from kernelcount.devices.inductor import cpp_kernels_recordable, cpp_kernels_recorded


def test_this_torch_can_record_the_kernels_that_inductor_generates():
    import torch

    assert cpp_kernels_recordable(), f"torch {torch.__version__} has lost cpp.enable_kernel_profile"


def test_the_setting_holds_inside_and_is_put_back():
    from torch._inductor import config

    assert config.cpp.enable_kernel_profile is False
    with cpp_kernels_recorded():
        assert config.cpp.enable_kernel_profile is True
    assert config.cpp.enable_kernel_profile is False


@pytest.fixture
def _without_inductors_settings(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "torch._inductor" and "config" in (rest[2] or ()):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)


@pytest.mark.usefixtures("_without_inductors_settings")
def test_without_it_nothing_is_set_and_that_is_said():
    assert not cpp_kernels_recordable()
    with cpp_kernels_recorded():
        pass


def test_a_count_that_lacks_generated_kernels_says_so(count, target, monkeypatch):
    monkeypatch.setattr("kernelcount.capture.context.cpp_kernels_recordable", lambda: False)
    spec = target("def f(x): return x + 1") + ":f"
    outcome = count(spec, "compile:backend=eager", sizes=(4,))["compile:backend=eager"]
    assert codes(outcome) == ["generated-unknown"]
    assert outcome.notes[0].detail.startswith("cannot tell on torch ")
    assert operations(outcome) == {"add": 1}
