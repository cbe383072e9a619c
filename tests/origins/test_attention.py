"""The backend of attention, by the ops that run."""

import pytest

from kernelcount.origins.attention import backend


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (("_scaled_dot_product_flash_attention",), "flash"),
        (("_flash_attention_forward", "scaled_dot_product_attention"), "flash"),
        (("_scaled_dot_product_efficient_attention_backward",), "efficient"),
        (("_cudnn_attention_forward", "scaled_dot_product_attention"), "cudnn"),
        (("bmm", "scaled_dot_product_attention"), "math"),
        (("_softmax", "_safe_softmax", "scaled_dot_product_attention"), "math"),
        (("fill_", "_scaled_dot_product_attention_math", "scaled_dot_product_attention"), "math"),
        (("where", "scaled_dot_product_attention"), None),
        (("bmm", "matmul"), None),
        (("add",), None),
        ((), None),
    ],
)
def test_the_backend_is_told_by_the_ops(ops, expected):
    assert backend(*ops) == expected
