"""One variant in two files: what is said to have changed, and what is not."""

from dataclasses import replace

import pytest
from render.samples import ADD, FUSED, H200, RELU, capture

from kernelcount.differences.changes import between_runs, compare
from kernelcount.model import (
    Break,
    Capture,
    Environment,
    Note,
    Paper,
    Side,
    Step,
    Target,
    Timing,
    Unmeasured,
)


def side(outcome, kind="captures"):
    return Side(outcome.name, kind, outcome)


def compared(before, after, **kinds):
    old, new = (kinds.get(which, "captures") for which in ("old", "new"))
    return compare(side(before, old), side(after, new))


def changes(pair):
    return [(c.change, c.row.name) for c in pair.changes]


def total(pair, name):
    found = pair.total(name)
    return found and (found.before, found.after)


def timed(name, *samples, kernels=1, **given):
    ran = [(FUSED, "kernel", None, 1000)] * kernels
    return capture(name, *ran, timing=Timing(samples, 1, ("eager",)), **given)


STEADY = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 100.1, 99.9, 100.0, 100.0]


def test_rows_appear_vanish_and_run_more_often():
    before = capture("x", (ADD, "kernel", "add", 100), (RELU, "kernel", "relu", 100))
    after = capture(
        "x", (ADD, "kernel", "add", 100), (ADD, "kernel", "add", 100), ("new", "kernel", None, 5)
    )
    pair = compared(before, after)
    assert changes(pair) == [("count", ADD), ("vanished", RELU), ("appeared", "new")]
    assert total(pair, "kernels") == (2, 3)


@pytest.mark.parametrize(("now", "change"), [(106, "same"), (120, "time"), (80, "time")])
def test_a_kernel_is_slower_or_faster_only_where_one_profiled_call_can_tell(now, change):
    pair = compared(
        capture("x", ("k", "kernel", None, 100)), capture("x", ("k", "kernel", None, now))
    )
    assert changes(pair) == [(change, "k")]
    assert pair.kernel_speed.verdict == {106: "no difference", 120: "slower", 80: "faster"}[now]


def test_times_are_not_compared_where_a_kernel_has_none():
    before = capture("x", ("k", "kernel", None, 100), ("l", "kernel", None, None))
    after = capture("x", ("k", "kernel", None, 900), ("l", "kernel", None, 50))
    pair = compared(before, after)
    assert changes(pair) == [("same", "k"), ("same", "l")]
    assert pair.kernel_speed is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"environment": Environment("NVIDIA A100", "cuda", "2.11.0", "3.6.0")}, "other-device"),
        ({"target": Target("f.py:f", ("f32[200]",))}, "other-inputs"),
    ],
)
def test_on_another_gpu_or_with_other_inputs_counts_are_compared_and_times_are_not(given, code):
    before = capture("x", ("k", "kernel", None, 100), target=Target("f.py:f", ("f32[100]",)))
    after = replace(before, records=capture("x", ("k", "kernel", None, 900)).records, **given)
    pair = compared(before, after)
    assert changes(pair) == [("same", "k")]
    assert (pair.kernel_speed, total(pair, "kernel_time")) == (None, None)
    assert [note.code for note in pair.notes] == [code]


def test_another_torch_is_said_and_times_are_compared():
    before = capture("x", ("k", "kernel", None, 100))
    after = replace(before, environment=replace(H200, torch="2.12.0"))
    pair = compared(before, after)
    assert [note.detail for note in pair.notes] == ["another torch: 2.11.0 before, 2.12.0 after"]
    assert pair.kernel_speed.verdict == "no difference"


def test_calls_of_two_runs_are_told_apart_by_the_intervals_of_their_medians():
    slower = between_runs(Timing(tuple(STEADY)), Timing(tuple(x * 1.2 for x in STEADY)))
    assert slower.verdict == "slower"
    assert slower.low < slower.ratio < slower.high
    assert slower.ratio == pytest.approx(1 / 1.2)


def test_of_two_runs_a_few_percent_are_no_difference_however_steady_each_is():
    speed = between_runs(Timing(tuple(STEADY)), Timing(tuple(x * 1.05 for x in STEADY)))
    assert speed.verdict == "no difference"
    assert speed.high < 0.96  # its samples alone would call it slower


def test_samples_that_scatter_more_than_they_differ_are_no_difference():
    wild = [50.0, 150.0, 80.0, 200.0, 90.0, 60.0, 140.0, 120.0, 70.0, 160.0]
    assert between_runs(Timing(tuple(STEADY)), Timing(tuple(wild))).verdict == "no difference"


@pytest.mark.parametrize("few", [None, Timing((100.0,)), Timing((0.0,) * 10)])
def test_too_few_samples_and_none_are_no_comparison(few):
    assert between_runs(Timing(tuple(STEADY)), few) is None


