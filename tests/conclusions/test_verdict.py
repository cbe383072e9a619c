"""What holds a variant back, and what that rests on."""

from array import array
from dataclasses import replace

import pytest

from kernelcount.conclusions.roofline import Gpu
from kernelcount.conclusions.verdict import verdict
from kernelcount.model import (
    Beside,
    Capture,
    Environment,
    Lane,
    LaunchCosts,
    Paper,
    Rates,
    Records,
    Sync,
    Timing,
    Work,
)

MB, US = 1_000_000, 1_000  # bytes, nanoseconds
L2 = 60 * MB
MEASURED = Rates(
    "NVIDIA H200", "2.11.0", 132, copy=4.2e12, copy_l2=10e12,
    matmul=(("bf16", 750e12), ("f32", 50e12)), launch_ns=2_500, eager_ns=5_000,
    compiled_ns=20_000,
)  # fmt: skip
CITED = Rates("NVIDIA H200", "", 132, copy=4.8e12, matmul=(("bf16", 989.5e12), ("f32", 67e12)))
GPU = Gpu(MEASURED, CITED, L2)


def kernel(us, moved=0, blocks=10_000, *, known=True, **given):
    """A kernel that takes so many microseconds and moves so many bytes, and its duration."""
    read = moved if known else None
    written = 0 if known else None
    return Work("k", "kernel", "op", (blocks, 1, 1), read=read, written=written, **given), us * US


def capture(*ran, call_us=None, launches=None, **given):
    """What was measured: works and their durations one after the other."""
    works = tuple(dict.fromkeys(work for work, _ in ran))
    index = array("i", [works.index(work) for work, _ in ran])
    starts, clock = array("q"), 0
    for _, duration in ran:
        starts.append(clock)
        clock += round(duration)
    durations = array("q", [round(d) for _, d in ran])
    lanes = array("i", [0] * len(ran))
    records = Records(works, (Lane("0", "7"),), index, lanes, starts, durations)
    timing = None if call_us is None else Timing((call_us * US,) * 3)
    return Capture(
        "eager", Environment("NVIDIA H200", "cuda"), None, records,
        len(ran) if launches is None else launches, timing=timing, **given,
    )  # fmt: skip


def on_paper(measured, *, floor=1000 * MB, flops=(), own=()):
    """Paper that knows the bytes of every kernel that has any."""
    works = [measured.records.works[i] for i in measured.records.work]
    paper = Paper(
        0, len(works), False, sum(w.read or 0 for w in works), 0, floor, floor, 1,
        flops=flops, own=own,
    )  # fmt: skip
    expected = Capture("eager", basis="paper", paper=paper)
    return Beside(expected, same_calls=True, ledger=measured.records)


def held(measured, gpu=GPU, *, compiled=False, **paper):
    return verdict(measured, on_paper(measured, **paper), gpu, compiled=compiled)


def evidence(found, what):
    (one,) = [e for e in found.evidence if e.what == what]
    return one


# ── what launching costs ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("costs", "compiled", "held_back"),
    [
        (LaunchCosts(5_000, 20_000), False, "launch-bound"),
        (LaunchCosts(5_000, 20_000, 30_000), True, "launch-bound"),
        (LaunchCosts(5_000, 20_000, 10_000), True, "waiting for the CPU"),
        (LaunchCosts(5_000, 20_000), True, None),  # of compiled code nothing is known
        (LaunchCosts(None, 20_000), False, None),
    ],
)
def test_what_was_measured_beside_the_call_is_enough(costs, compiled, held_back):
    """No rates were kept of this GPU."""
    one = capture(kernel(2), call_us=40, syncs=())
    one = replace(one, timing=replace(one.timing, launching=costs))
    assert held(one, Gpu(None, CITED, L2), compiled=compiled).verdict == held_back


# ── a busy GPU ───────────────────────────────────────────────────────────────────────────────────


