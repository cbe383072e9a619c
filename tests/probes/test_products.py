"""Which products a call makes in float32."""

import pytest
import torch

from kernelcount.probes.products import in_float32

X = torch.ones(4, 4)
IMAGE = torch.ones(1, 2, 5, 5)


@pytest.mark.parametrize(
    ("call", "families"),
    [
        (lambda: X @ X, {"matmul"}),
        (lambda: torch.nn.functional.linear(X, X, X[0]), {"matmul"}),
        (lambda: torch.einsum("ij,jk->ik", X, X), {"matmul"}),
        (lambda: torch.nn.functional.conv2d(IMAGE, IMAGE), {"convolution"}),
        (lambda: X + X, set()),
        (lambda: X @ X[0], set()),
        (lambda: X.double() @ X.double(), set()),
        (lambda: X.bfloat16() @ X.bfloat16(), set()),
    ],
)
def test_a_product_is_told_by_its_dtype_and_a_vector_makes_none(call, families):
    assert in_float32(call) == families


def test_what_autocast_has_turned_into_bfloat16_is_in_float32_no_more():
    with torch.autocast("cpu", torch.bfloat16):
        assert in_float32(lambda: X @ X) == set()


def test_what_the_call_raises_passes_through():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        in_float32(lambda: X @ torch.ones(3, 3))
