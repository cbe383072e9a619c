"""What stands behind a row: launch configurations that its records share, counters put together."""

from array import array
from dataclasses import replace

import pytest

from kernelcount.conclusions import details
from kernelcount.model import Capture, Counters, Lane, Records, Work

SMALL = Work("k", "kernel", "add", (8, 1, 1), (128, 1, 1), 32, 0, occupancy=0.5)
LARGE = replace(SMALL, grid=(16, 1, 1), occupancy=0.75)
OTHER = Work("other", "kernel", "mul")
COPY = Work("Memcpy DtoD", "copy")


def capture(*works, counters=()):
    table = tuple(dict.fromkeys(works))
    zeros = array("i", [0] * len(works))
    times = array("q", range(len(works)))
    indices = array("i", map(table.index, works))
    records = Records(table, (Lane("0", "7"),), indices, zeros, times, times)
    return Capture("eager", records=records, counters=counters)


def test_there_is_a_detail_for_each_row_in_its_order():
    counted = capture(OTHER, SMALL, COPY, OTHER, LARGE)
    rows, found = counted.rows(), details.of_rows(counted)
    assert [row.name for row in rows] == ["other", "k", "Memcpy DtoD"]
    assert [detail.block for detail in found] == [None, (128, 1, 1), None]


def test_what_all_records_share_is_told_and_what_they_do_not_is_unknown():
    (one,) = details.of_rows(capture(SMALL, SMALL))
    assert (one.grid, one.registers, one.shared_memory, one.occupancy, one.several) == (
        (8, 1, 1), 32, 0, 0.5, False,
    )  # fmt: skip
    (both,) = details.of_rows(capture(SMALL, LARGE))
    assert (both.grid, both.block, both.occupancy, both.several) == (
        None, (128, 1, 1), None, True,
    )  # fmt: skip


FIRST = Counters(800, 400, 100, 0.8, 0.9, 0.1, "long_scoreboard")
SECOND = Counters(200, 0, 300, 0.4, 0.5, 0.1, "wait")


def test_bytes_and_times_add_up_and_shares_are_averaged_by_time():
    (row,) = details.of_rows(capture(SMALL, SMALL, counters=(FIRST, SECOND)))
    expected = Counters(1000, 400, 400, 0.5, 0.6, 0.1, "wait")
    assert row.counters == replace(
        expected,
        occupancy=pytest.approx(expected.occupancy),
        dram_share=pytest.approx(expected.dram_share),
    )


def test_a_row_of_which_one_record_was_not_matched_has_no_counters():
    (row,) = details.of_rows(capture(SMALL, SMALL, counters=(FIRST, None)))
    assert row.counters is None


def test_a_figure_that_one_record_lacks_is_unknown_and_the_others_are_not():
    without = replace(SECOND, dram_read=None, occupancy=None, stall=None)
    (row,) = details.of_rows(capture(SMALL, SMALL, counters=(FIRST, without)))
    assert (row.counters.dram_read, row.counters.occupancy) == (None, None)
    assert (row.counters.dram_written, row.counters.stall) == (400, "long_scoreboard")


def test_without_times_shares_that_differ_cannot_be_averaged():
    pair = (replace(FIRST, time_ns=None), replace(SECOND, time_ns=None))
    (row,) = details.of_rows(capture(SMALL, SMALL, counters=pair))
    assert (row.counters.occupancy, row.counters.sm_share) == (None, 0.1)


def test_dram_bytes_of_a_call_are_those_of_its_kernels_and_copies_have_none():
    assert details.dram(capture(SMALL, COPY, OTHER, counters=(FIRST, None, SECOND))) == (1000, 400)
    assert details.dram(capture(SMALL, COPY, OTHER, counters=(FIRST, None, None))) is None
    assert details.dram(capture(SMALL)) is None
