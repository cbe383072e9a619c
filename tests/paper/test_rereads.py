"""Rows that a kernel goes over again are told where the L2 cache does not keep them."""

import pytest
import torch

from kernelcount.paper import cards, rules
from kernelcount.paper.rereads import again

ARRAY = 64 << 20  # elements


def op(name, *args, dtype=torch.float32, width=4096):
    given = torch.empty(ARRAY // width, width, dtype=dtype, device="meta")
    return rules.Op(name, "aten", (given, *args), {}, [given], [given])


# How often an H200 read what these were given, by its counters (docs/ncu.md).
MEASURED = [
    ("native_layer_norm", torch.float32, 1024, 1.000),
    ("native_layer_norm", torch.float32, 4096, 1.372),
    ("native_layer_norm", torch.float32, 8192, 1.968),
    ("native_layer_norm", torch.float32, 65536, 1.998),
    ("native_layer_norm", torch.bfloat16, 2048, 1.000),
    ("native_layer_norm", torch.bfloat16, 8192, 1.799),
    ("_fused_rms_norm", torch.float32, 1024, 1.000),
    ("_fused_rms_norm", torch.float32, 2048, 1.096),
    ("_fused_rms_norm", torch.float32, 8192, 1.991),
    ("_softmax", torch.float32, 1024, 1.000),
    ("_softmax", torch.float32, 8192, 1.000),
    ("_softmax", torch.float32, 32768, 1.744),
    ("_log_softmax", torch.float32, 65536, 2.960),
    ("_log_softmax", torch.float32, 131072, 3.000),
    ("_softmax_backward_data", torch.float32, 4096, 1.000),
    ("_softmax_backward_data", torch.float32, 32768, 1.985),  # beyond the other reads of the op
]


@pytest.mark.parametrize(("name", "dtype", "width", "measured"), MEASURED)
def test_it_is_told_where_counters_say_so_and_is_never_less(name, dtype, width, measured):
    args = [None, -1] if "backward" in name else [[width] if "norm" in name else -1]
    called = op(name, *args, dtype=dtype, width=width)
    more = again(called, cards.find("H200"))
    array = ARRAY * called.read[0].element_size()
    assert (more > 0) == (measured > 1.02)
    assert array + more >= 0.99 * measured * array


@pytest.mark.parametrize(
    "called",
    [op("add"), op("native_layer_norm", [4097], width=4097), op("_softmax", 0, width=65536)],
    ids=["no rows", "two kernels", "columns"],
)
def test_of_other_kernels_nothing_is_said(called):
    assert again(called, cards.find("H200")) == 0


def test_a_call_says_it_in_a_note_and_a_measured_one_that_has_its_bytes_does_too(count, target):
    source = "import torch\ndef f(x):\n    return torch.nn.functional.layer_norm(x, x.shape[-1:])"
    spec = f"{target(source)}:f"
    (wide,) = count(spec, device="paper", inputs=("f32[16384,8192]",)).values()
    (note,) = [n for n in wide.notes if n.code == "read-again"]
    assert "up to 537 MB" in note.detail
    assert "native_layer_norm" in note.detail
    (narrow,) = count(spec, device="paper", inputs=("f32[131072,1024]",)).values()
    assert "read-again" not in [n.code for n in narrow.notes]
