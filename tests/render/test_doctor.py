"""What a machine can measure, on the screen and as a document."""

import json

from kernelcount.conclusions.rates import FIGURES
from kernelcount.model import Check, Diagnosis, Note, Rates
from kernelcount.render.doctor import render

FOUND = Diagnosis(
    (
        Check("torch", True, "torch 2.11.0, built for CUDA 13.0; 2.11 to 2.14 are tested"),
        Check(
            "C++ compiler", False, "none found; needed by Triton",
            "install g++ or clang++, or name one by CXX, and then look again",
        ),
    )
)  # fmt: skip


def test_the_screen_names_each_check_with_the_way_out_below():
    assert render(FOUND, form="table", width=60) == (
        "torch         yes  torch 2.11.0, built for CUDA 13.0; 2.11\n"
        "                   to 2.14 are tested\n"
        "C++ compiler  no   none found; needed by Triton\n"
        "                   install g++ or clang++, or name one by\n"
        "                   CXX, and then look again\n"
    )


def test_the_document_has_each_check_and_no_rates():
    document = json.loads(render(FOUND, form="json"))
    assert (document["schema"], document["command"], document["rates"]) == (1, "doctor", {})
    assert document["checks"][0]["remedy"] is None
    assert document["checks"][1] == {
        "name": "C++ compiler",
        "ok": False,
        "detail": "none found; needed by Triton",
        "remedy": "install g++ or clang++, or name one by CXX, and then look again",
    }
    assert "error" not in document


REACHED = Diagnosis(
    rates=Rates(
        "Some GPU", "2.11.0", 100, 2.5e12, None, (("f32", 4e13), ("bf16", 1.25e15)), 1250.0, 900.0,
        1950.0,
        missing=(
            ("copy_l2", "the size of the L2 cache is not known"),
            ("matmul.tf32", "this GPU has no TF32"),
            ("matmul.f16", "out of memory"),
            ("matmul.f64", "out of memory"),
            ("compiled_ns", "Triton is not installed, and without it nothing can be compiled"),
        ),
        notes=(Note("gpu-shared", "another process uses the GPU"),),
        measured_at="2026-01-01T00:00:00Z",
    ),
    kept="kept in /home/me/.cache/kernelcount/rates.json",
)  # fmt: skip


def test_the_screen_shows_each_rate_with_its_unit_or_why_it_is_unknown():
    assert render(REACHED, form="table", width=60) == (
        "\n"
        "measured on Some GPU · torch 2.11.0 · 100 multiprocessors,\n"
        "2026-01-01T00:00:00Z\n"
        "  copy, DRAM                      2.5 TB/s\n"
        "  copy, L2 cache                   unknown\n"
        "    the size of the L2 cache is not known\n"
        "  matmul, f32                   40 TFLOP/s\n"
        "  matmul, tf32                     unknown\n"
        "    this GPU has no TF32\n"
        "  matmul, bf16                1250 TFLOP/s\n"
        "  matmul, f16                      unknown\n"
        "    out of memory\n"
        "  matmul, f64                      unknown\n"
        "    out of memory\n"
        "  kernel in a CUDA graph           1.25 µs\n"
        "  eager op, on the CPU              900 ns\n"
        "  module call, on the CPU          1.95 µs\n"
        "  compiled call, on the CPU        unknown\n"
        "    Triton is not installed, and without it nothing can be\n"
        "    compiled\n"
        "another process uses the GPU\n"
        "kept in /home/me/.cache/kernelcount/rates.json\n"
    )


def test_the_document_has_each_rate_or_null_and_the_reason():
    rates = json.loads(render(REACHED, form="json"))["rates"]
    assert (rates["device"], rates["torch"], rates["multiprocessors"]) == (
        "Some GPU",
        "2.11.0",
        100,
    )
    assert (rates["copy"], rates["copy_l2"]) == (2_500_000_000_000, None)
    assert rates["matmul"] == {
        "f32": 40_000_000_000_000, "tf32": None, "bf16": 1_250_000_000_000_000, "f16": None,
        "f64": None,
    }  # fmt: skip
    assert (rates["launch_ns"], rates["eager_ns"], rates["compiled_ns"]) == (1250, 900, None)
    assert rates["unmeasured"]["matmul.tf32"] == "this GPU has no TF32"
    assert rates["notes"] == [{"code": "gpu-shared", "detail": "another process uses the GPU"}]
    assert rates["measured_at"] == "2026-01-01T00:00:00Z"
    assert rates["kept"] == "kept in /home/me/.cache/kernelcount/rates.json"


def test_without_rates_none_is_zero_and_each_has_the_reason():
    none = Diagnosis(unrated="there is no GPU here")
    assert render(none, form="table") == "\nno rates were measured: there is no GPU here\n"
    rates = json.loads(render(none, form="json"))["rates"]
    assert rates["copy"] is None
    assert set(rates["matmul"].values()) == {None}
    assert set(rates["unmeasured"].values()) == {"there is no GPU here"}
    assert len(rates["unmeasured"]) == len(FIGURES)


def test_what_failed_and_what_was_recorded_are_told():
    failed = Diagnosis((), code=3, said="there is no GPU here")
    assert json.loads(render(failed, form="json"))["error"] == {
        "code": 3,
        "message": "there is no GPU here",
    }
    recorded = Diagnosis((), recorded="atlas.json: 12 library calls")
    assert render(recorded, form="table") == "atlas.json: 12 library calls\n"
    assert json.loads(render(recorded, form="json"))["recorded"].startswith("atlas.json")


def test_no_control_reaches_the_screen():
    evil = Diagnosis((Check("a", False, "b\x1b[2Jc", "d\x07e"),))
    assert all(line.isprintable() for line in render(evil, form="table").splitlines())
