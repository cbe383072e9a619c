"""GPUs behind torch: what can be tested of them without one."""

import sys
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
import torch

from kernelcount.devices.gpu import Gpu


class Api:
    """Two GPUs, of which the second holds memory and the third is idle."""

    def __init__(self):
        self.synchronized = []

    def is_available(self):
        return True

    def device_count(self):
        return 3

    def current_device(self):
        return 0

    def memory_reserved(self, index):
        return 4096 if index == 1 else 0

    def synchronize(self, index):
        self.synchronized.append(index)

    def get_device_name(self, index):
        return f"GPU {index}"

    def get_device_properties(self, index):
        return self.properties

    properties = SimpleNamespace(major=9, minor=0, gcnArchName="GPU 2")


@pytest.fixture
def api(monkeypatch):
    api = Api()
    monkeypatch.setattr(torch, "cuda", api)
    return api


def test_every_gpu_in_use_is_waited_for_and_no_other_is_woken(api):
    Gpu("cuda", "").synchronize()
    assert api.synchronized == [0, 1]


@pytest.mark.parametrize(("hip", "kind"), [(None, "cuda"), ("6.4", "hip")])
def test_the_environment_names_the_gpu_and_whose_it_is(api, monkeypatch, hip, kind):
    monkeypatch.setattr(torch, "version", SimpleNamespace(hip=hip, cuda=None))
    environment = Gpu("cuda", "", 2).environment()
    assert (environment.device, environment.kind) == ("GPU 2", kind)
    assert torch.__version__.startswith(environment.torch)


def test_the_environment_names_the_architecture_and_the_libraries(api, monkeypatch):
    installed = {"nvidia-cublas": "13.1.0", "nvidia-cudnn-cu13": "9.15.1", "nvidia-cudnn": "8"}

    def version(name):
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr("importlib.metadata.version", version)
    monkeypatch.setattr(torch, "version", SimpleNamespace(hip=None, cuda="13.0"))
    environment = Gpu("cuda", "").environment()
    assert (environment.architecture, environment.triton) == ("sm_90", None)
    assert environment.libraries == (("cuda", "13.0"), ("cublas", "13.1.0"), ("cudnn", "9.15.1"))
    monkeypatch.setattr(torch, "version", SimpleNamespace(hip="6.4", cuda=None))
    api.properties = SimpleNamespace(major=9, minor=4, gcnArchName="gfx942:sramecc+:xnack-")
    environment = Gpu("cuda", "").environment()
    assert (environment.architecture, environment.libraries) == ("gfx942", (("hip", "6.4"),))
    api.properties = SimpleNamespace(name="of no version")
    assert Gpu("cuda", "").environment().architecture is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_another_profiler_looks_at_is_waited_for_inside_its_range(
    api, monkeypatch, fails
):
    happened = []
    profiler = SimpleNamespace(
        start=lambda: happened.append("start"), stop=lambda: happened.append("stop")
    )
    monkeypatch.setitem(sys.modules, "torch.cuda", SimpleNamespace(profiler=profiler))
    monkeypatch.setattr(Gpu, "synchronize", lambda _: happened.append("wait"))

    def call():
        happened.append("call")
        if fails:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") if fails else nullcontext():
        Gpu("cuda", "").in_range(call)
    waited = [] if fails else ["wait"]
    assert happened == ["wait", "start", "call", *waited, "stop"]


def test_a_torch_without_such_a_device_is_told(monkeypatch):
    monkeypatch.delattr(torch, "xpu")
    assert Gpu("xpu", "").missing() == (
        f"torch {torch.__version__} sees no xpu device on this machine"
    )


def test_one_gpu_of_several_is_made_the_current_one(monkeypatch):
    entered = []

    class Current:
        def __init__(self, index):
            entered.append(index)

        def __enter__(self):
            entered.append("in")

        def __exit__(self, *_):
            entered.append("out")

    monkeypatch.setattr(torch, "cuda", SimpleNamespace(device=Current))
    with Gpu("cuda", "").prepare():
        pass
    assert entered == []
    with Gpu("cuda", "", 1).prepare():
        pass
    assert entered == [1, "in", "out"]


@pytest.mark.parametrize("fails", [False, True])
def test_torch_warns_of_waits_while_it_is_asked_to_and_no_longer(monkeypatch, fails):
    modes = []
    asked = SimpleNamespace(
        get_sync_debug_mode=lambda: "as the user had it", set_sync_debug_mode=modes.append
    )
    monkeypatch.setattr(torch, "cuda", asked)

    def one():
        with Gpu("cuda", "").telling() as tells:
            assert tells
            assert modes == ["warn"]
            if fails:
                raise ValueError

    with pytest.raises(ValueError) if fails else nullcontext():  # noqa: PT011
        one()
    assert modes == ["warn", "as the user had it"]
    with Gpu("xpu", "").telling() as tells:
        assert not tells
