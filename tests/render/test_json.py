"""The document for programs."""

from __future__ import annotations

import json

import pytest

from kernelcount.model import Capture, Environment, Note, Unmeasured
from kernelcount.render import render
from kernelcount.render.json import error_document

from . import samples

KEYS = {
    "aligned",
    "fusion",
    "lines_unknown",
    "name",
    "basis",
    "status",
    "reason",
    "complete",
    "stable",
    "kernels",
    "copies",
    "fills",
    "launches",
    "graph_launches",
    "kernel_time_ns",
    "busy_ns",
    "call_time_ns",
    "call_time",
    "speed",
    "price",
    "peak_memory",
    "numerics",
    "cpu_ops",
    "bytes",
    "transfers",
    "flops",
    "tensor_cores",
    "paper",
    "dram",
    "devices",
    "rows",
    "steps",
    "syncs",
    "syncs_at_least",
    "gaps",
    "idle_ns",
    "busy_share",
    "busy_share_of",
    "graph_breaks",
    "breaks",
    "breaks_cost",
    "recompiles",
    "recompilations",
    "skipped_cudagraphs",
    "remedies",
    "notes",
}


def document(report):
    """The document, parsed as strictly as a program would."""

    def refuse(text):
        raise AssertionError(f"{text} in JSON")

    text = render(report, format="json")
    text.encode()
    return json.loads(text, parse_constant=refuse)


def variant(outcome):
    """The entry of one outcome of `read`."""
    (entry,) = document(samples.read_report(outcome))["variants"]
    return entry


def test_a_run_is_one_document_with_every_key_of_the_contract():
    fused = samples.compiled(Note("served-by-l2", "the data fits into the L2 cache"))
    assert render(samples.run_report(fused), format="json") == (
        """\
{
  "schema": 1,
  "command": "run",
  "environment": {
    "device": "NVIDIA H200",
    "kind": "cuda",
    "torch": "2.11.0",
    "triton": "3.6.0",
    "kernelcount": "0.1.0"
  },
  "target": {
    "spec": "add_relu.py:add_relu",
    "inputs": [
      "f32[100000000]",
      "f32[100000000]"
    ]
  },
  "floor": null,
  "variants": [
    {
      "name": "compile",
      "basis": "measured",
      "status": "measured",
      "reason": null,
      "complete": true,
      "stable": true,
      "kernels": 1,
      "copies": 0,
      "fills": 0,
      "launches": 1,
      "graph_launches": 0,
      "kernel_time_ns": 273000,
      "busy_ns": 273000,
      "call_time_ns": null,
      "call_time": null,
      "speed": null,
      "price": null,
      "peak_memory": null,
      "numerics": null,
      "cpu_ops": null,
      "bytes": null,
      "transfers": null,
      "flops": null,
      "tensor_cores": null,
      "paper": null,
      "dram": null,
      "devices": {
        "0": {
          "kernels": 1,
          "kernel_time_ns": 273000
        }
      },
      "rows": [
        {
          "name": "triton_poi_fused_add_relu_0",
          "label": "triton_poi_fused_add_relu_0",
          "activity": "kernel",
          "count": 1,
          "time_ns": 273000,
          "bytes": null,
          "flops": null,
          "grid": null,
          "block": null,
          "registers": null,
          "shared_memory": null,
          "occupancy": null,
          "counters": null,
          "lines": null,
          "module": null,
          "modules": [],
          "phase": null,
          "phases": [],
          "attention": null
        }
      ],
      "steps": [],
      "fusion": null,
      "aligned": null,
      "lines_unknown": null,
      "syncs": null,
      "syncs_at_least": null,
      "gaps": null,
      "idle_ns": null,
      "busy_share": 1.0,
      "busy_share_of": "record",
      "graph_breaks": null,
      "breaks": null,
      "breaks_cost": null,
      "recompiles": null,
      "recompilations": null,
      "skipped_cudagraphs": null,
      "remedies": null,
      "notes": [
        {
          "code": "served-by-l2",
          "detail": "the data fits into the L2 cache"
        }
      ]
    }
  ],
  "verdicts": []
}
"""
    )


@pytest.mark.parametrize(
    "sample", [samples.add_relu, samples.on_cpu, samples.incomplete, samples.no_device]
)
def test_no_entry_lacks_a_key(sample):
    for entry in document(sample())["variants"]:
        assert set(entry) - {"environment"} == KEYS


