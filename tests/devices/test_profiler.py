"""The adapter to torch's profiler: one call, recorded by us or by nobody."""

import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from kernelcount.devices.base import MARK
from kernelcount.devices.cpu import Cpu
from kernelcount.devices.profiler import is_profiling
from kernelcount.operations import read_operations


def names(trace):
    return {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}


def test_this_torch_tells_whether_a_profiler_is_at_work():
    assert is_profiling() is False, f"torch {torch.__version__} has lost _profiler_enabled"
    with profile(activities=[ProfilerActivity.CPU], acc_events=True):
        assert is_profiling() is True


def test_a_torch_that_does_not_tell_is_asked_in_vain(monkeypatch):
    monkeypatch.delattr(torch.autograd, "_profiler_enabled")
    assert is_profiling() is None


def test_the_call_is_in_the_trace_under_our_mark(tmp_path):
    trace = tmp_path / "t.json"
    Cpu().profile(lambda: torch.ones(3) + 1, trace)
    assert {MARK, "aten::add"} <= names(trace)


def test_a_profiler_inside_the_call_leaves_a_trace_without_it(tmp_path):
    trace = tmp_path / "t.json"

    def call():
        with profile(activities=[ProfilerActivity.CPU], acc_events=True):
            torch.ones(3) + 1

    for _ in range(2):  # exporting what is left would crash the second time
        Cpu().profile(call, trace)
        assert read_operations(trace) is None


def test_a_profiler_around_the_call_keeps_its_records(tmp_path):
    trace = tmp_path / "t.json"
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as outer:
        Cpu().profile(lambda: torch.ones(3) + 1, trace)
    assert read_operations(trace) is None
    assert "aten::add" in {event.name for event in outer.events()}


def test_an_exception_passes_through_and_the_profiler_is_stopped(tmp_path):
    def call():
        raise ValueError("the user's")

    with pytest.raises(ValueError, match="the user's"):
        Cpu().profile(call, tmp_path / "t.json")
    assert is_profiling() is False


def test_the_cpu_is_always_there_and_names_its_torch():
    assert Cpu().missing() is None
    environment = Cpu().environment()
    assert environment.kind == "cpu"
    assert torch.__version__.startswith(environment.torch)
