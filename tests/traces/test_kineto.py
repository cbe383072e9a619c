"""Rows as Kineto writes them, as its old versions did, and as others mistake them."""

import json

import pytest
from traces.rows import copy, kernel, kernels, launch, notes, op, read, reason, row, seen

from kernelcount.errors import UnreadableError
from kernelcount.traces.kineto import Kernel, KinetoTrace, device_rows
from kernelcount.traces.source import Source


@pytest.fixture
def trace(tmp_path):
    """Read a trace of these rows."""
    return lambda *rows, **options: read(tmp_path, list(rows), **options)


def test_numbers_written_as_text_are_numbers(trace):
    texts = row("kernel", "k", "100.5", "2.25", "0", "7", correlation="1", device="0", stream="7")
    outcome = trace(launch("1"), texts, kernel(2, 200), launch(2.0, 20))
    first, _ = seen(outcome).records
    assert (first.start_ns, first.duration_ns, first.lane.device) == (100_500, 2250, "0")
    assert seen(outcome).complete is True


@pytest.mark.parametrize("value", ["x", "", None, True, [1], {"a": 1}, 1.5, "1.5", float("nan")])
def test_what_is_no_whole_number_is_no_correlation(trace, value):
    outcome = trace(launch(1), kernel(value, 100), kernel(1, 110))
    assert kernels(outcome) == 2
    assert seen(outcome).complete is None


@pytest.mark.parametrize(
    "value",
    [1 << 63, -(1 << 63) - 1, 10**25, 10**4000, 1e30, str(10**30)],
    ids=lambda v: str(v)[:9],
)
def test_correlations_of_any_size_tell_launches_apart(trace, value):
    outcome = trace(launch(value), launch(7, 20), kernel(value, 100), kernel(7, 110))
    assert (kernels(outcome), seen(outcome).complete) == (2, True)


JUNK = [None, True, -1, 1e300, 10**400, "text", "\ud800", [], [[]], {}, {"a": []}, float("inf")]


@pytest.mark.parametrize("value", JUNK, ids=lambda v: repr(v)[:12])
@pytest.mark.parametrize("field", ["name", "pid", "tid", "ts", "dur", "args"])
def test_a_kernel_with_junk_in_a_field_is_a_kernel(trace, field, value):
    assert kernels(trace(launch(1), kernel(1), kernel(2, 110) | {field: value})) == 2


@pytest.mark.parametrize("value", JUNK, ids=lambda v: repr(v)[:12])
@pytest.mark.parametrize(
    "field",
    [
        "correlation", "device", "stream", "External id", "grid", "block", "registers per thread",
        "est. achieved occupancy %",
    ],
)  # fmt: skip
def test_a_kernel_with_junk_in_its_arguments_is_a_kernel(trace, field, value):
    odd = kernel(2, 110)
    odd["args"][field] = value
    assert kernels(trace(launch(1), kernel(1), odd)) == 2


@pytest.mark.parametrize(
    ("percent", "share"),
    [(46, 0.46), (100, 1.0), (0, None), ("46", 0.46), (101, None), (-1, None), (None, None)],
)
def test_the_occupancy_that_the_profiler_estimates_is_kept_as_a_share(trace, percent, share):
    named = {"est. achieved occupancy %": percent}
    (record,) = seen(trace(launch(1), kernel(1, **named))).records
    assert record.work.occupancy == share


@pytest.mark.parametrize("value", JUNK, ids=lambda v: repr(v)[:12])
@pytest.mark.parametrize("field", ["cat", "ph", "name", "pid", "tid", "ts", "dur", "args"])
def test_host_rows_with_junk_in_a_field_do_no_harm(trace, field, value):
    odd = [launch(5) | {field: value}, op("aten::add", 1, 2, 3) | {field: value}]
    outcome = trace(*odd, launch(1), kernel(1))
    assert kernels(outcome) == 1


def test_elements_that_are_no_events_are_passed_over_and_noted(trace):
    outcome = trace(None, "text", 7, [kernel(5)], True, kernel(1))
    assert kernels(outcome) == 1
    assert notes(outcome)["not-an-event"].startswith("5 elements")


