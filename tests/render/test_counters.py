"""What Nsight Compute counted stands beside what is modelled, and an estimate is called one."""

import json
from array import array
from dataclasses import replace

from kernelcount.model import Beside, Capture, Counters, Paper, Run, Work
from kernelcount.render import render

from . import samples

READ, FUSED = (
    Counters(800_000_512, 399_998_976, 276_000, 0.8125, 0.925, 0.115, "long_scoreboard"),
    Counters(800_000_000, 400_000_000, 273_000, None, None, None, None),
)


def launched(capture, **given):
    """The capture with one launch configuration for all of its kernels."""
    records = capture.records
    works = tuple(replace(work, **given) for work in records.works)
    return replace(capture, records=replace(records, works=works))


def report():
    how = {"grid": (97657, 1, 1), "block": (128, 1, 1), "registers": 32, "shared_memory": 0}
    eager = replace(samples.eager(), counters=(READ, replace(READ, dram_read=400_000_000)))
    eager = launched(eager, **how, occupancy=0.75)
    fused = replace(samples.compiled(), counters=(FUSED,))
    paper = Paper(0, 2, False, 1_200_000_000, 800_000_000, 400_000_000, 1_200_000_000, 10**12)
    modelled = Beside(Capture("eager", basis="paper", paper=paper), same_calls=True)
    run = Run((eager, fused), 100_000_000, (modelled, None))
    return replace(samples.run_report(), runs=(run,))


def test_the_bytes_stand_below_the_modelled_transfers():
    lines = [line.strip() for line in render(report(), format="table").splitlines()]
    (at,) = (i for i, line in enumerate(lines) if line.startswith("DRAM bytes"))
    assert lines[at] == "DRAM bytes      2 GB    1.2 GB   by Nsight Compute"
    assert lines[at - 1].startswith("transfers")


def test_where_one_kernel_has_no_counters_the_bytes_are_unknown():
    part = replace(samples.eager(), counters=(READ, None))
    text = render(samples.run_report(part, samples.compiled()), format="table")
    (line,) = (line for line in text.splitlines() if "DRAM bytes" in line)
    assert line.split()[2:4] == ["unknown", "unknown"]


def test_without_counters_nothing_is_said_of_them():
    assert "DRAM" not in render(samples.add_relu(), format="table", full=True)


def test_full_lists_launch_and_counters_of_every_kernel():
    text = render(report(), format="table", full=True)
    said = " ".join(text.split())
    assert "grid 97657 · block 128 · 32 registers · occupancy 75 % estimated" in said
    assert (
        "ncu: DRAM 800 MB read, 400 MB written · occupancy 81 % · 92 % of DRAM's peak · "
        "12 % of the SMs' · waits: long scoreboard"
    ) in said
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "grid" not in render(report(), format="table")


def test_a_row_that_was_launched_in_several_ways_says_so():
    first = Work(samples.FUSED, "kernel", None, (8, 2, 1), (128, 1, 1), 32, 1024)
    other = replace(first, grid=(4, 1, 1))
    capture = samples.capture(
        "eager", (samples.FUSED, "kernel", None, 5), (samples.FUSED, "kernel", None, 5)
    )
    records = replace(capture.records, works=(first, other), work=array("i", [0, 1]))
    text = render(samples.run_report(replace(capture, records=records)), format="table", full=True)
    assert "launched in several ways · block 128 · 32 registers · 1.02 kB shared" in text


def test_json_holds_them_by_row_and_by_variant_with_their_basis():
    eager, fused = json.loads(render(report(), format="json"))["variants"]
    assert eager["dram"] == {"read": 1_200_000_512, "written": 799_997_952, "basis": "ncu"}
    row = eager["rows"][0]
    assert (row["grid"], row["block"], row["registers"], row["shared_memory"]) == (
        [97657, 1, 1], [128, 1, 1], 32, 0,
    )  # fmt: skip
    assert row["occupancy"] == {"share": 0.75, "basis": "estimated"}
    assert row["counters"] == {
        "dram_read": 800_000_512, "dram_written": 399_998_976, "time_ns": 276_000,
        "occupancy": 0.8125, "dram_share": 0.925, "sm_share": 0.115, "stall": "long_scoreboard",
        "basis": "ncu",
    }  # fmt: skip
    assert fused["rows"][0]["counters"]["occupancy"] is None
    assert fused["rows"][0]["occupancy"] is None


def test_a_trace_that_claims_more_memory_than_there_is_does_no_harm():
    huge = launched(samples.compiled(), shared_memory=10**400, registers=-1, grid=())
    assert "shared" not in render(samples.run_report(huge), format="table", full=True)
