"""What counts as an operation on the CPU, and what is a kernel that Inductor generated."""

import json

import pytest
from cases.operations import COMPILED, EAGER
from counting import CASES, operations

from kernelcount.devices.base import MARK
from kernelcount.operations import read_operations

FUNCTIONS = CASES / "operations.py"


@pytest.mark.parametrize("name", EAGER)
def test_eager_operations_that_do_work_are_counted_once(count, name):
    outcome = count(f"{FUNCTIONS}:{name}")["eager"]
    assert outcome.count("aten") == EAGER[name], operations(outcome)
    assert outcome.count("generated") == 0


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_show_generated_kernels_and_library_operations(count, name):
    outcome = count(f"{FUNCTIONS}:{name}", "compile")["compile"]
    counted = (outcome.count("aten"), outcome.count("generated"))
    assert counted == COMPILED[name], operations(outcome)


def test_a_part_bears_the_name_of_the_operation_that_the_user_called(count):
    outcome = count(f"{FUNCTIONS}:dropout")["eager"]
    assert [(r.label, r.name) for r in outcome.rows()] == [
        ("dropout", "aten::bernoulli_"),
        ("dropout", "aten::div_"),
        ("dropout", "aten::mul"),
    ]


def test_a_generated_kernel_loses_the_number_of_its_graph(count):
    outcome = count(f"{FUNCTIONS}:add_relu", "compile")["compile"]
    assert list(operations(outcome)) == ["cpp_fused_add_relu_0"]


def trace(tmp_path, *rows, mark=(0, 100)):
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}
        for name, ts, dur, tid in rows
    ]
    if mark:
        where = {"pid": 1, "tid": 1, "ts": mark[0], "dur": mark[1]}
        events.append({"ph": "X", "cat": "user_annotation", "name": MARK, **where})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def names(path):
    return [record.work.name for record in read_operations(path)]


def test_what_stands_inside_an_operation_is_its_own_business(tmp_path):
    rows = [("aten::relu", 1, 9, 1), ("aten::clamp_min", 2, 5, 1)]
    assert names(trace(tmp_path, *rows)) == ["aten::relu"]


def test_a_composite_operation_is_what_it_is_made_of(tmp_path):
    rows = [("aten::linear", 1, 9, 1), ("aten::t", 2, 1, 1), ("aten::addmm", 4, 5, 1)]
    assert names(trace(tmp_path, *rows)) == ["aten::addmm"]


@pytest.mark.parametrize(
    ("inside", "counted"),
    [("aten::maximum", ["aten::maximum"]), ("aten::fill_", ["aten::max"])],
)
def test_an_operation_with_overloads_of_both_kinds_is_told_by_what_it_holds(
    tmp_path, inside, counted
):
    rows = [("aten::max", 1, 9, 1), (inside, 2, 5, 1)]
    assert names(trace(tmp_path, *rows)) == counted


def test_operations_of_several_threads_are_in_order_of_start(tmp_path):
    rows = [("aten::mul", 5, 50, 2), ("aten::add", 1, 90, 1), ("aten::sub", 10, 20, 1)]
    assert names(trace(tmp_path, *rows)) == ["aten::add", "aten::mul"]


def test_what_ran_outside_the_call_is_left_out(tmp_path):
    rows = [("aten::add", 1, 2, 1), ("aten::mul", 101, 2, 1)]
    assert names(trace(tmp_path, *rows)) == ["aten::add"]


def test_an_operation_nobody_knows_is_counted(tmp_path):
    assert names(trace(tmp_path, ("mine::op", 1, 2, 1))) == ["mine::op"]


def test_a_trace_without_the_call_is_another_profilers_doing(tmp_path):
    assert read_operations(trace(tmp_path, ("aten::add", 1, 2, 1), mark=None)) is None