def test_a_row_is_a_kernel_by_its_category_alone(trace):
    rows = [
        copy(1, name="my_kernel"), row("gpu_user_annotation", "kernel", 0, 9, 0, 7),
        row("cuda_sync", "kernel", 0, 9, 0, 7), row("cpu_op", "kernel", 0, 9, 0, 7),
        row("overhead", "kernel", 0, 9, 0, 7), row("no such category", "kernel", 0, 9, 0, 7),
        kernel(2, name="Memcpy"),
    ]  # fmt: skip
    assert [r.work.name for r in seen(trace(*rows)).records if r.work.activity == "kernel"] == [
        "Memcpy"
    ]


@pytest.mark.parametrize("category", ["KERNEL", "kErnel", "Kernel ", "kernels", "gpu_kernel"])
def test_no_other_spelling_is_a_kernel(trace, category):
    assert kernels(trace(kernel(1), kernel(2) | {"cat": category})) == 1


def test_of_two_alike_keys_in_a_row_the_last_counts(tmp_path):
    path = tmp_path / "trace.json"
    for first, last, right in (
        ("kernel", "cpu_op", 0),
        ("cpu_op", "kernel", 1),
        ("ac2g", "kernel", 1),
    ):
        path.write_text(f'[{{"cat": "{first}", "ph": "X", "cat": "{last}", "name": "k"}}]')
        batches = list(KinetoTrace(path).batches())
        assert sum(type(event) is Kernel for batch in batches for event in batch) == right


# Old traces


def _old(event, category):
    return event | {"cat": category}


def test_a_trace_of_old_pytorch_bears_capitalised_categories(trace):
    outcome = trace(
        _old(op("aten::add", 0, 9, 3), "Operator"), _old(launch(1), "Runtime"),
        _old(kernel(1, **{"external id": 3}), "Kernel"), _old(copy(2), "Memcpy"),
        _old(copy(3, 120), "Memset"), row("python_function", "f", 0, 9, 9, 9),
    )  # fmt: skip
    capture = seen(outcome)
    assert reason(outcome) is None
    assert [capture.count(a) for a in ("kernel", "copy", "fill")] == [1, 1, 1]
    assert (capture.launches, capture.complete) == (1, True)
    assert next(iter(capture.records)).work.label == "add"


@pytest.mark.parametrize(
    "others",
    [[launch(1)], [_old(launch(1), "Runtime"), kernel(2)], [op("aten::add", 0, 9, 3)], []],
    ids=["a new launch", "a new kernel", "a new op", "nothing else"],
)
def test_one_old_category_among_new_ones_is_more_likely_damage(trace, others):
    outcome = trace(*others, _old(kernel(1), "Kernel"))
    assert "of the category 'Kernel', as PyTorch spelt it before 1.12" in reason(outcome)


def test_the_legacy_format_does_not_tell_kernels_from_ops(trace):
    rows = [
        {"name": "aten::add", "ph": "X", "ts": 1, "dur": 2, "tid": 0, "pid": pid, "args": {}}
        for pid in ("CPU functions", "CUDA functions")
    ]
    assert "old autograd-profiler format" in reason(trace(*rows))


# The document


def test_a_trace_may_be_a_bare_list(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([launch(1), kernel(1)]))
    assert sum(map(len, KinetoTrace(path).batches())) == 2


@pytest.mark.parametrize(
    "text", ["{}", "7", '{"traceEvents": 5}', '{"traceEvents": {"a": 1}}', "junk"]
)
def test_a_document_without_a_list_of_events_is_unreadable(tmp_path, text):
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match="no traceEvents in it"):
        list(KinetoTrace(path).batches())


def test_the_devices_of_the_header_are_named(trace):
    devices = [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA H200"}, {"id": 2}, 7]
    assert seen(trace(kernel(1), deviceProperties=devices)).environment.device == "NVIDIA H200"
    for odd in (None, "x", {"name": "x"}, [[1]]):
        assert seen(trace(kernel(1), deviceProperties=odd)).environment.device is None


def test_device_rows_come_with_all_their_fields(tmp_path):
    path = tmp_path / "trace.json"
    rows = [kernel(1, odd=[1, {"a": None}]), launch(1), copy(2), None]
    path.write_text(json.dumps({"traceEvents": rows}))
    found = [
        (event.args.correlation, json.loads(text)) for event, text in device_rows(Source(path))
    ]
    assert found == [(1, rows[0]), (2, rows[2])]
