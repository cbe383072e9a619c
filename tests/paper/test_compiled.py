"""What torch.compile would put on a GPU, as far as it needs no function to be compiled."""

import pytest
import torch

from kernelcount.paper import compiled, rules


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
