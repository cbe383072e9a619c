"""What torch.compile would put on a GPU, as far as it needs no function to be compiled."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from kernelcount.paper import adapter, compiled, rules


@pytest.mark.parametrize(
    ("name", "dtype", "sides", "may"),
    [
        ("mm", "float32", (64, 512, 10), True),
        ("mm", "float32", (64, 512, 12), False),
        ("addmm", "bfloat16", (64, 516, 16), True),
        ("bmm", "bfloat16", (64, 512, 16), False),
        ("mm", "float64", (63, 511, 13), False),
        ("linear", "float32", (64, 512, 10), False),
    ],
)
def test_a_product_that_inductor_may_pad_is_never_exact(name, dtype, sides, may):
    m, k, n = sides
    one, other = (
        torch.empty(s, dtype=getattr(torch, dtype), device="meta") for s in ((m, k), (k, n))
    )
    args = (torch.empty(n, device="meta"), one, other) if name == "addmm" else (one, other)
    assert compiled.may_be_padded(rules.Op(name, "aten", args, {}, args, [])) == may


# Modules of passes that ask a tensor for its device, and why paper's answer needs nothing there.
_PASSES = {
    "joint_graph": "compares devices with one another",
    "low_contention_collectives": "runs after the lowering to CUDA",
    "memory_estimator": "adds up, and replaces nothing",
    "misc_patterns": "is for a later card than any of ours (sm100)",
    "mkldnn_fusion": "is for the CPU, and runs after the lowering to CUDA",
    "pad_mm": "times both ways on a GPU: `compiled.may_be_padded`",
    "post_grad": "runs after the lowering to CUDA",
    "pre_grad": "for fusions that are off by default",
    "quantization": "is for quantised weights on the CPU and XPU",
}


def test_whatever_replaces_ops_by_their_device_is_told_that_it_is_a_gpu():
    """Else a pass leaves alone what it replaces on a GPU."""
    passes = Path(find_spec("torch._inductor.fx_passes").submodule_search_locations[0])
    asks = re.compile(r"\.device\.type|\.is_cuda|check_device")
    asking = {file.stem for file in passes.glob("*.py") if asks.search(file.read_text())}
    told = {name for name in asking if f"{passes.name}.{name}" in "|".join(adapter._DECOMPOSING)}
    assert told == {"decompose_mem_bound_mm", "fuse_attention"}
    assert asking - told <= set(_PASSES)


@pytest.mark.parametrize(("batch", "expected"), [(1, "mm"), (2, "bmm")])
def test_a_product_of_one_pair_is_that_of_two_matrices(count, target, batch, expected):
    source = f"""
import torch

def f(a, b):
    return torch.bmm(a, b)

def make_inputs(n, device):
    return torch.randn({batch}, 64, 64, device=device), torch.randn({batch}, 64, 64, device=device)
"""
    counted = count(f"{target(source)}:f", "compile", device="paper")["compile"]
    assert [work.name for work in counted.records.works] == [f"extern_kernels.{expected}"]