def test_several_sizes_stand_under_sizes():
    found = document(samples.sweep())
    assert "variants" not in found
    assert [(s["size"], len(s["variants"])) for s in found["sizes"]] == [
        (100, 2),
        (1_000_000, 2),
        (100_000_000, 2),
    ]


def test_several_files_stand_under_variants_and_there_is_no_target():
    found = document(samples.evil())
    assert (found["target"], len(found["variants"])) == (None, 2)


def test_on_the_cpu_every_gpu_figure_is_null():
    eager, compiled = document(samples.on_cpu())["variants"]
    gpu = ("kernels", "copies", "fills", "launches", "graph_launches", "kernel_time_ns", "busy_ns")
    assert {eager[key] for key in gpu} == {None}
    assert eager["cpu_ops"] == {"aten": 2, "generated": 0}
    assert compiled["cpu_ops"] == {"aten": 0, "generated": 1}


def test_of_an_unmeasured_file_only_what_was_seen_is_a_number():
    (entry,) = document(samples.incomplete())["variants"]
    assert entry["status"] == "unmeasured"
    assert entry["reason"] == "2 launches, 1 kernel record (the profiler lost one)"
    assert (entry["complete"], entry["stable"]) == (False, None)
    assert (entry["kernels"], entry["launches"], entry["kernel_time_ns"]) == (1, 2, 25_000)
    assert (entry["copies"], entry["fills"]) == (None, None)


def test_launches_without_any_device_record_leave_kernels_null():
    entry = variant(Unmeasured("x", "no records", samples.capture("x", launches=2)))
    assert (entry["kernels"], entry["kernel_time_ns"], entry["busy_ns"]) == (None, None, None)
    assert entry["launches"] == 2


def test_an_unmeasured_variant_that_left_nothing_has_no_numbers():
    entry = variant(Unmeasured("compile", "timed out after 60 s"))
    assert (entry["kernels"], entry["complete"], entry["basis"]) == (None, None, "measured")
    assert (entry["rows"], entry["notes"], entry["devices"]) == ([], [], {})


def test_an_unmeasured_variant_on_paper_does_not_say_that_it_was_to_be_measured():
    paper = Environment("NVIDIA H200", "paper", "2.13.0")
    text = render(
        samples.run_report(Unmeasured("eager", "a stream"), environment=paper), format="json"
    )
    (entry,) = json.loads(text)["variants"]
    assert (entry["basis"], entry["status"]) == ("paper", "unmeasured")
    assert '"measured"' not in text


def test_kernels_of_which_none_has_a_time_have_no_kernel_time():
    entry = variant(samples.capture("x", ("k", "kernel", None, None)))
    assert (entry["kernels"], entry["kernel_time_ns"], entry["busy_ns"]) == (1, None, None)


def test_no_kernel_took_no_time():
    entry = variant(samples.capture("x"))
    assert (entry["kernels"], entry["kernel_time_ns"], entry["busy_ns"]) == (0, 0, 0)


def test_a_capture_from_elsewhere_tells_its_own_environment():
    entry = variant(samples.capture("x"))
    assert entry["environment"]["device"] == "NVIDIA H200"
    assert "environment" not in variant(Capture("x", Environment()))


def test_devices_and_steps_are_listed():
    (two,) = document(samples.two_devices())["variants"]
    assert two["devices"] == {
        "0": {"kernels": 1, "kernel_time_ns": 10_000},
        "1": {"kernels": 2, "kernel_time_ns": 15_000},
    }
    (steps,) = document(samples.three_steps())["variants"]
    assert steps["steps"][0] == {"name": "ProfilerStep#5", "kernels": 3, "kernel_time_ns": 12_000}


def test_a_name_comes_back_as_it_was_but_for_halves_of_surrogate_pairs():
    names = [row["name"] for row in document(samples.evil())["variants"][0]["rows"]]
    assert names[: len(samples.EVIL)] == [n.replace("\ud83d", "\ufffd") for n in samples.EVIL]


def test_no_control_character_stands_in_the_document():
    text = render(samples.evil(), format="json")
    assert [c for c in text if c != "\n" and (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0)] == []


def test_letters_of_any_language_are_left_readable():
    assert "核核核" in render(samples.evil(), format="json")


def test_a_failure_is_a_document_too():
    assert error_document("run", 2, "There is no file 'ä.py'.") == (
        """\
{
  "schema": 1,
  "command": "run",
  "error": {
    "code": 2,
    "message": "There is no file 'ä.py'."
  }
}
"""
    )
