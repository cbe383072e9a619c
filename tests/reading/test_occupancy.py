"""The occupancy that Kineto has as 0: worked out from the launch, or not known."""

import gzip
import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from kernelcount.model import Records, Work
from kernelcount.reading import occupancy, read_file

RECORDED = Path(__file__).parent.parent / "data" / "h200"
H200 = {
    "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip
PRODUCT = Work(
    "sm80_xmma_gemm", "kernel", "mm", (16, 32, 1), (256, 1, 1), 254, 67584, occupancy=0.0
)


def found(work=PRODUCT, *devices):
    records = Records((work,))
    header = {"deviceProperties": list(devices)} if devices else {}
    return occupancy.worked_out(records, header).works[0].occupancy


def test_one_block_of_eight_warps_of_sixty_four_is_an_eighth():
    assert found(PRODUCT, H200) == 0.125
    assert found(PRODUCT, H200, H200) == 0.125


def test_a_grid_smaller_than_the_gpu_leaves_multiprocessors_empty():
    half = replace(PRODUCT, grid=(66, 1, 1))
    assert found(half, H200) == pytest.approx(0.0625)
    single = replace(PRODUCT, grid=(1, 1, 1), block=(1, 1, 1), registers=16, shared_memory=0)
    assert found(single, H200) == pytest.approx(1 / 64 / 132)


@pytest.mark.parametrize(
    "devices",
    [
        (),
        ({},),
        (7,),
        ({**H200, "numSms": None},),
        ({**H200, "warpSize": 0},),
        ({**H200, "computeMajor": 99},),
        (H200, {**H200, "numSms": 80}),
    ],
)
def test_a_zero_is_unknown_where_the_gpu_is(devices):
    assert found(PRODUCT, *devices) is None


@pytest.mark.parametrize(
    "more",
    [
        {"grid": None}, {"registers": None}, {"block": (0, 1, 1)}, {"shared_memory": 300_000},
        {"block": (1024, 1, 1)},
    ],
)  # fmt: skip
def test_a_zero_is_unknown_where_the_launch_is_or_cannot_be(more):
    assert found(replace(PRODUCT, **more), H200) is None


def test_what_kineto_knows_is_left_alone():
    assert found(replace(PRODUCT, occupancy=0.31), H200) == 0.31
    assert found(replace(PRODUCT, occupancy=None), H200) is None


def test_no_kernel_of_a_recorded_trace_has_an_occupancy_of_nothing():
    capture, *_ = read_file(RECORDED / "h200-streams.json.gz")
    works = [w for w in capture.records.works if w.activity == "kernel"]
    assert all(w.occupancy for w in works)
    (one,) = {w.occupancy for w in works if w.registers == 254}
    assert one == 0.125


def test_it_agrees_with_kineto_wherever_kineto_has_a_figure():
    (limits,) = occupancy._limits([H200])
    apart, launches = -inf, 0
    for name in ("chain.eager", "softmax.eager", "ln_bias_gelu.compile", "gpt2.eager", "mlp.eager"):
        trace = json.loads(gzip.decompress((RECORDED / f"h200-{name}.json.gz").read_bytes()))
        for event in trace["traceEvents"]:
            args = event.get("args", {})
            percent = args.get("est. achieved occupancy %")
            if event.get("cat") == "kernel" and percent:
                how = args["grid"], args["block"], args["registers per thread"]
                work = replace(
                    PRODUCT, grid=how[0], block=how[1], registers=how[2],
                    shared_memory=args["shared memory"],
                )  # fmt: skip
                apart = max(apart, abs(100 * (occupancy.of_launch(work, limits) or inf) - percent))
                launches += 1
    assert launches > 50
    assert apart <= 1
