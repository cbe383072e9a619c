"""What a machine can measure, on the screen and as a document."""

import json

from kernelcount.model import Check, Diagnosis
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