def test_a_call_that_moves_data_as_fast_as_a_copy_is_memory_bound():
    found = held(capture(kernel(276, 1200 * MB), call_us=280))
    assert (found.verdict, found.of_call, found.reason) == ("memory-bound", True, "")
    memory = evidence(found, "memory")
    assert memory.share == pytest.approx(1, abs=0.001)  # of 4.35 TB/s no more than all is said
    assert (memory.of, memory.basis) == (4.2e12, "modelled")
    assert evidence(found, "busy").share == pytest.approx(276 / 280)


def test_a_product_near_the_rate_of_its_precision_is_compute_bound():
    found = held(capture(kernel(100, 100 * MB), call_us=110), flops=(("bf16", 60_000_000_000),))
    assert (found.verdict, found.precision) == ("compute-bound", "bf16")
    arithmetic = evidence(found, "arithmetic")
    assert (arithmetic.value, arithmetic.of) == pytest.approx((600e12, 750e12))
    assert arithmetic.share == pytest.approx(0.8)


def test_each_precision_is_held_against_its_own_rate():
    flops = (("bf16", 30_000_000_000), ("f32", 2_500_000_000))
    found = held(capture(kernel(100, 100 * MB), call_us=110), flops=flops)
    arithmetic = evidence(found, "arithmetic")
    assert arithmetic.share == pytest.approx(0.4 + 0.5)
    assert arithmetic.of == pytest.approx(32.5e9 / 90e-6)
    assert found.precision == "f32"


def test_of_two_bounds_that_explain_the_most_the_larger_one_is_it():
    flops = (("bf16", 45_000_000_000),)
    assert held(capture(kernel(100, 230 * MB)), flops=flops).verdict == "compute-bound"
    assert held(capture(kernel(100, 280 * MB)), flops=flops).verdict == "memory-bound"


def test_where_nothing_explains_half_of_the_time_it_is_none_of_these():
    found = held(capture(kernel(100, 100 * MB), call_us=110), flops=(("f32", 1_000_000_000),))
    assert (found.verdict, found.reason) == ("none of these", "")


def test_few_blocks_for_the_most_of_the_time_do_not_fill_the_gpu():
    ran = (kernel(60, 10 * MB, blocks=8), kernel(40, 10 * MB))
    found = held(capture(*ran, call_us=110))
    assert found.verdict == "too small to fill the GPU"
    blocks = evidence(found, "blocks")
    assert (blocks.value, blocks.of, blocks.share) == (8, 132, 0.6)


def test_few_blocks_for_the_lesser_part_are_not_it():
    ran = (kernel(40, 10 * MB, blocks=8), kernel(60, 10 * MB))
    assert held(capture(*ran, call_us=110)).verdict == "none of these"


def test_a_persistent_kernel_in_clusters_has_no_fewer_blocks_than_it_can():
    # 128 blocks, eight clusters of 16, are all that fit on 132 multiprocessors.
    assert held(capture(kernel(100, 100 * MB, blocks=128))).verdict == "none of these"


def test_few_blocks_that_move_as_much_as_a_copy_are_memory_bound():
    found = held(capture(kernel(100, 300 * MB, blocks=100)))
    assert found.verdict == "memory-bound"


# ── the L2 cache ─────────────────────────────────────────────────────────────────────────────────


def test_what_the_cache_serves_at_60_percent_of_dram_is_not_memory_bound():
    moved = round(0.6 * 4.2e12 * 10e-6)  # 25 MB in 10 microseconds
    found = held(capture(kernel(10, moved), call_us=12), floor=moved)
    assert found.verdict == "none of these"
    cache = evidence(found, "L2 cache")
    assert (cache.of, cache.share) == (10e12, pytest.approx(0.252))


def test_the_same_rate_from_dram_is_memory_bound():
    moved = round(0.6 * 4.2e12 * 100e-6)
    assert held(capture(kernel(100, moved), call_us=110), floor=moved).verdict == "memory-bound"


def test_what_the_cache_serves_faster_than_memory_is_held_against_the_cache():
    found = held(capture(kernel(5, 40 * MB), call_us=6))  # 8 TB/s, within a call of a gigabyte
    assert found.verdict == "memory-bound"
    assert evidence(found, "L2 cache").share == pytest.approx(0.8)


