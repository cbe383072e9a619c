"""Looking at a machine with a GPU, measuring what it reaches, and recording on it."""

import time

import pytest

from kernelcount import app
from kernelcount.conclusions import rates
from kernelcount.examination import checks, microbenchmarks, recorder
from kernelcount.examination.cases import Case, all_cases, arrays
from kernelcount.paper import cards

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _a_gpu():
    if checks.found_gpu() is None:
        pytest.skip("needs a GPU")


def test_a_gpu_and_its_profiler_are_found(tmp_path):
    found = {check.name: check for check in checks.all_checks(tmp_path)}
    assert found["GPU"].ok
    assert found["profiler"].ok, found["profiler"].detail


def test_what_is_known_of_a_call_is_recorded(tmp_path):
    import torch

    device, name = checks.found_gpu()
    pair = arrays(torch.float32, (64, 64), (64, 64))
    wanted = [
        Case("add", torch.add, pair),
        Case("isinf", torch.isinf, arrays(torch.float32, (64, 64))),
        next(c for c in all_cases() if c.op == "native_layer_norm"),
    ]
    made = recorder.record(device, name, tmp_path, lambda _: None, wanted)
    assert [(e.op, e.kernels, e.copies) for e in made.entries] == [
        ("add", 1, 0),
        ("isinf", 2, 0),
        ("native_layer_norm", 2, 0),
    ]


def test_a_backward_on_a_thread_of_its_own_belongs_to_its_call(tmp_path):
    device, name = checks.found_gpu()
    wanted = [next(c for c in all_cases() if c.op == "convolution_backward")]
    (entry,) = recorder.record(device, name, tmp_path, lambda _: None, wanted).entries
    assert entry.kernels >= 2


# ── rates ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def reached():
    """All rates, measured once."""
    gpu = checks.found_gpu()
    if gpu is None or gpu[1] != "cuda":
        pytest.skip("needs a GPU whose rates are measured")
    return microbenchmarks.measure(*gpu, lambda _: None)


def test_every_rate_is_measured(reached):
    assert dict(reached.missing) == {}
    assert all(value is not None for value in rates.figures(reached).values())


def test_the_cache_serves_a_copy_faster_than_memory_does(reached):
    assert reached.copy < reached.copy_l2


def test_a_copy_comes_near_the_bandwidth_of_the_card_and_not_above_it(reached):
    card = cards.of_device(reached.device)
    if card is None:
        pytest.skip("the data sheet of this card is not known")
    assert card.bandwidth / 2 < reached.copy < card.bandwidth


def test_matrix_products_are_faster_in_formats_of_less_precision(reached):
    products = dict(reached.matmul)
    assert products["f32"] < products["tf32"] < products["bf16"]
    assert products["bf16"] / 2 < products["f16"] < products["bf16"] * 2
    assert products["f64"] < products["tf32"]


def test_the_gpu_needs_less_for_a_kernel_than_the_cpu_for_an_op(reached):
    assert reached.launch_ns < reached.eager_ns
    assert reached.eager_ns < reached.compiled_ns


def test_it_takes_less_than_ten_seconds_without_compiling(reached):
    few = {n: m for n, m in microbenchmarks.MEASUREMENTS.items() if n != "compiled_ns"}
    start = time.monotonic()
    microbenchmarks.measure(*checks.found_gpu(), lambda _: None, few)
    assert time.monotonic() - start < 10


def test_measured_again_the_rates_are_nearly_the_same(reached):
    products = {n: m for n, m in microbenchmarks.MEASUREMENTS.items() if n.startswith("matmul")}
    few = {"copy": microbenchmarks.MEASUREMENTS["copy"], **products}
    again = microbenchmarks.measure(*checks.found_gpu(), lambda _: None, few)
    before, after = rates.figures(reached), rates.figures(again)
    assert {n: after[n] for n in few} == pytest.approx({n: before[n] for n in few}, rel=0.1)


def test_the_precision_of_products_is_as_it_was(reached):
    import torch

    assert torch.backends.cuda.matmul.fp32_precision != "tf32"


def test_what_is_measured_is_kept_for_others(reached, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELCOUNT_CACHE", str(tmp_path))
    diagnosis = app.doctor(None, lambda _: None)
    assert diagnosis.rates is not None, diagnosis.unrated
    assert rates.kept(reached.device, reached.torch) == diagnosis.rates
