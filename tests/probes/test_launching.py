"""What launching costs the CPU, on a device that is always done."""

import pytest
import torch

from kernelcount.devices import DEVICES, fake
from kernelcount.model import LaunchCosts
from kernelcount.probes import launching


class Waited(fake.Fake):
    """A device that counts how often it was waited for."""

    waits = 0

    def synchronize(self):
        self.waits += 1


@pytest.fixture(autouse=True)
def _briefly(monkeypatch):
    monkeypatch.setattr(launching, "BRIEFLY", 0.02)


def test_a_module_costs_more_than_the_plainest_op_and_nothing_is_compiled_unasked():
    found = launching.costs(DEVICES["cpu"], "cpu", compiling=False)
    assert found.compiled_ns is None
    assert 0 < found.eager_ns < found.module_ns < 1e9


def test_compiled_code_is_measured_as_such_where_the_user_has_switched_it_off(monkeypatch):
    """By a backend that needs no compiler: what it costs is of no matter here."""
    real, made = torch.compile, []

    def compiled(function):
        made.append(function.__name__)
        return real(function, backend="eager")

    monkeypatch.setattr(torch, "compile", compiled)
    with torch.compiler.set_stance("force_eager"):
        found = launching.costs(DEVICES["cpu"], "cpu", compiling=True)
    assert made == ["add"]
    assert found.compiled_ns > found.eager_ns


def test_what_cannot_be_measured_is_unknown(monkeypatch):
    monkeypatch.setattr(launching, "compiled", lambda *_: 1 / 0)
    found = launching.costs(DEVICES["cpu"], "cpu", compiling=True)
    assert found.compiled_ns is None
    assert found.eager_ns
    assert launching.costs(DEVICES["cpu"], "no such device", compiling=False) is None


def test_the_default_dtype_and_gradient_mode_are_no_part_of_it():
    try:
        torch.set_default_dtype(torch.float16)
        with torch.no_grad():
            assert isinstance(launching.costs(DEVICES["cpu"], "cpu", compiling=False), LaunchCosts)
            assert not torch.is_grad_enabled()
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_cpu_never_waits_for_the_gpu_in_what_is_timed(monkeypatch):
    device, calls = Waited(), []
    monkeypatch.setattr(launching, "_QUEUED", 10)
    each = launching._row(device, lambda: calls.append(device.waits), 0.02)
    assert each > 0
    assert calls == [1 + i // 10 for i in range(len(calls))]


def test_an_op_costs_the_cpu_some_time():
    assert 10 < launching.eager(Waited(), "cpu", 0.02) < 1e6


def test_a_compiled_function_is_compiled_before_it_is_timed(monkeypatch):
    compiled = []

    def compile_(function):
        def call(x):
            compiled.append(x)
            return function(x)

        return call

    monkeypatch.setattr("torch.compile", compile_)
    monkeypatch.setattr(launching, "_row", lambda *_: float(len(compiled)))
    assert launching.compiled(Waited(), "cpu", 0.02) == 1
