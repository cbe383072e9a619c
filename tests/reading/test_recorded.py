"""Traces recorded on an H200, with counts that Nsight Compute confirmed, and odd ones."""

import json
from pathlib import Path

import pytest

from kernelcount.app import read
from kernelcount.errors import KernelcountError
from kernelcount.render import render

DATA = Path(__file__).parent.parent / "data"
RECORDED = json.loads((DATA / "h200" / "counts.json").read_text())
ODD = json.loads((DATA / "cases" / "expected.json").read_text())
TOLERANCE = 1e-3  # of a time that was written down in microseconds
FIELDS = {
    "kernels": "kernels",
    "kernels_recorded": "kernels",
    "launches": "launches",
    "cpu_launch_calls": "launches",
    "graph_launches": "graph_launches",
    "memcpy": "copies",
    "copies": "copies",
    "memset": "fills",
    "fills": "fills",
    "complete": "complete",
}
TIMES = {
    "gpu_us": "kernel_time_ns",
    "gpu_us_kernels": "kernel_time_ns",
    "gpu_us_valid": "kernel_time_ns",
    "sum_us": "kernel_time_ns",
    "busy_us": "busy_ns",
}


def answer(path, region=None):
    """The exit code, the JSON entry (None where nothing could be read) and the table."""
    try:
        report = read([path], region, lambda *_: None).report
    except KernelcountError as error:
        return error.code, None, str(error)
    document = json.loads(render(report, format="json"))
    return report.exit_code, document["variants"][0], render(report, format="table")


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_trace_holds_what_was_launched(name):
    want = RECORDED[name]
    file, _, region = name.partition("#")
    code, entry, screen = answer(DATA / "h200" / file, region or None)
    assert code == 0
    assert (entry["status"], entry["complete"]) == ("measured", True)
    for key in want.keys() & FIELDS.keys():
        assert entry[FIELDS[key]] == want[key], key
    if "kernel_time_ns" in want:
        assert entry["kernel_time_ns"] == pytest.approx(want["kernel_time_ns"], abs=2, rel=1e-4)
    if "distinct" in want:
        kernels = {r["name"] for r in entry["rows"] if r["activity"] == "kernel"}
        assert len(kernels) == want["distinct"]
    steps = {s["name"]: s["kernels"] for s in entry["steps"]}
    assert want.get("per_step", steps).items() <= steps.items()
    assert "must_warn" not in want or entry["notes"]
    assert str(want["kernels"]) in screen


@pytest.mark.parametrize("name", ODD)
def test_an_odd_trace_is_counted_or_refused_as_it_must_be(name):
    want = ODD[name]
    code, entry, screen = answer(DATA / "cases" / name, want.get("region"))
    clean = want.get("kernels") is not None and want.get("complete", True)
    exits = want.get("exit", 0 if clean else [2, 3])
    assert code in (exits if isinstance(exits, list) else [exits])
    assert "\x1b[31" not in screen
    assert "\0" not in screen
    if entry is None:
        assert "must_fail" in want
        assert screen
        return
    for key in want.keys() & FIELDS.keys():
        assert entry[FIELDS[key]] == want[key], key
    for key in want.keys() & TIMES.keys():
        assert entry[TIMES[key]] == pytest.approx(want[key] * 1000, rel=TOLERANCE), key
    for device, kernels in want.get("per_device", {}).items():
        assert entry["devices"][device]["kernels"] == kernels
    for device, time in want.get("per_device_us", {}).items():
        assert entry["devices"][device]["kernel_time_ns"] == pytest.approx(time * 1000)
    steps = {s["name"]: s["kernels"] for s in entry["steps"]}
    assert want.get("per_step", steps) == steps
    if want.get("kernels", 0) is None:
        assert entry["status"] == "unmeasured"
        assert entry["reason"]


def test_the_label_of_a_kernel_is_the_op_that_stands_in_the_users_code():
    _, entry, _ = answer(DATA / "h200" / "h200-add_relu.eager.json.gz")
    assert [row["label"] for row in entry["rows"]] == ["add", "relu"]


def test_a_generated_kernel_bears_its_own_name_as_label():
    _, entry, _ = answer(DATA / "h200" / "h200-add_relu.compile.json.gz")
    assert [row["label"] for row in entry["rows"]] == ["triton_poi_fused_add_relu_0"]
