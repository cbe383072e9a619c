"""Waits in a trace: which there are, of what kind, and for how long the GPU had nothing to do."""

from pathlib import Path

import pytest
from traces.rows import annotation, copy, kernel, launch, op, seen

from kernelcount.devices.base import MARK
from kernelcount.model import Capture, Sync
from kernelcount.reading import read_file
from kernelcount.reading.waits import kind

TO_HOST, FROM_PINNED = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)"
FROM_HOST = "Memcpy HtoD (Pageable -> Device)"
CALL = annotation(MARK, 0.0, 1000.0)


def sync(ts, dur=5.0, name="cudaStreamSynchronize", **args):
    """A host call that waits."""
    return launch(args.pop("correlation", 900 + int(ts)), ts, name, dur=dur, **args)


def run(correlation, launched, starts, dur=10.0, external=None, **args):
    """A kernel and its launch."""
    ids = {} if external is None else {"External id": external}
    return (
        launch(correlation, launched, **ids, **args),
        kernel(correlation, starts, dur=dur, **ids),
    )


def waited(correlation, at, name, ops, starts=None, sync_dur=6.0, kind="cudaMemcpyAsync"):
    """A copy and the wait for it, in nested ops from the outermost on."""
    rows = [op(f"aten::{n}", at - 1 + i / 10, 20.0 - i, 50 * correlation + i)
            for i, n in enumerate(ops)]  # fmt: skip
    external = {"External id": 50 * correlation + len(ops) - 1}
    starts = at + 3 if starts is None else starts
    return (
        *rows,
        launch(correlation, at, kind, dur=2.0, **external),
        copy(correlation, starts, name, **external),
        sync(at + 2, sync_dur, **external),
    )


def syncs(trace, *rows):
    return seen(trace(*rows)).syncs


def test_a_wait_has_its_kind_its_op_and_what_it_costs(trace):
    found = syncs(
        trace, CALL, *run(1, 10, 12),
        *waited(2, 40, "Memcpy DtoH (Device -> Pinned)", ["item", "_local_scalar_dense"]),
        *run(3, 60, 62),
    )  # fmt: skip
    assert found == (
        Sync(
            "item", op="item", call="cudaStreamSynchronize", idle_ns=21_000, wait_ns=8_000,
            copy_ns=1_000, seen_by=("trace",),
        ),
    )  # fmt: skip
    assert found[0].free is False


def test_a_gpu_that_goes_on_with_other_work_makes_a_wait_free(trace):
    (found,) = syncs(
        trace, CALL, *run(1, 10, 12, dur=200.0, tid=9),
        *waited(2, 40, TO_HOST, ["to", "_to_copy", "copy_"]), *run(3, 60, 212),
    )  # fmt: skip
    assert (found.kind, found.idle_ns, found.free) == ("copy to host", 0, True)


def test_waiting_for_what_is_done_already_is_free(trace):
    found = syncs(
        trace, CALL, sync(5, name="cudaDeviceSynchronize"), *run(1, 20, 22),
        sync(80, name="cudaDeviceSynchronize"), *run(2, 90, 92),
    )  # fmt: skip
    assert [(s.kind, s.idle_ns, s.free) for s in found] == [("explicit", 0, True)] * 2


def test_what_follows_two_waits_is_told_once(trace):
    found = syncs(
        trace, CALL, *run(1, 10, 20, dur=80.0), sync(30, 10.0, "cudaEventSynchronize"),
        sync(50, 55.0, "cudaDeviceSynchronize"), *run(2, 120, 125),
    )  # fmt: skip
    assert [s.idle_ns for s in found] == [0, 25_000]
    after_a_copy = syncs(
        trace, CALL, *run(1, 10, 12), *waited(2, 40, TO_HOST, ["to", "copy_"]),
        sync(60, name="cudaDeviceSynchronize"), *run(3, 90, 95),
    )  # fmt: skip
    assert [s.idle_ns for s in after_a_copy] == [54_000, 0]


