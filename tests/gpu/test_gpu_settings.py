"""Settings that there are on a GPU alone are put back."""

import pytest
import torch

from kernelcount.settings import Settings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch warns that sync debug mode is a prototype
]

CUDA = torch.backends.cuda


def test_a_gpus_own_settings_are_put_back():
    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    torch.zeros(1, device="cuda")
    changes = {
        "stream": (torch.cuda.current_stream, lambda: torch.cuda.set_stream(torch.cuda.Stream())),
        "sync debug mode": (
            torch.cuda.get_sync_debug_mode,
            lambda: torch.cuda.set_sync_debug_mode("warn"),
        ),
        "library of products": (
            CUDA.preferred_blas_library,
            lambda: CUDA.preferred_blas_library("cublaslt"),
        ),
        "library of linear algebra": (
            CUDA.preferred_linalg_library,
            lambda: CUDA.preferred_linalg_library("cusolver"),
        ),
        "limit of cuDNN's choice": (
            lambda: torch.backends.cudnn.benchmark_limit,
            lambda: setattr(torch.backends.cudnn, "benchmark_limit", 3),
        ),
    }
    before = {name: get() for name, (get, _) in changes.items()}
    settings = Settings()
    for _, make in changes.values():
        make()
    now = {name: get() for name, (get, _) in changes.items()}
    settings.restore()
    assert {name for name in changes if now[name] == before[name]} == set()
    assert {name: get() for name, (get, _) in changes.items()} == before
