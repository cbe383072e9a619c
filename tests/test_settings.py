"""Settings that a call leaves changed are its own, and put back for all others."""

import os

import pytest
import torch
from torch._dynamo import config as dynamo
from torch._inductor import config as inductor

from kernelcount import settings
from kernelcount.probes import configs
from kernelcount.settings import OwnSettings, Settings

CUDA, MATMUL = torch.backends.cuda, torch.backends.cuda.matmul


def _of(place, name, value):
    """A change of an attribute: how it is read, and how it is made."""
    return lambda: getattr(place, name, None), lambda: setattr(place, name, value)


CHANGES = {
    "default dtype": (torch.get_default_dtype, lambda: torch.set_default_dtype(torch.float64)),
    "default device": (torch.get_default_device, lambda: torch.set_default_device("meta")),
    "grad mode": (torch.is_grad_enabled, lambda: torch.set_grad_enabled(False)),
    "anomaly mode": (torch.is_anomaly_enabled, lambda: torch.autograd.set_detect_anomaly(True)),
    "NaN in anomaly mode": (
        torch.is_anomaly_check_nan_enabled,
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    ),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        lambda: torch.use_deterministic_algorithms(True),
    ),
    "warnings of what is not deterministic": (
        torch.get_deterministic_debug_mode,
        lambda: torch.set_deterministic_debug_mode("warn"),
    ),
    "filling of new memory": _of(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "warnings each time": (torch.is_warn_always_enabled, lambda: torch.set_warn_always(True)),
    "precision of products": (
        torch.get_float32_matmul_precision,
        lambda: torch.set_float32_matmul_precision("medium"),
    ),
    "TF32 in products": _of(MATMUL, "allow_tf32", True),
    "TF32 in convolutions": _of(torch.backends.cudnn, "allow_tf32", False),
    "precision of products, in newer words": _of(MATMUL, "fp32_precision", "tf32"),
    "sums of f16 in f16": _of(MATMUL, "allow_fp16_reduced_precision_reduction", False),
    "sums of bf16 in bf16": _of(MATMUL, "allow_bf16_reduced_precision_reduction", False),
    "accumulation in f16": _of(MATMUL, "allow_fp16_accumulation", True),
    "cuDNN": _of(torch.backends.cudnn, "enabled", False),
    "cuDNN's choice": _of(torch.backends.cudnn, "benchmark", True),
    "cuDNN's deterministic": _of(torch.backends.cudnn, "deterministic", True),
    "oneDNN": _of(torch.backends.mkldnn, "enabled", False),
    "oneDNN's deterministic": _of(torch.backends.mkldnn, "deterministic", True),
    "flash attention": (CUDA.flash_sdp_enabled, lambda: CUDA.enable_flash_sdp(False)),
    "memory-efficient attention": (
        CUDA.mem_efficient_sdp_enabled,
        lambda: CUDA.enable_mem_efficient_sdp(False),
    ),
    "attention by math": (CUDA.math_sdp_enabled, lambda: CUDA.enable_math_sdp(False)),
    "cuDNN's attention": (CUDA.cudnn_sdp_enabled, lambda: CUDA.enable_cudnn_sdp(False)),
    "sums of attention by math": (
        CUDA.fp16_bf16_reduction_math_sdp_allowed,
        lambda: CUDA.allow_fp16_bf16_reduction_math_sdp(True),
    ),
    "fast path of attention": (
        torch.backends.mha.get_fastpath_enabled,
        lambda: torch.backends.mha.set_fastpath_enabled(False),
    ),
    "overwriting of parameters": (
        torch.__future__.get_overwrite_module_params_on_conversion,
        lambda: torch.__future__.set_overwrite_module_params_on_conversion(True),
    ),
    "swapping of parameters": (
        torch.__future__.get_swap_module_params_on_conversion,
        lambda: torch.__future__.set_swap_module_params_on_conversion(True),
    ),
    "autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda: torch.set_autocast_enabled("cpu", True),  # entering would count its nesting up
    ),
    "autocast's dtype": (
        lambda: torch.get_autocast_dtype("cuda"),
        lambda: torch.set_autocast_dtype("cuda", torch.bfloat16),
    ),
    "autocast's cache": (
        torch.is_autocast_cache_enabled,
        lambda: torch.set_autocast_cache_enabled(False),
    ),
    "threads": (torch.get_num_threads, lambda: torch.set_num_threads(3)),
    "stance": (configs.stance()[0][0], lambda: torch.compiler.set_stance("force_eager")),
    "recompile limit": _of(dynamo, "recompile_limit", 3),
    "limit of all recompilations": _of(dynamo, "accumulated_recompile_limit", 5),
    "dynamic shapes": _of(dynamo, "assume_static_by_default", False),
    "CUDA graphs": _of(inductor.triton, "cudagraphs", True),
    "autotuning": _of(inductor, "max_autotune", True),
    "folder": (os.getcwd, lambda: os.chdir("/")),
}
if hasattr(torch.compiler, "get_default_backend"):
    CHANGES["default backend"] = (
        torch.compiler.get_default_backend,
        lambda: torch.compiler.set_default_backend("eager"),
    )