def test_the_gpu_is_idle_while_the_cpu_stages_a_pageable_copy(trace):
    (found,) = syncs(
        trace, CALL, *run(1, 10, 12), *waited(2, 100, FROM_HOST, ["to", "copy_"], starts=160.0),
        *run(3, 180, 190),
    )  # fmt: skip
    assert (found.kind, found.idle_ns, found.hideable) == ("pageable copy", 89_000, True)


def test_after_the_last_launch_the_gpu_is_idle_to_the_end_of_the_call(trace):
    rows = (*run(1, 10, 12), *waited(2, 40, TO_HOST, ["to", "copy_"]))
    (marked,) = syncs(trace, annotation(MARK, 0.0, 70.0), *rows)
    assert marked.idle_ns == 29_000
    (unmarked,) = syncs(trace, *rows)
    assert (unmarked.idle_ns, unmarked.free) == (None, None)


def test_our_own_synchronise_after_the_call_is_not_the_users(trace):
    assert syncs(trace, CALL, *run(1, 10, 12), sync(1001, name="cudaDeviceSynchronize")) == ()


def test_a_recorders_synchronise_at_the_end_of_a_trace_is_not_the_users(trace):
    assert syncs(trace, *run(1, 10, 12), sync(50, name="cudaDeviceSynchronize")) == ()
    both = syncs(
        trace, *run(1, 10, 12), sync(30, name="cudaDeviceSynchronize"), *run(2, 50, 55),
        sync(80, name="cudaDeviceSynchronize"),
    )  # fmt: skip
    assert [(s.kind, s.idle_ns) for s in both] == [("explicit", 0)]


def test_a_copy_of_pageable_memory_to_the_host_is_a_wait_by_itself(trace):
    rows = (
        op("aten::copy_", 39.0, 40.0, 5),
        launch(2, 40, "cudaMemcpyAsync", dur=30.0, **{"External id": 5}),
        copy(2, 60, TO_HOST, **{"External id": 5}),
    )
    (found,) = syncs(trace, CALL, *run(1, 10, 12), *rows, *run(3, 90, 95))
    assert (found.kind, found.op, found.idle_ns) == ("copy to host", "copy_", 54_000)
    assert syncs(trace, CALL, launch(2, 40, "cudaMemcpyAsync", dur=30.0), copy(2, 75)) == ()


def test_a_pageable_copy_to_the_gpu_is_one_where_its_call_outlasts_it(trace):
    def one(dur):
        called = launch(2, 40, "cudaMemcpyAsync", dur=dur)
        return syncs(trace, CALL, called, copy(2, 60, FROM_HOST), *run(3, 90, 95))

    assert [s.kind for s in one(30.0)] == ["pageable copy"]
    assert one(10.0) == ()


def test_a_copy_that_something_was_launched_after_is_not_what_is_waited_for(trace):
    (found,) = syncs(
        trace, CALL, launch(1, 10, "cudaMemcpyAsync", dur=2.0), copy(1, 12, FROM_PINNED),
        *run(2, 20, 22), sync(26), *run(3, 60, 65),
    )  # fmt: skip
    assert (found.kind, found.copy_ns) == ("explicit", None)


def test_a_call_that_copies_and_waits_at_once_is_one_wait(trace):
    (found,) = syncs(
        trace, CALL, launch(1, 10, "hipMemcpyWithStream", dur=9.0),
        copy(1, 12, "CopyDeviceToHost"), *run(2, 40, 45),
    )  # fmt: skip
    assert (found.kind, found.call, found.wait_ns) == (
        "copy to host", "hipMemcpyWithStream", 9_000,
    )  # fmt: skip


def test_a_drivers_row_inside_a_runtimes_is_the_same_wait(trace):
    inner = sync(31, 3.0, "cuStreamSynchronize", cat="cuda_driver")
    assert len(syncs(trace, CALL, *run(1, 10, 12), sync(30, 6.0), inner, *run(2, 50, 55))) == 1


