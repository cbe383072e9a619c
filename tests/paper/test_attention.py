"""The backend of attention, as a card and the tensors decide it."""

import pytest

from kernelcount.paper.attention import choose

HOPPER, AMPERE, TURING = (9, 0), (8, 0), (7, 5)


def tensors(dtype, heads=8, keys=64, head=64):
    import torch

    kind = getattr(torch, dtype)
    query = torch.empty(2, 8, 64, head, dtype=kind, device="meta")
    key = torch.empty(2, heads, keys, head, dtype=kind, device="meta")
    return query, key, key


@pytest.mark.parametrize(
    ("dtype", "capability", "backend"),
    [
        ("bfloat16", HOPPER, "cudnn"),
        ("bfloat16", AMPERE, "flash"),
        ("float16", TURING, "efficient"),
        ("float32", HOPPER, "efficient"),
    ],
)
def test_dtype_and_card_decide(dtype, capability, backend):
    assert choose(*tensors(dtype), None, False, False, capability) == backend


def test_a_mask_keeps_flash_away():
    query, key, value = tensors("bfloat16")
    mask = query.new_empty(2, 8, 64, 64)
    assert choose(query, key, value, mask, False, False, AMPERE) == "efficient"


def test_a_mask_that_is_expanded_in_its_last_dimension_leaves_plain_math():
    query, key, value = tensors("float32")
    mask = query.new_empty(2, 1, 1, 1).expand(2, 8, 64, 64)
    assert choose(query, key, value, mask, False, False, HOPPER) == "math"


def test_an_odd_head_leaves_plain_math():
    assert choose(*tensors("float32", head=63), None, False, False, HOPPER) == "math"


def test_grouped_heads_leave_plain_math_in_float32():
    assert choose(*tensors("float32", heads=2), None, False, True, HOPPER) == "math"
