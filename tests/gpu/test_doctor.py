"""Looking at a machine with a GPU, and recording on it."""

import pytest

from kernelcount.examination import checks, recorder
from kernelcount.examination.cases import Case, all_cases, arrays

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
