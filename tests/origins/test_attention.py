"""The backend of attention, by the ops that run."""

import pytest

from kernelcount.origins.attention import backend


@pytest.mark.parametrize(
    ("op", "outer", "expected"),
    [
        ("_scaled_dot_product_flash_attention", None, "flash"),
        ("_flash_attention_forward", "scaled_dot_product_attention", "flash"),
        ("_scaled_dot_product_efficient_attention_backward", None, "efficient"),
        ("_cudnn_attention_forward", "scaled_dot_product_attention", "cudnn"),
        ("bmm", "scaled_dot_product_attention", "math"),
        ("_softmax", "scaled_dot_product_attention", "math"),
        ("where", "scaled_dot_product_attention", None),
        ("bmm", "matmul", None),
        ("add", None, None),
        (None, None, None),
    ],
)
def test_the_backend_is_told_by_the_ops(op, outer, expected):
    assert backend(op, outer) == expected
