"""Which devices there are, how they are named, and what is said where one is missing."""

import pytest

from kernelcount import devices
from kernelcount.devices import DEVICES, HIDDEN, choose, names, parse
from kernelcount.devices.gpu import Gpu
from kernelcount.errors import NotMeasuredError, UsageError


def test_a_list_of_devices_holds_those_that_a_user_may_ask_for():
    assert names() == "cuda, xpu, cpu, paper"
    assert {"fake"} == HIDDEN
    assert all(device.summary for device in DEVICES.values())


@pytest.mark.parametrize(
    ("text", "name"), [("cuda", "cuda"), ("cpu", "cpu"), ("cuda:1", "cuda:1"), ("paper", "cuda")]
)
def test_a_device_is_named_as_torch_names_it(text, name):
    assert parse(text)[1] == name


def test_an_index_chooses_one_of_several():
    device, name = parse("xpu:03")
    assert (device, name) == (Gpu("xpu", "Intel GPUs", 3), "xpu:3")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("cudaa", "; did you mean cuda?"),
        ("CUDA", "; did you mean cuda?"),
        ("gpu", "; did you mean cuda?"),
        ("gpu:1", "; did you mean cuda:0?"),
        ("rocm", "; did you mean cuda?"),
        ("intel", "; did you mean xpu?"),
        ("cuda:one", "; did you mean cuda:0?"),
        ("cuda:", "; did you mean cuda:0?"),
        ("cuda:-1", "; did you mean cuda:0?"),
        ("cuda:99999999999", "; did you mean cuda:0?"),
        ("cpu:0", "; did you mean cpu?"),
        ("papier", "; did you mean paper?"),
        ("mps", ""),
        ("", ""),
        ("fake", ""),
        ("fake:0", ""),
    ],
)
def test_another_name_is_refused_with_the_nearest(text, hint, monkeypatch):
    monkeypatch.delenv("KERNELCOUNT_FAKE_DEVICE", raising=False)
    with pytest.raises(UsageError) as error:
        parse(text)
    assert str(error.value) == f"--device {text!r} is not one of cuda, xpu, cpu, paper{hint}"


def test_the_fake_device_stands_on_the_cpu_in_tests(monkeypatch):
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    assert parse("fake") == (DEVICES["fake"], "cpu")


class Missing(Gpu):
    def missing(self):
        return "torch sees no cuda device on this machine"


class Present(Gpu):
    def missing(self):
        return None


@pytest.mark.parametrize(
    ("cuda", "xpu", "chosen"),
    [(Present, Present, "cuda"), (Missing, Present, "xpu"), (Missing, Missing, "paper")],
)
def test_without_a_wish_it_is_the_gpu_here_or_else_paper(monkeypatch, cuda, xpu, chosen):
    monkeypatch.setitem(devices.DEVICES, "cuda", cuda("cuda", ""))
    monkeypatch.setitem(devices.DEVICES, "xpu", xpu("xpu", ""))
    assert choose(None)[0] is devices.DEVICES[chosen]


def test_a_device_that_is_not_here_is_not_measured_and_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(devices.DEVICES, "cuda", Missing("cuda", ""))
    with pytest.raises(NotMeasuredError, match=r"no cuda device .*; --device paper counts without"):
        choose("cuda")


def test_one_beyond_the_last_is_told_by_its_number(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Gpu("cuda", "", 1).missing() is None
    assert Gpu("cuda", "", 2).missing() == "there is no cuda:2; there are 2"


def test_counters_are_those_of_nvidias_gpus_and_of_no_other_device():
    devices.check_counters("cuda")
    for kind in ("hip", "xpu", "cpu", "paper", "mps", None):
        with pytest.raises(UsageError, match="--ncu: Nsight Compute reads the counters of NVIDIA"):
            devices.check_counters(kind)