def test_waits_outside_a_region_are_left_out(trace):
    rows = (
        annotation("mine", 100.0, 50.0), *run(1, 10, 12), sync(30), *run(2, 50, 52),
        *run(3, 110, 112), sync(120), *run(4, 140, 150),
    )  # fmt: skip
    capture = seen(trace(*rows, region="mine"))
    assert [s.idle_ns for s in capture.syncs] == [28_000]


def test_where_launches_have_no_record_nothing_is_said_of_waits(trace):
    assert syncs(trace, CALL, launch(1, 10), sync(30)) is None


def test_a_kernel_of_unknown_launch_leaves_the_cost_unknown(trace):
    lost = kernel(77, 100, dur=10.0)
    (found,) = syncs(trace, CALL, *run(1, 10, 12), sync(15, 20.0), lost, *run(2, 200, 205))
    assert found.idle_ns is None


@pytest.mark.parametrize(
    ("outermost", "innermost", "copied", "expected"),
    [
        ("is_nonzero", "_local_scalar_dense", "Memcpy DtoH (Device -> Pinned)", "bool"),
        ("equal", "_local_scalar_dense", "", "bool"),
        ("item", "_local_scalar_dense", "", "item"),
        ("index", "nonzero", "", "mask"),
        ("index_put_", "nonzero", "", "mask"),
        ("masked_select", "nonzero", "", "mask"),
        ("where", "nonzero", "", "nonzero"),
        ("to", "copy_", TO_HOST, "copy to host"),
        ("to", "copy_", FROM_PINNED, "copy to device"),
        (None, None, FROM_HOST, "pageable copy"),
        ("repeat_interleave", "repeat_interleave", TO_HOST, "inside an op"),
        ("unique", "_unique2", "", "inside an op"),
        ("multinomial", "_local_scalar_dense", TO_HOST, "inside an op"),
        ("bincount", "copy_", TO_HOST, "inside an op"),
        ("linalg_inv", "_local_scalar_dense", TO_HOST, "inside an op"),
        (None, None, "", "explicit"),
    ],
)
def test_the_kind_is_told_by_the_ops_and_the_copy(outermost, innermost, copied, expected):
    assert kind(outermost, innermost, copied) == expected


# ── recorded on an H200 ──────────────────────────────────────────────────────────────────────────

RECORDED = Path(__file__).parent.parent / "data" / "h200"
WITH_WAITS = {
    "hidden_sync.eager": [("bool", "is_nonzero")],
    "hidden_sync.compile": [("bool", "is_nonzero")],
    "copy_h2d.eager": [("pageable copy", "to")],
    "copy_h2d.compile": [("pageable copy", "copy_")],
    "gpt2.eager": [("bool", "is_nonzero")],
    "ddp.rank0": [("explicit", None)] * 24,
}


def recorded(name):
    (outcome,) = read_file(RECORDED / f"h200-{name}.json.gz")
    assert isinstance(outcome, Capture)
    return outcome


@pytest.mark.parametrize("name", WITH_WAITS)
def test_the_waits_in_recorded_traces_are_found(name):
    found = recorded(name).syncs
    assert [(s.kind, s.op) for s in found] == WITH_WAITS[name]
    # Before the first record of the rank there ran what was launched before the recording began.
    unknown = 6 if name == "ddp.rank0" else 0
    assert sum(s.idle_ns is None for s in found) == unknown


@pytest.mark.parametrize(
    "name", sorted(
        path.name.removeprefix("h200-").removesuffix(".json.gz")
        for path in RECORDED.glob("*.json.gz")
        if path.name.removeprefix("h200-").removesuffix(".json.gz") not in WITH_WAITS
    )
)  # fmt: skip
def test_recorded_traces_without_a_wait_have_none(name):
    assert recorded(name).syncs == ()


def test_what_a_wait_costs_is_no_more_than_what_the_gpu_was_idle():
    capture = recorded("hidden_sync.eager")
    (sync,) = capture.syncs
    assert 50_000 < sync.idle_ns < capture.idle_ns
    assert sync.copy_ns == 1_440
