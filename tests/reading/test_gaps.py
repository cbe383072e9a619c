"""When the GPU waited for the CPU in a trace, and what the CPU did meanwhile."""

from traces.rows import annotation, copy, graph_launch, kernel, launch, op, seen

from kernelcount.model import Gap
from kernelcount.reading.gaps import MOST


def run(correlation, launched, starts, dur=10.0, name="k", **args):
    """A kernel and its launch."""
    return launch(correlation, launched, **args), kernel(correlation, starts, name, dur=dur)


def gaps(trace, *rows, **options):
    return seen(trace(*rows, **options)).gaps


def test_a_gap_says_when_it_was_between_what_and_what_the_cpu_did(trace):
    ids = {"External id": 2}
    found = gaps(
        trace, *run(1, 10, 14, name="first"), op("aten::mul", 30, 12.0, 2),
        launch(2, 34, **ids), kernel(2, 40, "second", dur=5.0, **ids),
    )  # fmt: skip
    assert found == (
        Gap(10_000, 16_000, "first", "mul", (("Python", 6_000), ("mul", 6_000),
                                              ("launching", 4_000))),
    )  # fmt: skip


def test_what_was_launched_already_leaves_no_gap(trace):
    assert gaps(trace, *run(1, 10, 14), *run(2, 15, 27)) == ()
    assert gaps(trace, graph_launch(1, 10), kernel(1, 14), kernel(1, 30), kernel(1, 50)) == ()


def test_copies_keep_the_gpu_at_work_and_other_streams_do(trace):
    rows = (*run(1, 10, 14), launch(2, 20, "cudaMemcpyAsync"), copy(2, 23), *run(3, 28, 33))
    assert [g.duration_ns for g in gaps(trace, *rows)] == [9_000]
    beside = (*run(1, 10, 14, 100.0), *run(2, 20, 24, 5.0), *run(3, 60, 64, 5.0))
    assert gaps(trace, *beside) == ()


def test_before_a_gap_stands_what_ended_last(trace):
    rows = (
        *run(1, 10, 14, 50.0, "long"), *run(2, 20, 24, 5.0, "short"), *run(3, 80, 84, 5.0, "then"),
    )  # fmt: skip
    (gap,) = gaps(trace, *rows)
    assert (gap.before, gap.after, gap.start_ns, gap.duration_ns) == (
        "long", "then", 50_000, 20_000,
    )  # fmt: skip


def test_the_longest_come_first_and_the_sum_is_of_all(trace):
    rows = [row for i in range(20) for row in run(i + 1, i * 100.0, i * 100.0 + 5 + i)]
    capture = seen(trace(*rows))
    durations = [g.duration_ns for g in capture.gaps]
    assert durations == [91_000] * MOST
    assert capture.idle_ns == 19 * 91_000


def test_the_cpu_waits_copies_and_launches_and_inner_ops_have_their_own_time(trace):
    (gap,) = gaps(
        trace, *run(1, 10, 14, 6.0), launch(9, 18, "cudaStreamSynchronize", dur=12.0),
        op("aten::linear", 40, 30.0, 5), op("aten::addmm", 45, 20.0, 6),
        launch(2, 50, "cudaLaunchKernel", **{"External id": 6}), kernel(2, 100),
    )  # fmt: skip
    assert dict(gap.doing) == {
        "Python": 40_000, "waiting for the GPU": 10_000, "linear": 10_000, "addmm": 16_000,
        "launching": 4_000,
    }  # fmt: skip
    assert sum(ns for _, ns in gap.doing) == gap.duration_ns == 80_000


def test_another_threads_doings_are_not_the_launching_ones(trace):
    (gap,) = gaps(
        trace, *run(1, 10, 14, 6.0), op("aten::other", 20, 50.0, 5, tid=8), *run(2, 60, 70),
    )  # fmt: skip
    assert dict(gap.doing) == {"Python": 46_000, "launching": 4_000}


def test_where_a_record_has_no_time_or_no_launch_gaps_are_not_told(trace):
    assert gaps(trace, *run(1, 10, 14), kernel(5, 40), *run(2, 90, 95)) is None
    assert gaps(trace, *run(1, 10, 14), *run(2, 90, 0, 0)) is None
    region = (annotation("mine", 0.0, 50.0), *run(1, 10, 14), *run(2, 90, 95))
    assert gaps(trace, *region, region="mine") is None


def test_a_trace_without_host_calls_tells_nothing_of_either(trace):
    capture = seen(trace(kernel(1, 10), kernel(2, 90)))
    assert (capture.syncs, capture.gaps, capture.idle_ns) == (None, None, None)