def test_without_the_rate_of_the_cache_nothing_is_said_of_what_it_serves():
    gpu = replace(GPU, measured=replace(MEASURED, copy_l2=None))
    found = held(capture(kernel(5, 40 * MB), call_us=6), gpu, floor=40 * MB)
    assert found.verdict is None
    assert "L2 cache" in found.reason
    assert evidence(found, "L2 cache").basis == "unavailable"


def test_reading_alone_that_beats_a_copy_a_little_still_comes_from_memory():
    ran = [kernel(10, 45 * MB)] * 20  # 4.5 TB/s: weights of 45 MB each, one after the other
    found = held(capture(*ran, call_us=220))
    assert found.verdict == "memory-bound"
    assert evidence(found, "memory").share == 1.0


def test_what_comes_from_memory_and_what_the_cache_serves_stand_apart():
    ran = (kernel(50, 200 * MB), kernel(50, 10 * MB), kernel(5, 40 * MB))
    found = held(capture(*ran))
    memory, cache = evidence(found, "memory"), evidence(found, "L2 cache")
    assert memory.share == pytest.approx((210 * MB / 4.2e12 * 1e9) / 105_000)
    assert memory.value == pytest.approx(210 * MB / 100e-6)
    assert (cache.value, cache.share) == pytest.approx((8e12, 4_000 / 105_000))
    assert found.verdict == "memory-bound"


# ── an idle GPU ──────────────────────────────────────────────────────────────────────────────────


def test_a_call_whose_launches_take_its_time_is_launch_bound():
    found = held(capture(*[kernel(1, MB)] * 40, call_us=210))
    assert found.verdict == "launch-bound"
    assert evidence(found, "busy").share == pytest.approx(40 / 210)
    launching = evidence(found, "launching")
    assert (launching.value, launching.share) == (200 * US, pytest.approx(200 / 210))


def test_an_idle_gpu_whose_launches_explain_little_waits_for_the_cpu():
    """Busy for 45 %, because of a sync: six launches are not what takes the time."""
    found = held(capture(*[kernel(15, 20 * MB)] * 6, call_us=200))
    assert evidence(found, "busy").share == pytest.approx(0.45)
    assert found.verdict == "waiting for the CPU"
    assert evidence(found, "launching").share == pytest.approx(0.15)


def test_what_an_op_costs_at_least_and_at_most_leaves_room_that_a_wait_decides():
    """Eight small linears, of which the plainest op's cost explains 40 %, a module's all."""
    gpu = Gpu(replace(MEASURED, eager_ns=9_200, module_ns=23_000), CITED, L2)
    ran = [kernel(2)] * 8
    found = held(capture(*ran, call_us=183), gpu)
    assert found.verdict == "launch-bound"
    assert evidence(found, "launching").share == pytest.approx(8 * 9.2 / 183)
    assert evidence(found, "launching at most").share == 1.0
    asked = (Work("Memcpy DtoH (Device -> Pageable)", "copy"), 1 * US)
    assert held(capture(*ran, asked, call_us=183, launches=8), gpu).verdict == "waiting for the CPU"
    assert held(capture(*ran, call_us=500), gpu).verdict == "waiting for the CPU"


def test_waits_that_are_known_decide_and_not_what_is_copied():
    gpu = Gpu(replace(MEASURED, eager_ns=9_200, module_ns=23_000), CITED, L2)
    copied = (Work("Memcpy DtoH (Device -> Pinned)", "copy"), 1 * US)
    ran = [*[kernel(2)] * 8, copied]

    def with_waits(*syncs):
        return held(capture(*ran, call_us=183, launches=8, syncs=syncs), gpu).verdict

    assert with_waits(Sync("pageable copy", idle_ns=9)) == "waiting for the CPU"
    assert with_waits(Sync("item", idle_ns=None)) == "waiting for the CPU"
    assert with_waits(Sync("explicit", idle_ns=0)) == "launch-bound"
    assert with_waits() == "launch-bound"


