"""What NVML says of a GPU becomes notes; whatever it cannot say is left out."""

import sys
from types import SimpleNamespace

import pytest

from kernelcount.devices import disturbance


class NVMLError(Exception):
    pass


def fails(*_):
    raise NVMLError("not supported")


@pytest.fixture
def nvml(monkeypatch):
    """A library that answers as it is told to."""

    def answers(reasons=0, processes=1, **more):
        asked = []
        library = SimpleNamespace(
            NVMLError=NVMLError,
            NVML_CLOCK_SM=1,
            nvmlInit=lambda: None,
            nvmlShutdown=lambda: asked.append("shutdown"),
            nvmlDeviceGetHandleByUUID=asked.append,
            nvmlDeviceGetCurrentClocksEventReasons=lambda _: reasons,
            nvmlDeviceGetComputeRunningProcesses=lambda _: [object()] * processes,
            nvmlDeviceGetClockInfo=lambda *_: 1410,
            nvmlDeviceGetMaxClockInfo=lambda *_: 1980,
        )
        vars(library).update(more)
        monkeypatch.setitem(sys.modules, "pynvml", library)
        return asked

    return answers


def found(uuid="1234"):
    return [(n.code, n.detail) for n in disturbance.notes(uuid)]


def test_a_gpu_at_peace_has_no_note(nvml):
    asked = nvml(reasons=0x1)  # idle
    assert found() == []
    assert asked == ["GPU-1234", "shutdown"]


@pytest.mark.parametrize(
    ("bit", "code"),
    [
        (0x2, "clock-limited"), (0x4, "power-limited"), (0x8, "clock-limited"),
        (0x20, "heat-limited"), (0x40, "heat-limited"), (0x80, "power-limited"),
    ],
)  # fmt: skip
def test_what_holds_the_clocks_down_is_a_note_with_the_clocks(nvml, bit, code):
    nvml(reasons=bit | 0x1)
    ((said, detail),) = found()
    assert said == code
    assert detail.endswith("(1410 of 1980 MHz)")


def test_one_reason_is_told_once(nvml):
    nvml(reasons=0x20 | 0x40)
    assert [code for code, _ in found()] == ["heat-limited"]


def test_another_process_on_the_gpu_is_a_note(nvml):
    nvml(processes=2)
    assert [code for code, _ in found()] == ["gpu-shared"]


def test_clocks_that_are_not_told_leave_the_reason(nvml):
    nvml(reasons=0x4, nvmlDeviceGetClockInfo=fails)
    ((code, detail),) = found()
    assert code == "power-limited"
    assert "MHz" not in detail


def test_older_libraries_have_another_name_for_the_reasons(nvml):
    nvml(
        nvmlDeviceGetCurrentClocksEventReasons=None,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x4,
    )
    assert [code for code, _ in found()] == ["power-limited"]


@pytest.mark.parametrize("name", ["nvmlInit", "nvmlDeviceGetHandleByUUID"])
def test_a_library_that_fails_says_nothing(nvml, name):
    nvml(**{name: fails})
    assert found() == []


def test_without_the_library_nothing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert found() == []