@pytest.fixture(params=CHANGES)
def change(request):
    """How a setting is read, and a change of it."""
    before = Settings(*configs.switches())
    if request.param.endswith("newer words") and not hasattr(MATMUL, "fp32_precision"):
        pytest.skip("this torch has no newer words for it")
    yield CHANGES[request.param]
    before.restore()


def test_what_a_call_leaves_changed_is_put_back_for_others_and_kept_for_its_next_call(change):
    get, make = change
    at_first = get()
    one, other = OwnSettings(*configs.switches()), OwnSettings(*configs.switches())
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

    with pytest.raises(ZeroDivisionError), OwnSettings(*configs.switches()).held():
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


# ── the whole kind ───────────────────────────────────────────────────────────────────────────────

PLACES = (
    torch, torch.autograd, torch.autograd.graph, torch.cuda, torch.backends, torch.backends.cuda,
    torch.backends.mha, torch.compiler, torch.nn.attention, torch.__future__,
)  # fmt: skip
SETTING = ("set_", "use_", "enable_", "allow_", "preferred_", "activate_")
ON_A_GPU = {
    "set_device", "set_stream", "set_sync_debug_mode", "preferred_blas_library",
    "preferred_linalg_library", "preferred_rocm_fa_library", "activate_flash_attention_impl",
}  # fmt: skip
IN_OTHER_WORDS = {
    "set_anomaly_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype", "set_default_tensor_type",
}  # fmt: skip
GENERATORS = {"set_rng_state", "set_rng_state_all"}
NOT_KEPT = {
    "allow_in_graph": "marks a function of the user's",
    "allow_mutation_on_saved_tensors": "holds within a with statement",
    "enable_grad": "holds within a with statement",
    "set_autocast_ipu_dtype": "of a device that kernelcount does not know",
    "set_autocast_ipu_enabled": "of a device that kernelcount does not know",
    "set_autocast_xla_dtype": "of a device that kernelcount does not know",
    "set_autocast_xla_enabled": "of a device that kernelcount does not know",
    "set_enable_guard_collectives": "cannot be asked for; of processes that compile together",
    "set_flush_denormal": "cannot be asked for",
    "set_multithreading_enabled": "cannot be asked for",
    "set_num_interop_threads": "can be set once",
    "set_override_stale_capture_stream": "cannot be asked for",
    "set_per_process_memory_fraction": "of the allocator, which no call of a function sets",
    "set_printoptions": "cannot be asked for; changes no kernel",
    "set_vital": "a word for torch's own statistics",
    "set_warn_on_accumulate_grad_stream_mismatch": "cannot be asked for; changes no kernel",
    "use_mem_pool": "holds within a with statement",
}


def _setters():
    return {
        name
        for place in PLACES
        for name in dir(place)
        if name.startswith(SETTING) and callable(getattr(place, name))
    }


def test_every_setting_of_torchs_is_put_back_or_there_is_a_reason(monkeypatch):
    """A torch that has a new one is told apart here."""
    called = set()

    def noted(name, real):
        def call(*args, **kwargs):
            called.add(name)
            return real(*args, **kwargs)

        return call

    before = Settings(*configs.switches())
    for place in PLACES:
        for name in _setters() & set(dir(place)):
            if not isinstance(getattr(place, name), type):
                monkeypatch.setattr(place, name, noted(name, getattr(place, name)))
    for _, make in CHANGES.values():
        make()
    called |= {"set_grad_enabled", "set_detect_anomaly"}  # classes, as which they stay
    monkeypatch.undo()
    before.restore()
    known = called | ON_A_GPU | IN_OTHER_WORDS | GENERATORS | set(NOT_KEPT)
    assert sorted(_setters() - known) == []


def test_a_gpus_own_settings_are_asked_where_there_is_one(monkeypatch):
    for name in ("is_available", "is_initialized"):
        monkeypatch.setattr(torch.cuda, name, lambda: True)
    puts = {getattr(put, "__name__", "") for _, put in settings.switches()}
    found = {"_set_flash_attention"} if "_set_flash_attention" in puts else set()
    known = {name for name in ON_A_GPU if hasattr(CUDA, name) or hasattr(torch.cuda, name)}
    assert known | found <= puts