def test_compiled_code_costs_its_call_once_and_an_op_for_each_further_kernel():
    found = held(capture(*[kernel(1, MB)] * 4, call_us=40), compiled=True)
    assert evidence(found, "launching").value == (20 + 3 * 5) * US
    assert found.verdict == "launch-bound"


def test_where_launches_were_not_measured_an_idle_gpu_is_not_explained():
    found = held(capture(*[kernel(1, MB)] * 40, call_us=210), Gpu(None, CITED, L2))
    assert found.verdict is None
    assert "idle for the most of the call" in found.reason
    assert "kernelcount doctor" in found.reason


def test_a_call_that_copies_for_the_most_of_its_time_is_none_of_these():
    copy = (Work("Memcpy HtoD", "copy", "to"), 150 * US)
    found = held(capture(kernel(40, MB), copy, call_us=200, launches=1))
    assert found.verdict == "none of these"
    assert evidence(found, "copies").share == 0.75


# ── what is not known ────────────────────────────────────────────────────────────────────────────


def test_without_a_time_of_the_call_its_kernels_are_judged_alone():
    found = held(capture(kernel(276, 1100 * MB)))
    assert (found.verdict, found.of_call) == ("memory-bound", False)
    busy = evidence(found, "busy")
    assert (busy.share, busy.basis) == (None, "unavailable")
    assert busy.reason == "the call was not timed"


def test_rates_that_nobody_measured_are_cited_and_say_so():
    found = held(capture(kernel(276, 1200 * MB)), Gpu(None, CITED, L2), flops=(("bf16", 1000),))
    assert found.verdict == "memory-bound"
    assert {e.basis for e in found.evidence} == {"cited", "unavailable"}
    assert evidence(found, "memory").share == pytest.approx(1200 / 276 / 4.8, rel=0.01)


def test_without_paper_it_cannot_be_told():
    found = verdict(capture(kernel(100), call_us=110), None, GPU)
    assert found.verdict is None
    assert "not counted on paper" in found.reason


def test_bytes_of_some_kernels_are_a_bound_for_all():
    ran = (kernel(80, 330 * MB), kernel(20, known=False))
    measured = capture(*ran)
    beside = replace(on_paper(measured), same_calls=False)
    assert verdict(measured, beside, GPU).verdict == "memory-bound"


def test_where_too_few_bytes_are_known_nothing_else_is_concluded():
    ran = (kernel(20, 70 * MB), kernel(80, known=False))
    measured = capture(*ran)
    found = verdict(measured, replace(on_paper(measured), same_calls=False), GPU)
    assert found.verdict is None
    assert found.reason == "of 1 of 2 kernels the bytes are not known"


def test_the_bytes_of_all_do_where_they_are_not_known_one_by_one():
    ran = (kernel(50, known=False), kernel(50, known=False))
    measured = capture(*ran)
    beside = on_paper(measured)
    whole = replace(beside.outcome.paper, read=300 * MB)
    known = replace(beside, outcome=replace(beside.outcome, paper=whole), ledger=None)
    assert verdict(measured, known, GPU).verdict == "memory-bound"


def test_what_ones_own_kernels_move_at_most_is_no_bound():
    own = (Work("mine::op", "kernel", "mine::op", read=600 * MB, written=0, at_most=True),)
    found = held(capture(kernel(100, 600 * MB, at_most=True)), own=own)
    assert found.verdict is None
    assert "what mine::op computes is not known" in found.reason


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (capture(), "no kernel was launched"),
        (capture(kernel(1), complete=False), "not every launch has its device record"),
        (capture(kernel(1), basis="paper"), "nothing was measured on a GPU"),
    ],
)
def test_a_count_that_is_not_whole_has_no_verdict_but_a_reason(measured, reason):
    assert (held(measured).verdict, held(measured).reason) == (None, reason)


def test_every_piece_of_evidence_has_a_basis_and_what_is_unavailable_a_reason():
    for found in (held(capture(kernel(9, MB), call_us=10)), verdict(capture(kernel(9)), None, GPU)):
        assert found.evidence
        assert all((e.basis == "unavailable") == bool(e.reason) for e in found.evidence)
