"""A file -> the variants that it holds."""

import json

import pytest
from render.samples import capture
from traces.rows import kernel, launch

from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Unmeasured
from kernelcount.sides import read_sides
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
