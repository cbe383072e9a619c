"""Settings that a call leaves changed are its own, and put back for all others."""

import os

import pytest
import torch

from kernelcount.probes.compiler import stance
from kernelcount.settings import OwnSettings, Settings

MATMUL = torch.backends.cuda.matmul
CHANGES = {
    "default dtype": (torch.get_default_dtype, lambda: torch.set_default_dtype(torch.float64)),
    "default device": (torch.get_default_device, lambda: torch.set_default_device("meta")),
    "grad mode": (torch.is_grad_enabled, lambda: torch.set_grad_enabled(False)),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        lambda: torch.use_deterministic_algorithms(True),
    ),
    "warnings of what is not deterministic": (
        torch.get_deterministic_debug_mode,
        lambda: torch.set_deterministic_debug_mode("warn"),
    ),
    "precision of products": (
        torch.get_float32_matmul_precision,
        lambda: torch.set_float32_matmul_precision("medium"),
    ),
    "TF32 in products": (
        lambda: MATMUL.allow_tf32,
        lambda: setattr(MATMUL, "allow_tf32", True),
    ),
    "TF32 in convolutions": (
        lambda: torch.backends.cudnn.allow_tf32,
        lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
    ),
    "precision of products, in newer words": (
        lambda: getattr(MATMUL, "fp32_precision", None),
        lambda: setattr(MATMUL, "fp32_precision", "tf32"),
    ),
    "cuDNN's choice": (
        lambda: torch.backends.cudnn.benchmark,
        lambda: setattr(torch.backends.cudnn, "benchmark", True),
    ),
    "autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda: torch.set_autocast_enabled("cpu", True),  # entering would count its nesting up
    ),
    "autocast's dtype": (
        lambda: torch.get_autocast_dtype("cuda"),
        lambda: torch.set_autocast_dtype("cuda", torch.bfloat16),
    ),
    "threads": (torch.get_num_threads, lambda: torch.set_num_threads(3)),
    "stance": (stance()[0][0], lambda: torch.compiler.set_stance("force_eager")),
    "folder": (os.getcwd, lambda: os.chdir("/")),
}


@pytest.fixture(params=CHANGES)
def change(request):
    """How a setting is read, and a change of it."""
    before = Settings(*stance())
    if request.param.endswith("newer words") and not hasattr(MATMUL, "fp32_precision"):
        pytest.skip("this torch has no newer words for it")
    yield CHANGES[request.param]
    before.restore()


def test_what_a_call_leaves_changed_is_put_back_for_others_and_kept_for_its_next_call(change):
    get, make = change
    at_first = get()
    one, other = OwnSettings(*stance()), OwnSettings(*stance())
    with one.held():
        make()
        changed = get()
    assert changed != at_first
    assert get() == at_first
    with other.held():
        assert get() == at_first
    with one.held():
        assert get() == changed
    with other.held():
        assert get() == at_first


def test_it_is_put_back_after_an_error_too(change):
    get, make = change
    at_first = get()

    def fails():
        make()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), OwnSettings(*stance()).held():
        fails()
    assert get() == at_first


def _newer_words():
    torch.backends.fp32_precision = "tf32"
    MATMUL.fp32_precision = "ieee"
    torch.backends.cudnn.conv.fp32_precision = "tf32"


def _mixed_words():
    torch.set_float32_matmul_precision("medium")
    torch.backends.cudnn.allow_tf32 = False
    MATMUL.fp32_precision = "none"


@pytest.mark.parametrize("change", [_newer_words, _mixed_words])
def test_words_that_exclude_each_other_are_all_put_back(change):
    """torch refuses to tell a precision that was set in newer words by the older."""
    if not hasattr(MATMUL, "fp32_precision"):
        pytest.skip("this torch has no newer words for it")
    before = Settings()
    own = OwnSettings()
    for _ in range(2):
        with own.held():
            change()
        assert before.restore() == []
