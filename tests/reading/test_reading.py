"""What `read` says of a file: the outcome, its notes, and why a count is unknown."""

import json

import pytest
from traces.rows import (
    annotation,
    half,
    kernel,
    kernels,
    launch,
    notes,
    op,
    reason,
    row,
    seen,
)  # fmt: skip

from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Capture, Unmeasured
from kernelcount.reading import ANOTHER_PROFILER, read_file, read_trace

WHOLE = [launch(1, 10), kernel(1, 100), launch(2, 20), kernel(2, 110)]


@pytest.fixture
def written(tmp_path):
    """A file of this text or these bytes."""

    def path_of(data, name="trace.json"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return path_of


def test_a_whole_trace_is_a_capture_without_a_note(trace):
    outcome = trace(*WHOLE)
    assert isinstance(outcome, Capture)
    assert (kernels(outcome), outcome.launches, outcome.complete) == (2, 2, True)
    assert outcome.environment.kind == "cuda"
    assert outcome.notes == ()


def test_kernels_alone_are_counted_their_launches_being_unknown(trace):
    outcome = trace(kernel(1), kernel(2, 110))
    assert reason(outcome) is None
    assert (kernels(outcome), outcome.launches, outcome.complete) == (2, None, None)


def test_host_calls_without_a_launch_are_zero_kernels(trace):
    outcome = trace(launch(1, name="cudaDeviceSynchronize"))
    assert reason(outcome) is None
    assert (kernels(outcome), outcome.launches, outcome.complete) == (0, 0, True)


def test_launches_without_any_device_record_are_never_zero_kernels(trace):
    outcome = trace(launch(1, 10), launch(2, 20))
    assert reason(outcome).startswith("2 of 2 launches have no device record (correlation 1, 2)")
    assert seen(outcome).complete is False


def test_of_many_lost_launches_a_few_are_named(trace):
    outcome = trace(*(launch(i, i) for i in range(1, 30)), kernel(1))
    assert "(correlation 2, 3, 4, 5, 6, ...)" in reason(outcome)


def test_a_trace_of_cpu_rows_alone_says_so_and_how_many_ops_there_are(trace):
    outcome = trace(
        op("aten::relu", 0, 9, 1), op("aten::clamp_min", 1, 5, 2), op("aten::add", 20, 5, 3)
    )
    assert "no GPU rows in this trace, CPU operations alone (2 at the top level)" in reason(outcome)


def test_a_trace_of_nothing_that_counts_says_so(trace):
    for rows in ([], [row("python_function", "f", 0, 1, 2, 3)], [{"a": 1}]):
        assert "no GPU rows in this trace" in reason(trace(*rows))


def test_a_cut_off_trace_is_counted_in_part(written):
    text = json.dumps({"traceEvents": WHOLE})
    for length in range(text.index('"kernel"'), len(text)):
        (outcome,) = read_file(written(text[:length]))
        assert isinstance(outcome, Unmeasured)
        assert outcome.code == 3
        assert kernels(outcome) <= 2
        assert seen(outcome).complete is False
        assert "what stands before is no whole count" in outcome.reason


def test_an_unreadable_file_is_an_error_that_names_it(written, tmp_path):
    for path in (
        written("{}"),
        written("junk"),
        written(b"\x1f\x8b\0"),
        tmp_path / "none",
        tmp_path,
    ):
        with pytest.raises(UnreadableError, match=str(path)):
            read_file(path)


def test_torch_compiles_own_work_in_the_profile_is_noted(trace):
    outcome = trace(
        *WHOLE, annotation("CachingAutotuner.benchmark_all_configs (dynamo_timed)", 0, 9)
    )
    assert list(notes(outcome)) == ["compiled-in-profile"]


def test_several_steps_are_noted_since_their_sum_is_no_call(trace):
    steps = [annotation(f"ProfilerStep#{i}", 100 * i, 90) for i in range(2)]
    assert list(notes(trace(*steps, *WHOLE))) == ["several-steps"]


def test_calls_of_two_vendors_are_noted(trace):
    outcome = trace(*WHOLE, launch(3, 30, "hipLaunchKernel"), kernel(3, 120))
    assert notes(outcome)["several-vendors"] == "calls of cuda and hip"


def test_a_step_without_an_end_is_noted(trace):
    assert "no-end" in notes(trace(annotation("ProfilerStep#1", 0, None), *WHOLE))


def test_begins_and_ends_without_their_other_half_are_noted(trace):
    outcome = trace(half("E", launch(9, 50)), half("B", launch(8, 60)), *WHOLE)
    assert notes(outcome)["unpaired"].startswith("2 begin or end rows lack")


def test_everything_noted_of_a_trace_that_is_no_json_is_a_note_of_the_capture(written):
    text = json.dumps(WHOLE).encode()
    wide, name = text.decode().encode("utf-32-le"), '"k"'.encode("utf-32-le")
    for damage, code in (
        (text.replace(b'"k"', b'"k\xff"', 1), "not-utf8"),
        (text.replace(b'"ts": 100', b'"ts": inf', 1), "not-json"),
        (text[:-1], "open-list"),
        (wide.replace(name, name[:4] + b"\xff\xff\xff\x7f" + name[8:], 1), "not-utf8"),
    ):
        (outcome,) = read_file(written(damage))
        assert reason(outcome) is None
        assert kernels(outcome) == 2
        assert code in notes(outcome)


def test_the_same_file_read_twice_gives_the_same(written):
    path = written(json.dumps({"traceEvents": [*WHOLE, *WHOLE, kernel(5), kernel(None, None)]}))
    first, second = read_file(path)[0], read_file(path)[0]
    assert first == second


# Regions


def test_a_region_that_there_is_not_is_an_error_that_names_the_nearest(trace):
    rows = [annotation("attention", 0, 9), annotation("mlp", 20, 9), *WHOLE]
    with pytest.raises(UsageError, match=r"no annotation 'atention'.*there are: attention$"):
        trace(*rows, region="atention")
    with pytest.raises(UsageError, match="there are: attention, mlp"):
        trace(*rows, region="zzz")
    with pytest.raises(UsageError, match="it holds no annotation"):
        trace(*WHOLE, region="zzz")


def test_a_region_without_a_start_is_an_error_of_its_own(trace):
    with pytest.raises(UsageError, match="the annotation 'r' has no valid start"):
        trace(annotation("r", None, 9), *WHOLE, region="r")


def test_a_region_without_launches_is_zero_kernels(trace):
    outcome = trace(annotation("r", 500, 9), *WHOLE, region="r")
    assert reason(outcome) is None
    assert (kernels(outcome), outcome.launches, outcome.complete) == (0, 0, True)


def test_kernels_from_before_the_recording_are_left_out_of_a_region_with_a_note(trace):
    outcome = trace(annotation("r", 5, 9), kernel(0, 7), *WHOLE, region="r")
    assert kernels(outcome) == 1
    assert notes(outcome)["launched-before-recording"].endswith("left out")
    assert seen(outcome).complete is True


# Traces of our own runs


def test_a_trace_of_ours_without_our_mark_was_taken_by_another_profiler(written):
    path = written(json.dumps({"traceEvents": WHOLE}))
    assert reason(read_trace(path, "eager", mark="kernelcount")) == ANOTHER_PROFILER
    path = written(json.dumps({"traceEvents": [annotation("kernelcount", 0, 500), *WHOLE]}))
    outcome = read_trace(path, "eager", mark="kernelcount")
    assert (outcome.name, reason(outcome), kernels(outcome)) == ("eager", None, 2)


def test_a_trace_of_ours_without_a_sign_of_life_is_not_believed(written):
    path = written(json.dumps({"traceEvents": [annotation("kernelcount", 0, 500)]}))
    assert reason(read_trace(path, "eager", mark="kernelcount")) == ANOTHER_PROFILER