def test_the_time_of_a_call_stands_beside_that_of_its_kernels():
    pair = compared(timed("eager", *STEADY), timed("eager", *(2 * x for x in STEADY)))
    assert (pair.call_speed.verdict, pair.kernel_speed.verdict) == ("slower", "no difference")
    assert total(pair, "call_time") == (100.0, 200.0)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Unmeasured("x", "it hung"), "after: it hung"),
        (capture("x", complete=False), "after: not every launch has its device record"),
        (capture("x", notes=(Note("incomplete", "one is lost"),)), "after: one is lost"),
        (capture("x", notes=(Note("memoised", "kept"),)), "after: nothing ran in the counted call"),
        (
            Capture("x", Environment("CPU", "cpu")),
            "one counts kernels on a GPU, the other operations",
        ),
    ],
    ids=["unmeasured", "incomplete", "noted", "remembered", "on the CPU"],
)
def test_where_a_count_is_unknown_nothing_is_concluded(outcome, reason):
    pair = compared(capture("x", ("k", "kernel", None, 100)), outcome)
    assert pair.unknown.startswith(reason)
    assert (pair.changes, pair.totals) == ((), ())


def test_what_is_wrong_on_either_side_is_said_of_both():
    pair = compared(Unmeasured("x", "it hung"), Unmeasured("x", "it crashed"))
    assert pair.unknown == "before: it hung; after: it crashed"


def test_calls_that_are_not_steady_and_other_numbers_of_steps_make_counts_inexact():
    one = capture("x", ("k", "kernel", None, 100))
    pair = compared(one, replace(one, stable=False))
    assert pair.total("kernels").why == "after: repeated calls did not launch the same kernels"
    assert [note.code for note in pair.notes] == ["inexact"]
    steps = [tuple(Step(f"ProfilerStep#{i}", 1, 100) for i in range(n)) for n in (2, 3)]
    pair = compared(*(replace(one, steps=s) for s in steps))
    assert pair.total("kernels").why.startswith("2 profiler steps before and 3 after: --region")
    assert not compared(*(replace(one, steps=steps[0]) for _ in range(2))).notes


def test_eager_code_in_place_of_compiled_is_said():
    note = Note("not-compiled", "0 graphs were compiled")
    pair = compared(capture("compile"), capture("compile", notes=(note,)))
    assert [n.detail for n in pair.notes] == ["after: 0 graphs were compiled"]


def test_on_paper_transfers_are_compared_and_no_times():
    worked_out = Paper(1, 1, False, 8, 4, 4, 8, 1)
    before = capture("x", ("k", "kernel", None, None), basis="paper", paper=worked_out)
    after = replace(before, paper=replace(worked_out, read=16))
    pair = compared(before, after)
    assert total(pair, "transfers") == (3.0, 5.0)
    assert pair.kernel_speed is None
    assert "kernel_time" not in {t.name for t in pair.known}


def test_a_lock_file_has_kernels_by_name_and_copies_by_number():
    lock = capture("x", ("k", "kernel", None, None), ("copy", "copy", None, None), launches=None)
    lock = replace(lock, launches=None, stable=None)
    after = capture(
        "x", ("k", "kernel", "mm", 10), ("k", "kernel", "add", 10),
        ("Memcpy DtoH", "copy", "item", 10), ("Memset", "fill", None, 10),
    )  # fmt: skip
    pair = compared(lock, after, old="lock")
    assert set(changes(pair)) == {("same", "copy"), ("appeared", "fill"), ("count", "k")}
    assert pair.kernel_speed is None
    pair = compare(Side("x", "lock", lock, ("fill",)), side(after))
    assert set(changes(pair)) == {("same", "copy"), ("count", "k")}
    assert pair.total("fills").why == "before: the lock file does not say"
    assert [t.name for t in pair.known] == ["kernels", "copies", "fills"]


def test_where_graphs_break_that_did_not_is_told_although_lines_have_moved():
    at = [
        Break("f.py", n, "step", reason) for n, reason in ((5, "print"), (9, "print"), (12, "item"))
    ]
    before = capture("compile", ("k", "kernel", None, 1), breaks=tuple(at[:1]))
    pair = compared(before, replace(before, breaks=(replace(at[0], line=7), *at[1:])))
    assert pair.breaks == tuple(at[1:])
    assert total(pair, "graph_breaks") == (1, 3)
    assert compared(before, before).breaks == ()
    assert compared(replace(before, breaks=None), before).breaks == ()


def test_eager_code_has_no_graph_that_could_break():
    eager = capture("eager", ("k", "kernel", None, 1))
    assert not compared(eager, eager).total("graph_breaks").applies
    mine = capture("compile", ("k", "kernel", None, 1))
    assert compared(mine, mine).total("graph_breaks").applies
    assert compared(replace(mine, name="???"), mine).total("graph_breaks").applies
