"""Which launch put each kernel on the GPU, what is missing, and what a region or a step holds."""

import itertools

import pytest
from traces.rows import (
    annotation,
    copy,
    driver,
    graph_launch,
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


def counts(outcome):
    capture = seen(outcome)
    return capture.count("kernel"), capture.launches, capture.graph_launches, capture.complete


def steps(outcome):
    return {step.name: step.kernels for step in seen(outcome).steps}


# Launches and their records


def test_a_kernel_answers_its_launch_whatever_the_order_in_the_file(trace):
    rows = [launch(1, 10), kernel(1, 100), launch(2, 20), kernel(2, 110)]
    for order in itertools.permutations(rows):
        assert counts(trace(*order)) == (2, 2, 0, True)


def test_a_launch_without_a_record_makes_the_count_unknown(trace):
    outcome = trace(launch(11, 10), launch(12, 20), kernel(12))
    assert counts(outcome) == (1, 2, 0, False)
    assert reason(outcome).startswith("1 of 2 launches has no device record (correlation 11)")


def test_a_graph_launch_is_one_launch_of_many_kernels_before_and_after_it_in_the_file(trace):
    rows = [kernel(5, 100), kernel(5, 103), graph_launch(5), kernel(5, 106), copy(5, 109)]
    for order in itertools.permutations(rows):
        outcome = trace(*order)
        assert counts(outcome) == (3, 1, 1, True)
        assert not notes(outcome)


def test_a_graph_launch_without_any_record_is_lost(trace):
    assert reason(trace(graph_launch(5), launch(6), kernel(6))).startswith("1 of 2 launches")


def test_a_second_kernel_of_one_launch_is_counted_and_noted(trace):
    outcome = trace(launch(1), kernel(1, 100), kernel(1, 105))
    assert counts(outcome) == (2, 1, 0, True)
    assert list(notes(outcome)) == ["more-kernels-than-launches"]


@pytest.mark.parametrize("own", [False, True], ids=["the same correlation", "its own"])
@pytest.mark.parametrize("answered", ["launch", "driver"])
def test_a_driver_row_inside_a_runtime_launch_is_that_launch(trace, own, answered):
    correlation = 2 if own else 1
    record = kernel(1 if answered == "launch" else correlation)
    rows = [launch(1, 10), driver(correlation, 11), record]
    for order in itertools.permutations(rows):
        assert counts(trace(*order)) == (1, 1, 0, True)


def test_a_driver_row_on_its_own_is_a_launch(trace):
    other = driver(2, 11, tid=5)  # at the same time as the runtime's, on another thread
    outcome = trace(launch(1, 10), other, kernel(1), kernel(2, 110), driver(3, 50), kernel(3, 120))
    assert counts(outcome) == (3, 3, 0, True)


def test_a_driver_row_whose_runtime_launch_is_lost_too_is_one_lost_launch(trace):
    outcome = trace(launch(1, 10), driver(2, 11), launch(3, 20), kernel(3))
    assert reason(outcome).startswith("1 of 2 launches has no device record (correlation 1)")


def test_a_copy_call_is_no_launch_and_needs_no_record(trace):
    outcome = trace(launch(1, name="cudaMemcpyAsync"), launch(2, 20), kernel(2))
    assert counts(outcome) == (1, 1, 0, True)


def test_a_copy_does_not_answer_the_launch_of_a_kernel(trace):
    outcome = trace(launch(5, 10), launch(5, 11, "cudaMemcpyAsync", pid=8), copy(5))
    assert reason(outcome).startswith("1 of 1 launch has no device record (correlation 5)")


def test_a_copy_that_rocm_makes_with_a_kernel_answers_its_call(trace):
    blit = kernel(5, name="__amd_rocclr_copyBuffer")
    outcome = trace(
        launch(5, name="hipMemcpyAsync"), blit, launch(6, 20, "hipLaunchKernel"), kernel(6)
    )
    assert counts(outcome) == (2, 1, 0, True)
    assert not notes(outcome)


def test_intels_calls_are_launches(trace):
    call = launch(1, name="urEnqueueKernelLaunch", cat="xpu_runtime")
    outcome = trace(call, driver(2, 11) | {"cat": "xpu_driver"}, kernel(1))
    assert counts(outcome) == (1, 1, 0, True)
    assert seen(outcome).environment.kind in ("cuda", "xpu")


# Several processes in one file


def test_equal_correlations_of_two_processes_are_two_launches_and_two_kernels(trace):
    rows = [launch(5, 10, pid=1), launch(5, 11, pid=2), kernel(5, 100), kernel(5, 101, device=1)]
    for order in itertools.permutations(rows):
        outcome = trace(*order)
        assert counts(outcome) == (2, 2, 0, True)
        assert not notes(outcome)


def test_one_record_for_equal_correlations_of_two_processes_is_one_lost_launch(trace):
    outcome = trace(launch(5, 10, pid=1), launch(5, 11, pid=2), kernel(5))
    assert reason(outcome).startswith("1 of 2 launches has no device record (correlation 5)")


def test_a_kernel_and_a_copy_of_equal_correlations_each_answer_their_own_call(trace):
    rows = [launch(5, 10, pid=1), launch(5, 11, "cudaMemcpyAsync", pid=2), copy(5), kernel(5)]
    for order in itertools.permutations(rows):
        assert counts(trace(*order)) == (1, 1, 0, True)


def test_graph_launches_of_equal_correlation_are_answered_by_the_kernels_of_one_device_each(trace):
    records = [kernel(5, 100 + i, device=i % 2) for i in range(6)]
    outcome = trace(graph_launch(5, 10, pid=1), graph_launch(5, 11, pid=2), *records)
    assert counts(outcome) == (6, 2, 2, True)


def test_steps_are_those_of_the_launching_process(trace):
    rows = [
        annotation("ProfilerStep#1", 0, 100, pid=1), annotation("ProfilerStep#2", 100, 100, pid=1),
        annotation("ProfilerStep#1", 0, 150, pid=2), annotation("ProfilerStep#2", 150, 100, pid=2),
        launch(5, 120, pid=1), launch(5, 120.5, pid=2), kernel(5, 300), kernel(5, 301, device=1),
    ]  # fmt: skip
    assert steps(trace(*rows)) == {"ProfilerStep#1": 1, "ProfilerStep#2": 1}


def test_a_region_is_one_of_its_own_process(trace):
    rows = [annotation("r", 0, 50, pid=1), launch(1, 10, pid=1), launch(2, 10, pid=2)]
    assert kernels(trace(*rows, kernel(1), kernel(2, 110), region="r")) == 1


def test_labels_are_those_of_the_launching_process(trace):
    rows = [
        op("aten::add", 0, 50, 7, pid=1), op("aten::mul", 0, 50, 7, pid=2),
        launch(1, 10, pid=1), launch(2, 10, pid=2),
        kernel(1, 100, **{"External id": 7}), kernel(2, 110, **{"External id": 7}),
    ]  # fmt: skip
    assert [r.work.label for r in seen(trace(*rows)).records] == ["add", "mul"]


def test_devices_are_told_apart_though_their_streams_bear_one_number(trace):
    outcome = trace(kernel(1, 100), kernel(2, 100, device=1), kernel(3, 110, device=1))
    assert {d: t.kernels for d, t in seen(outcome).devices().items()} == {"0": 1, "1": 2}


# Rows that stand there twice


def test_a_kernel_row_that_stands_there_twice_is_one_kernel(trace):
    for rows in ([launch(1), kernel(1), kernel(1)], [kernel(1), kernel(1), launch(1)]):
        outcome = trace(*rows)
        assert counts(outcome) == (1, 1, 0, True)
        assert list(notes(outcome)) == ["duplicates"]


def test_a_launch_row_that_stands_there_twice_is_one_launch(trace):
    outcome = trace(launch(1), launch(1), kernel(1))
    assert counts(outcome) == (1, 1, 0, True)
    assert list(notes(outcome)) == ["duplicates"]


def test_a_whole_trace_written_twice_counts_once(trace):
    rows = [launch(1, 10), kernel(1, 100), launch(2, 20), kernel(2, 110)]
    outcome = trace(*rows, *rows)
    assert counts(outcome) == (2, 2, 0, True)
    assert notes(outcome)["duplicates"].startswith("4 records stood there twice")


def test_kernels_that_differ_in_one_field_only_are_two_be_the_field_used_or_not(trace):
    for field in ("queued", "graph node id", "stream", "no such field"):
        outcome = trace(kernel(1, **{field: 1}), kernel(1, **{field: 2}))
        assert kernels(outcome) == 2
        assert "duplicates" not in notes(outcome)


def test_kernels_without_times_are_alike_only_where_all_else_is(trace):
    rows = [kernel(1, None, dur=None), kernel(2, None, dur=None), kernel(2, None, dur=None)]
    assert kernels(trace(*rows)) == 2


def test_kernels_less_than_a_nanosecond_apart_are_two(trace):
    assert kernels(trace(kernel(1, 100.0001), kernel(1, 100.0002))) == 2


def test_of_a_launch_answered_by_a_kernel_that_stood_there_twice_the_record_is_lost(trace):
    outcome = trace(launch(5, 10, pid=1), launch(5, 20, pid=2), kernel(5), kernel(5))
    assert counts(outcome) == (1, 2, 0, False)


# Kernels without a launch row, launches without a correlation


def test_a_kernel_with_a_correlation_before_all_others_was_launched_before_the_recording(trace):
    outcome = trace(kernel(3, 200), launch(10, 100), kernel(10, 150))
    assert counts(outcome) == (2, 1, 0, True)
    assert list(notes(outcome)) == ["launched-before-recording"]


def test_a_kernel_that_ran_before_the_first_host_row_was_launched_before_the_recording(trace):
    outcome = trace(kernel(30, 90), launch(10, 100), kernel(10, 150))
    assert (
        "1 kernel was launched before the recording began"
        in (notes(outcome)["launched-before-recording"])
    )


def test_any_other_kernel_without_a_launch_row_is_said_to_have_none_and_no_more(trace):
    outcome = trace(launch(10, 100), kernel(10, 150), kernel(11, 160), kernel(12, 170))
    assert counts(outcome) == (3, 1, 0, None)
    assert notes(outcome) == {
        "launch-row-missing": "2 kernels have no launch row; counted, but in no step"
    }


def test_a_host_row_that_is_no_launch_shows_that_the_recording_had_begun(trace):
    sync = launch(5, 50, "cudaStreamSynchronize")
    assert "launch-row-missing" in notes(
        trace(sync, kernel(7, 90), launch(10, 100), kernel(10, 150))
    )


def test_launches_without_a_correlation_leave_it_open_whether_all_records_came(trace):
    outcome = trace(launch(None, 10), launch(None, 20), kernel(None, 100), kernel(None, 110))
    assert counts(outcome) == (2, 2, 0, None)
    assert notes(outcome)["uncorrelated"].startswith(
        "without a correlation id: 2 launches and 2 kernels"
    )


def test_more_launches_without_a_correlation_than_kernels_left_for_them_is_incomplete(trace):
    outcome = trace(launch(None, 10), launch(None, 20), kernel(None, 100))
    assert counts(outcome) == (1, 2, 0, False)
    assert "for 1 of them no kernel is left" in reason(outcome)


def test_launches_without_a_correlation_and_no_kernel_at_all_are_never_zero_kernels(trace):
    assert reason(trace(launch(None)))


def test_a_kernel_is_known_to_be_missing_although_others_are_fine(trace):
    outcome = trace(launch(1, 10), kernel(1), launch(None, 20))
    assert counts(outcome) == (1, 2, 0, False)


# Captures into graphs


def _capture(begin, end, tid=9, pid=9):
    names = (begin, "cudaStreamBeginCapture"), (end, "cudaStreamEndCapture")
    return [launch(900 + ts, ts, name, pid, tid=tid, dur=1.0) for ts, name in names]


def test_launches_captured_into_a_graph_ran_nothing(trace):
    rows = [*_capture(10, 30), launch(1, 20), launch(2, 40), kernel(2)]
    outcome = trace(*rows)
    assert counts(outcome) == (1, 1, 0, True)
    assert notes(outcome)["captured"].startswith("1 launch was captured into a CUDA graph")


def test_backward_is_captured_from_a_thread_of_its_own(trace):
    rows = [
        *_capture(10, 30),
        launch(1, 20, tid=77),
        graph_launch(2, 40),
        kernel(2),
        kernel(2, 104),
    ]
    assert counts(trace(*rows)) == (2, 1, 1, True)


def test_captures_on_two_streams_may_nest(trace):
    rows = [*_capture(10, 30), *_capture(12, 20), launch(1, 25), launch(2, 40), kernel(2)]
    assert counts(trace(*rows)) == (1, 1, 0, True)


def test_a_launch_in_another_process_is_not_captured(trace):
    assert reason(trace(*_capture(10, 30), launch(1, 20, pid=8), launch(2, 40), kernel(2)))


def test_a_launch_during_a_capture_that_has_its_record_is_a_launch(trace):
    assert counts(trace(*_capture(10, 30), launch(1, 20), kernel(1))) == (1, 1, 0, True)


# Regions


def test_a_region_holds_what_was_launched_in_it_on_any_thread_whenever_it_ran(trace):
    rows = [
        annotation("r", 100, 50), launch(1, 110), launch(2, 120, tid=77), launch(3, 160),
        kernel(1, 90), kernel(2, 900), kernel(3, 130),
    ]  # fmt: skip
    outcome = trace(*rows, region="r")
    assert counts(outcome) == (2, 2, 0, True)


def test_a_region_that_is_repeated_or_nested_in_itself_holds_each_launch_once(trace):
    rows = [
        annotation("r", 0, 100), annotation("r", 10, 20), annotation("r", 200, 10, tid=77),
        launch(1, 15), launch(2, 50), launch(3, 150), launch(4, 205),
        *(kernel(i, 300 + 10 * i) for i in range(1, 5)),
    ]  # fmt: skip
    assert counts(trace(*rows, region="r")) == (3, 3, 0, True)


def test_a_launch_lost_outside_the_region_is_not_the_regions(trace):
    rows = [annotation("r", 0, 20), launch(1, 10), launch(2, 50), kernel(1)]
    assert counts(trace(*rows, region="r")) == (1, 1, 0, True)
    rows[0] = annotation("r", 0, 90)
    assert counts(trace(*rows, region="r")) == (1, 2, 0, False)


def test_a_region_says_how_many_kernels_could_not_be_placed(trace):
    rows = [annotation("r", 0, 50), launch(1, 10), kernel(1), kernel(2, 110), kernel(None, 120)]
    outcome = trace(*rows, region="r")
    assert counts(outcome) == (1, 1, 0, None)
    assert notes(outcome)["launch-row-missing"].startswith("2 kernels have no launch row")


def test_a_region_of_launches_without_a_correlation_is_unknown(trace):
    rows = [annotation("r", 0, 50), launch(None, 10), kernel(None), launch(2, 90), kernel(2, 110)]
    assert "which kernels are of the region cannot be told" in reason(trace(*rows, region="r"))


def test_a_region_without_any_host_row_is_unknown(trace):
    assert reason(trace(annotation("r", 0, 50), kernel(1), region="r"))


def test_a_region_without_an_end_is_unknown(trace):
    rows = [annotation("r", 0, None), launch(1, 10), kernel(1)]
    assert "no valid start or end" in reason(trace(*rows, region="r"))
    unclosed = half("B", annotation("r", 0, 50))
    assert "no valid start or end" in reason(trace(unclosed, launch(1, 10), kernel(1), region="r"))


def test_a_graph_launched_in_a_region_brings_all_its_kernels(trace):
    rows = [
        kernel(5, 100),
        annotation("r", 0, 50),
        graph_launch(5, 10),
        kernel(5, 300),
        copy(5, 310),
    ]
    outcome = trace(*rows, region="r")
    assert counts(outcome) == (2, 1, 1, True)
    assert seen(outcome).count("copy") == 1


# Steps


def test_a_kernel_belongs_to_the_step_that_launched_it(trace):
    rows = [
        annotation("ProfilerStep#1", 0, 100), annotation("ProfilerStep#2", 100, 100),
        launch(1, 90), launch(2, 110), launch(3, 210),
        kernel(1, 150), kernel(2, 500), kernel(3, 600),
    ]  # fmt: skip
    assert steps(trace(*rows)) == {"ProfilerStep#1": 1, "ProfilerStep#2": 1}


def test_steps_without_launch_rows_are_unknown(trace):
    outcome = trace(annotation("ProfilerStep#1", 0, 100), kernel(1, 50))
    assert steps(outcome) == {}
    assert "steps-unknown" in notes(outcome)


def test_steps_of_processes_with_numbers_and_with_names_stand_in_one_file(trace):
    rows = [
        annotation("ProfilerStep#1", 0, 100, pid=1),
        annotation("ProfilerStep#1", 0, 100, pid="a"),
    ]
    assert steps(trace(*rows, launch(1, 10, pid="a"), kernel(1))) == {"ProfilerStep#1": 1}


# Begin and end rows


def test_a_begin_and_an_end_are_one_event(trace):
    whole = [launch(1), kernel(1)]
    rows = [half(phase, r) for r in whole for phase in "BE"]
    outcome = trace(*rows)
    assert counts(outcome) == (1, 1, 0, True)
    assert seen(outcome).kernel_time_ns == 2000


def test_an_end_needs_neither_a_name_nor_a_category(trace):
    begin, end = half("B", kernel(1)), {"ph": "E", "pid": 0, "tid": 7, "ts": 103.5}
    assert [(r.work.name, r.duration_ns) for r in seen(trace(begin, end)).records] == [("k", 3500)]


def test_what_the_begin_does_not_say_the_end_may(trace):
    begin = {"ph": "B", "pid": 0, "tid": 7, "ts": 100.0, "args": {"device": 3}}
    end = half("E", kernel(1)) | {"args": {"correlation": 1, "stream": 8}}
    (record,) = seen(trace(begin, end)).records
    assert (record.work.name, record.lane.device, record.lane.stream) == ("k", "3", "8")


def test_pairs_nest_among_those_of_categories_that_do_not_count(trace):
    outer = row("python_function", "f", 90.0, 50.0, 0, 7)
    rows = [half("B", outer), half("B", kernel(1)), half("E", kernel(1)), half("E", outer)]
    outcome = trace(*rows)
    assert kernels(outcome) == 1
    assert seen(outcome).kernel_time_ns == 2000
    assert not notes(outcome)


def test_a_kernel_that_begins_without_an_end_makes_the_count_unknown(trace):
    outcome = trace(half("B", kernel(1)), kernel(2, 200))
    assert kernels(outcome) == 2
    assert "1 kernel row begins without an end" in reason(outcome)


def test_an_end_without_a_begin_is_nothing_to_count(trace):
    outcome = trace(half("E", kernel(1)), kernel(2, 200))
    assert kernels(outcome) == 1
    assert "unpaired" in notes(outcome)


def test_a_kernel_row_without_a_phase_makes_the_count_unknown(trace):
    outcome = trace({k: v for k, v in kernel(1).items() if k != "ph"}, kernel(2, 200))
    assert "1 kernel row has no phase (ph)" in reason(outcome)


def test_rows_of_other_phases_are_no_kernels(trace):
    assert kernels(trace(kernel(1), kernel(2, 200) | {"ph": "i"}, kernel(3) | {"ph": "s"})) == 1


# Times


@pytest.mark.parametrize("dur", [None, -1.0, "x", True, [1], 1e300])
def test_a_kernel_without_a_valid_duration_is_counted_and_left_out_of_the_times(trace, dur):
    outcome = trace(kernel(1, 100), kernel(2, 200, dur=dur))
    assert kernels(outcome) == 2
    assert seen(outcome).kernel_time_ns == 2000
    assert "untimed-kernels" in notes(outcome)


def test_records_stand_in_order_of_start_those_without_one_last(trace):
    rows = [kernel(1, None), kernel(2, 300), kernel(3, 0, dur=0), kernel(4, 200)]
    starts = [r.start_ns for r in seen(trace(*rows)).records]
    assert starts == [200_000, 300_000, None, None]


def test_times_keep_their_nanoseconds(trace):
    (record,) = seen(trace(kernel(1, 5123940691805.793, dur=2.785))).records
    assert (record.start_ns, record.duration_ns) == (5123940691805793, 2785)


def test_two_kernels_at_once_are_busy_once(trace):
    outcome = trace(kernel(1, 0, dur=100.0), kernel(2, 50, stream=8, dur=100.0))
    assert (seen(outcome).kernel_time_ns, seen(outcome).busy_ns) == (200_000, 150_000)
