"""Whether Nsight Compute is here and may read counters."""

import pytest

from kernelcount.devices import fake
from kernelcount.examination import counters
from kernelcount.model import Environment


class Nvidia(fake.Fake):
    """A device that says it is one of NVIDIA's."""

    def environment(self):
        return Environment("NVIDIA H200", "cuda")


class Amd(fake.Fake):
    """A device that says it is one of AMD's."""

    def environment(self):
        return Environment("AMD Instinct MI300X", "hip")


GPU = (Nvidia(), "cuda")
ROOT, ROOT_IN_A_CONTAINER, NOBODY = "000001ffffffffff", "00000000a80425fb", "0000000000000000"


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The check, where the driver and the kernel say this of counters and of this process."""

    def check(gpu=GPU, *, parameters=None, capabilities=NOBODY, ncu="/bin/ncu"):
        shown, status = tmp_path / "params", tmp_path / "status"
        if parameters is not None:
            shown.write_text(f"ResmanDebugLevel: 4294967295\n{parameters}\nDmaRemapPeerMmio: 1\n")
        status.write_text(f"Name:\tpython\nCapPrm:\t{ROOT}\nCapEff:\t{capabilities}\n")
        monkeypatch.setattr(counters, "_PARAMETERS", shown)
        monkeypatch.setattr(counters, "_STATUS", status)
        monkeypatch.setattr(counters, "installed", lambda: ncu)
        return counters.check(gpu)

    return check


def test_a_driver_that_restricts_nobody_lets_everybody_read_counters(asked):
    assert asked(parameters="RmProfilingAdminOnly: 0").ok


@pytest.mark.parametrize(
    "name", ["RmProfilingAdminOnly", "RestrictProfilingToAdminUsers",
             "NVreg_RestrictProfilingToAdminUsers"]
)  # fmt: skip
def test_a_driver_that_restricts_counters_is_told_with_the_way_out(asked, name):
    found = asked(parameters=f"{name}: 1")
    assert (found.name, found.ok) == ("ncu", False)
    assert "this process is none" in found.detail
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found.remedy
    assert "--cap-add=SYS_ADMIN" in found.remedy


def test_a_process_with_the_capability_may_read_them_all_the_same(asked):
    assert asked(parameters="RmProfilingAdminOnly: 1", capabilities=ROOT).ok


def test_root_in_a_container_often_may_not(asked):
    restricted = "RmProfilingAdminOnly: 1"
    assert not asked(parameters=restricted, capabilities=ROOT_IN_A_CONTAINER).ok


def test_a_driver_that_does_not_say_leaves_it_unknown(asked):
    for parameters in (None, "ModifyDeviceFiles: 1"):
        found = asked(parameters=parameters)
        assert not found.ok
        assert "not known whether" in found.detail


def test_without_nsight_compute_it_is_said_where_it_comes_from(asked):
    found = asked(parameters="RmProfilingAdminOnly: 0", ncu=None)
    assert (found.ok, "not installed" in found.detail) == (False, True)
    assert "CUDA toolkit" in found.remedy


def test_without_a_gpu_there_is_nothing_to_read(asked):
    assert asked(None).detail == "/bin/ncu is there; there is no GPU to read counters of"
    assert asked(None, ncu=None).detail == "not installed; there is no GPU to read counters of"


def test_it_is_for_nvidias_gpus_alone(asked):
    assert "NVIDIA's GPUs alone" in asked((Amd(), "cuda")).detail


def test_it_is_found_on_the_path_or_where_cuda_puts_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(counters, "_PLACE", str(tmp_path / "cuda"))
    assert counters.installed() is None
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "ncu").write_text("#!/bin/sh\n")
    (tmp_path / "cuda" / "ncu").chmod(0o755)
    assert counters.installed() == str(tmp_path / "cuda" / "ncu")
