"""What was launched on paper, in order."""

import pytest

from kernelcount.paper.log import plain_name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("aten::mm", "mm"),
        ("aten.mm.default", "mm"),
        ("extern_kernels.mm", "mm"),
        ("mine::swish", "mine::swish"),
        ("mine.swish.default", "mine::swish"),
        ("torch.save", "torch.save"),
        ("Tensor.__repr__", "Tensor.__repr__"),
    ],
)
def test_an_op_has_one_name_however_it_is_called(written, name):
    assert plain_name(written) == name
