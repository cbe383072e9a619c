"""Whether the counters are those of what moves: `pytest -m gpu` where there are a GPU and `ncu`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelcount.examination import counters

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # some torches' own, at import
]

HERE = Path(__file__).parent
NEAR = 0.02  # of the bytes that are modelled


@pytest.fixture(autouse=True)
def _counters():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    if counters.installed() is None:
        pytest.skip("needs ncu")
    if counters.for_administrators() and not counters.is_administrator():
        pytest.skip("the driver keeps counters to administrators")


@pytest.fixture(scope="module")
def run():
    """Run a target with --ncu once: its document."""
    known = {}

    def ran(name, *flags):
        if (name, flags) not in known:
            file = HERE / "moving.py"
            command = [sys.executable, "-m", "kernelcount", "run", f"{file}:{name}", *flags]
            done = subprocess.run(
                [*command, "--ncu", "--format", "json"], capture_output=True, text=True, timeout=580
            )
            assert done.returncode == 0, done.stderr
            known[name, flags] = {v["name"]: v for v in json.loads(done.stdout)["variants"]}
        for variant in known[name, flags].values():
            print(name, variant["name"], variant["dram"], variant["bytes"], variant["notes"])
        return known[name, flags]

    return ran


def moved(variant):
    assert variant["dram"] is not None, variant["notes"]
    return variant["dram"]["read"] + variant["dram"]["written"]


def codes(variant):
    return {note["code"] for note in variant["notes"]}


@pytest.mark.parametrize(("name", "expected"), [("eager", 2.0e9), ("compile", 1.2e9)])
def test_add_relu_moves_the_bytes_that_are_modelled(run, name, expected):
    variant = run("add_relu", "--size", "1e8")[name]
    assert moved(variant) == pytest.approx(expected, rel=NEAR)
    assert variant["bytes"]["read"] + variant["bytes"]["written"] == expected


def test_nothing_is_missing_and_no_kernel_is_run_again_for_its_bytes(run):
    for variant in run("add_relu", "--size", "1e8").values():
        assert not codes(variant) & {"no-counters", "ncu-differs", "ncu-replayed"}
        for row in variant["rows"]:
            print(row["name"], row["counters"], row["occupancy"])
            assert None not in row["counters"].values()
            assert row["counters"]["dram_share"] > 0.7
            assert row["counters"]["dram_share"] > row["counters"]["sm_share"]
            assert row["counters"]["time_ns"] == pytest.approx(row["time_ns"], rel=0.05)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("softmax", ("f32[100000,1000]",)),
        ("rms_norm_by_hand", ("f32[16384,4096]", "f32[4096]")),
        ("ln_bias_gelu", ("f32[262144,1024]", *["f32[1024]"] * 3)),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_is_modelled_is_read_from_dram(run, name, inputs):
    """Reads: of what is written the end may still be in the L2 cache."""
    flags = [flag for spec in inputs for flag in ("--input", spec)]
    for variant in run(name, *flags, "--seconds", "0").values():
        assert variant["dram"]["read"] == pytest.approx(variant["bytes"]["read"], rel=NEAR)


def test_rows_that_are_read_again_are_told_and_counted(run):
    """Eager layer_norm goes over each row twice, and wide rows do not stay in the cache."""
    rows = run("layer_norm", "--input", "f32[8192,8192]", "--seconds", "0")["eager"]
    assert rows["dram"]["read"] > 1.5 * rows["bytes"]["read"]
    assert "read-again" in codes(rows)


def test_a_call_that_the_cache_serves_reads_little_from_dram(run):
    variant = run("add_relu", "--size", "1e6")["eager"]
    assert moved(variant) < 0.5 * 20e6


def test_backward_and_cuda_graphs_have_counters_too(run):
    flags = ("--size", "1e7", "--backward", "--variant", "eager")
    assert moved(run("add_relu", *flags)["eager"]) > 0
    graphs = run("add_relu", "--size", "1e7", "--variant", "compile:reduce-overhead")
    variant = graphs["compile:reduce-overhead"]
    assert variant["dram"] is not None or "ncu-differs" in codes(variant)


def test_without_ncu_on_the_path_the_count_stands(run, monkeypatch, tmp_path):
    if not shutil.which("ncu") or Path(counters._PLACE, "ncu").exists():
        pytest.skip("ncu is found without PATH")
    monkeypatch.setenv("PATH", str(tmp_path))
    variant = run("add_relu", "--size", "1e5", "--variant", "eager")["eager"]
    assert variant["kernels"] == 2
    assert "no-counters" in codes(variant)
