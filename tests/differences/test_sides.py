"""A file -> the variants that it holds."""

import json

import pytest
from render.samples import capture
from traces.rows import kernel, launch

from kernelcount.differences.sides import read_sides
from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Unmeasured
from kernelcount.traces import saved


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [launch(1, 10), kernel(1, 100)]}))
    return path


def test_a_trace_is_one_side_and_saved_captures_are_one_each(trace, tmp_path):
    (side,) = read_sides(trace)
    assert (side.kind, side.name, side.capture.count("kernel")) == ("trace", str(trace), 1)
    path = tmp_path / "c.json"
    path.write_bytes(saved.dump([capture("eager"), Unmeasured("compile", "it hung")]))
    assert [(s.kind, s.name) for s in read_sides(path)] == [
        ("captures", "eager"),
        ("captures", "compile"),
    ]


def test_what_is_none_of_these_is_an_error(tmp_path):
    path = tmp_path / "x"
    path.write_text("{}")
    with pytest.raises(UnreadableError):
        read_sides(path)
    with pytest.raises(UnreadableError, match="no such file"):
        read_sides(tmp_path / "none")


def test_only_traces_have_regions(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(saved.dump([capture("eager")]))
    with pytest.raises(UsageError, match="no annotations"):
        read_sides(path, "attention")


LOCK = """\
- target: f.py:f
  variant: compile
  setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", cublas: "12.8", basis: measured}
  kernels: {triton_poi_fused_add_relu_0: 2, "void k<int>()": 1}
  copies: 1
  fills: 0
- target: f.py:f
  variant: eager
  setup: {gpu: H200, torch: "2.13.0", basis: paper}
  kernels: {}
"""


def test_a_lock_file_is_a_side_for_each_entry(tmp_path):
    path = tmp_path / "kernelcount.lock"
    path.write_text(LOCK)
    compiled, eager = read_sides(path)
    assert (compiled.name, compiled.kind, compiled.unknown) == ("compile", "lock", ())
    capture = compiled.capture
    assert [(r.name, r.activity, r.count, r.time_ns) for r in capture.rows()] == [
        ("triton_poi_fused_add_relu_0", "kernel", 2, None),
        ("void k<int>()", "kernel", 1, None),
        ("copy", "copy", 1, None),
    ]
    assert capture.target.spec == "f.py:f"
    assert (capture.environment.torch, capture.environment.architecture) == ("2.11.0", "sm_90")
    assert capture.environment.libraries == (("cublas", "12.8"),)
    assert (eager.unknown, eager.capture.basis) == (("copy", "fill"), "paper")
    assert len(eager.capture.records) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# nothing\n", "nothing is recorded in this lock file"),
        ("- target: f\n", "there is no variant in this entry"),
        (LOCK.replace("relu_0: 2", f"relu_0: {10**15 - 1}"), ":1: more kernels than one call"),
    ],
)
def test_a_lock_file_that_is_none_is_an_error_that_says_where(tmp_path, text, said):
    path = tmp_path / "kernelcount.lock"
    path.write_text(text)
    with pytest.raises((UnreadableError, UsageError), match=said):
        read_sides(path)


def test_a_lock_file_has_no_regions(tmp_path):
    path = tmp_path / "kernelcount.lock"
    path.write_text(LOCK)
    with pytest.raises(UsageError, match="no annotations"):
        read_sides(path, "attention")
