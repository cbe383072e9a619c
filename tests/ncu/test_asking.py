"""What becomes of a capture once the logs are there: counters where they match, and notes."""

from array import array

import pytest

from kernelcount.model import Capture, Counters, Lane, Note, Records, Work
from kernelcount.ncu import metrics
from kernelcount.ncu.asking import told
from kernelcount.ncu.log import Log, Profiled
from kernelcount.ncu.process import Unread

BYTES = {metrics.READ: 800.0, metrics.WRITTEN: 400.0, metrics.TIME: 100.4}
LONG, WAIT, SELECTED, BARRIER = (
    f"smsp__pcsamp_warps_issue_stalled_{reason}"
    for reason in ("long_scoreboard", "wait", "selected", "barrier")
)
SHARES = {
    metrics.OCCUPANCY: 0.8, metrics.DRAM: 0.9, metrics.SM: 0.1,
    LONG: 30.0, WAIT: 10.0, SELECTED: 500.0, BARRIER: None,
}  # fmt: skip


def capture(*names, notes=()):
    works = tuple(Work(n, "copy" if n.startswith("Mem") else "kernel") for n in names)
    order, zeros = array("i", range(len(names))), array("q", [0] * len(names))
    records = Records(works, (Lane("0", "7"),), order, array("i", zeros), zeros, zeros)
    return Capture("eager", records=records, notes=notes)


def log(values, *names, passes=1):
    return Log(tuple(Profiled(name, metrics=values) for name in names), passes)


def test_both_runs_together_make_the_counters_of_a_kernel_and_a_copy_has_none():
    found = told(capture("k", "Memcpy DtoD"), [log(BYTES, "k"), log(SHARES, "k", passes=9)])
    assert found.counters == (Counters(800, 400, 100, 0.8, 0.9, 0.1, "long_scoreboard"), None)
    assert found.notes == ()


def test_notes_that_were_there_stay():
    note = Note("served-by-l2", "it is")
    found = told(capture("k", notes=(note,)), [Unread("time was up")])
    assert found.notes == (note, Note("no-counters", "no counters: time was up"))
    assert found.counters == ()


def test_where_the_second_run_fails_the_bytes_of_the_first_stand():
    found = told(capture("k"), [log(BYTES, "k"), Unread("time was up")])
    assert found.counters == (Counters(800, 400, 100),)
    assert [note.code for note in found.notes] == ["no-counters"]


def test_where_one_run_saw_other_kernels_the_other_run_stands():
    found = told(capture("k"), [log(BYTES, "k", "k"), log(SHARES, "k")])
    assert found.counters == (Counters(None, None, None, 0.8, 0.9, 0.1, "long_scoreboard"),)
    assert [note.code for note in found.notes] == ["ncu-differs"]


def test_a_difference_in_both_runs_is_told_once():
    found = told(capture("k"), [log(BYTES), log(SHARES)])
    assert [note.detail for note in found.notes] == [
        "under Nsight Compute the call launched 0 kernels where 1 were counted; no counter is "
        "matched to any"
    ]


def test_metrics_that_ncu_has_no_value_of_are_named():
    without = {**BYTES, metrics.WRITTEN: None}
    none_sampled = {k: v for k, v in SHARES.items() if k not in (LONG, WAIT, metrics.SM)}
    found = told(capture("k"), [log(without, "k"), log(none_sampled, "k")])
    assert found.counters == (Counters(800, None, 100, 0.8, 0.9, None, None),)
    assert [note.detail for note in found.notes] == [
        f"ncu has no value here of {metrics.WRITTEN}",
        f"ncu has no value here of {metrics.SM}, {metrics.STALLS}",
    ]


@pytest.mark.parametrize(("passes", "codes"), [(1, []), (None, []), (3, ["ncu-replayed"])])
def test_bytes_that_took_several_passes_are_doubtful(passes, codes):
    found = told(capture("k"), [log(BYTES, "k", passes=passes), log(SHARES, "k", passes=9)])
    assert [note.code for note in found.notes] == codes


def test_a_warp_that_issues_does_not_wait():
    assert metrics.stall({SELECTED: 500.0, WAIT: 1.0}) == "wait"
    assert metrics.stall({SELECTED: 500.0, WAIT: 0.0}) is None
