"""Fewer bits: what is cast and what is not, and settings that are put back."""

from contextlib import suppress
from functools import partial

import pytest
import torch

from kernelcount.remedies import precision
from kernelcount.remedies.facts import Facts


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)

    def twice(self, x):
        return self(self(x))


@pytest.fixture
def narrow(facts):
    """What is called in place of a function, and on what."""

    def narrowed(function, *args, **kwargs):
        with precision.in_bf16(facts(function, *args, **kwargs)) as attempt:
            return attempt.way.call, attempt.subject

    return narrowed


# ── bfloat16 ─────────────────────────────────────────────────────────────────────────────────────


def test_floats_are_cast_wherever_they_stand_and_nothing_else_is(narrow):
    wide, double, half = torch.ones(2), torch.ones(2).double(), torch.ones(2).half()
    index = torch.ones(2, dtype=torch.int64)
    given = narrow(print, [wide, (double, half)], index, key={"x": wide}, n=3)[1].arguments
    (first, (second, third)), fourth = given.args
    assert [t.dtype for t in (first, second, third, fourth)] == [
        torch.bfloat16, torch.bfloat16, torch.float16, torch.int64,
    ]  # fmt: skip
    assert given.kwargs["key"]["x"] is first
    assert given.kwargs["n"] == 3
    assert wide.dtype is torch.float32


def test_an_argument_keeps_its_strides_and_that_it_wants_a_gradient(narrow):
    wide = torch.ones(2, 3).t().requires_grad_()
    (cast,) = narrow(print, wide)[1].arguments.args
    assert cast.stride() == wide.stride()
    assert cast.is_leaf
    assert cast.requires_grad


def test_arguments_that_are_made_anew_are_cast_too(narrow):
    assert narrow(print, torch.ones(2))[1].remake(1).args[0].dtype is torch.bfloat16


@pytest.mark.parametrize(
    "called", [lambda n: n, lambda n: n.twice, partial, lambda n: partial(n.twice)]
)
def test_a_module_is_copied_however_it_is_called(called, narrow):
    net = Net()
    call, subject = narrow(called(net), torch.ones(1, 4))
    assert call(*subject.arguments.args).dtype is torch.bfloat16
    assert net.linear.weight.dtype is torch.float32


def test_what_a_partial_holds_is_cast(narrow):
    call, subject = narrow(partial(torch.add, torch.ones(2)), torch.ones(2))
    assert call(*subject.arguments.args).dtype is torch.bfloat16


def test_it_applies_to_an_input_or_a_parameter_in_float32_or_float64(facts):
    nothing = "no input and no parameter is float32 or float64"
    assert precision.no_bf16(facts(print, torch.ones(2))) == ""
    assert precision.no_bf16(facts(print, {"x": torch.ones(2).double()})) == ""
    assert precision.no_bf16(facts(Net(), torch.ones(2).half())) == ""
    assert precision.no_bf16(facts(print, torch.ones(2).half(), 3)) == nothing


# ── TF32 ─────────────────────────────────────────────────────────────────────────────────────────


def settings():
    """All that torch tells of the precision of products, by its older and newer names."""
    found = [
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.cudnn.conv.fp32_precision,
        torch.backends.cudnn.rnn.fp32_precision,
        torch.backends.mkldnn.matmul.fp32_precision,
    ]
    for tell in (
        torch.get_float32_matmul_precision,
        lambda: torch.backends.cuda.matmul.allow_tf32,
        lambda: torch.backends.cudnn.allow_tf32,
    ):
        try:
            found.append(tell())
        except RuntimeError:
            found.append("refused")
    return found


@pytest.fixture(autouse=True)
def _as_before():
    before = [m.fp32_precision for m in (torch.backends.cuda.matmul, torch.backends.cudnn.conv)]
    yield
    with suppress(RuntimeError):
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = True
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision = before


USERS = {
    "none": lambda: None,
    "older": lambda: torch.set_float32_matmul_precision("high"),
    "newer": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "ieee"),
    "no convolutions": lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
    "one newer": lambda: setattr(torch.backends.cudnn.conv, "fp32_precision", "ieee"),
    "mixed": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
}


@pytest.mark.parametrize("users", USERS)
@pytest.mark.parametrize("error", [None, ValueError])
def test_products_may_use_it_inside_and_all_settings_are_put_back(users, error):
    USERS[users]()
    before = settings()
    with suppress(ValueError), precision.tf32():
        assert settings()[:2] == ["tf32", "tf32"]
        if error:
            raise error
    assert settings() == before


def test_where_nothing_was_set_the_older_names_tell_the_same_as_the_newer():
    with precision.tf32():
        assert settings()[4:] == ["high", True, True]


def test_products_that_the_settings_keep_off_the_tensor_cores_are_told(facts):
    of_both = facts(lambda x, y: torch.conv1d(x @ x, y), torch.ones(1, 4, 4), torch.ones(2, 4, 1))
    assert precision.products_without_tf32(of_both) == {"matmul"}
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert precision.products_without_tf32(of_both) == set()


@pytest.fixture
def on_gpu(monkeypatch, facts):
    """As if there were a GPU of some compute capability."""

    def pretend(capability, function, *args):
        monkeypatch.setattr(Facts, "gpu", True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        return precision.no_tf32(facts(function, *args))

    return pretend


def test_it_does_not_apply_without_the_hardware_or_without_a_product(on_gpu, facts):
    x = torch.ones(4, 4)
    assert precision.no_tf32(facts(torch.mm, x, x)) == "TF32 is a precision of NVIDIA's GPUs"
    assert on_gpu((7, 5), torch.mm, x, x) == "this GPU has no TF32"
    assert on_gpu((9, 0), torch.add, x, x) == "no matrix product or convolution in float32"
    assert on_gpu((9, 0), torch.mm, x, x) == ""


def test_nor_where_it_is_on(on_gpu):
    torch.set_float32_matmul_precision("high")
    x = torch.ones(4, 4)
    assert on_gpu((9, 0), torch.mm, x, x) == "TF32 is on already"
