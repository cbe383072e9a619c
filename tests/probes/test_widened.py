"""What a function makes in a coarser precision is made in float64, and shares what it shares."""

import pytest
import torch
import torch.utils.checkpoint

from kernelcount.probes.doubles import in_float64
from kernelcount.probes.widened import widened


def in_both(function, *values):
    """What it gives as it is, and for a reference."""
    torch.manual_seed(0)
    own = function(*(v.clone() if isinstance(v, torch.Tensor) else v for v in values))
    held = [v.clone() for v in values if isinstance(v, torch.Tensor)]
    given = iter(held)
    args = [next(given) if isinstance(v, torch.Tensor) else v for v in values]
    torch.manual_seed(0)
    with in_float64(held) as shown, widened(shown):
        exact = function(*args).clone()
    return own, exact


X = torch.linspace(-1, 1.1, 64)
H = X.bfloat16()


def _written(into, x):
    into[:] = x
    return into


def _autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x.view(8, 8) @ x.view(8, 8)


CASTS = {
    "bfloat16()": lambda x: x.bfloat16(),
    "half()": lambda x: x.half(),
    "to(dtype)": lambda x: x.to(torch.bfloat16),
    "to(dtype=)": lambda x: x.to(dtype=torch.float16),
    "to(device, dtype)": lambda x: x.to("cpu", torch.bfloat16),
    "to(dtype, copy)": lambda x: x.to(torch.bfloat16, copy=True),
    "to(other)": lambda x: x.to(torch.zeros(1, dtype=torch.bfloat16)),
    "to(other given)": lambda x: x.to(x.new_zeros(1, dtype=torch.bfloat16)),
    "type(dtype)": lambda x: x.type(torch.bfloat16),
    "type(name)": lambda x: x.type("torch.HalfTensor"),
    "type_as": lambda x: x.type_as(torch.zeros(1, dtype=torch.bfloat16)),
    "to(other.dtype)": lambda x: x.to(torch.empty(1, dtype=torch.bfloat16).dtype),
    "clone and cast": lambda x: x.clone().bfloat16(),
    "as_tensor": lambda x: torch.as_tensor(x, dtype=torch.bfloat16),
    "asarray": lambda x: torch.asarray(x, dtype=torch.bfloat16),
    "copy_ into empty": lambda x: torch.empty(64, dtype=torch.bfloat16).copy_(x),
    "copy_ into empty_like": lambda x: torch.empty_like(x, dtype=torch.float16).copy_(x),
    "copy_ into new_empty": lambda x: x.new_empty(64, dtype=torch.bfloat16).copy_(x),
    "written into zeros": lambda x: _written(torch.zeros(64, dtype=torch.bfloat16), x),
    "added to zeros": lambda x: torch.zeros(64, dtype=torch.bfloat16).add_(x),
    "out=": lambda x: torch.mul(x, 1, out=torch.empty(64, dtype=torch.bfloat16)),
    "sum(dtype=)": lambda x: x.sum(dtype=torch.bfloat16),
    "mean(dtype=)": lambda x: x.mean(dtype=torch.bfloat16),
    "cumsum(dtype=)": lambda x: x.cumsum(0, dtype=torch.float16),
    "softmax(dtype=)": lambda x: x.softmax(0, dtype=torch.bfloat16),
    "functional softmax": lambda x: torch.nn.functional.softmax(x, 0, dtype=torch.bfloat16),
    "a parameter of a module": lambda x: torch.nn.Linear(64, 3, dtype=torch.bfloat16)(x.bfloat16()),
    "a module that is cast": lambda x: torch.nn.Linear(64, 3).bfloat16()(x.bfloat16()),
    "autocast": _autocast,
    "an integer": lambda x: torch.arange(1000, 1064).bfloat16() + x.bfloat16(),
    "a float of pythons": lambda x: x + torch.tensor(0.1, dtype=torch.bfloat16),
    "several of them": lambda x: x + torch.tensor([0.1] * 64, dtype=torch.float16),
    "full": lambda x: x + torch.full((64,), 0.1, dtype=torch.bfloat16),
    "new_full": lambda x: x + x.new_full((64,), 0.1, dtype=torch.bfloat16),
    "full_like": lambda x: x + torch.full_like(x, 0.1, dtype=torch.bfloat16),
    "linspace": lambda x: x + torch.linspace(0, 1, 64, dtype=torch.bfloat16),
    "arange": lambda x: x + torch.arange(0, 6.4, 0.1, dtype=torch.bfloat16)[:64],
    "scalar_tensor": lambda x: x + torch.scalar_tensor(0.1, dtype=torch.bfloat16),
    "complex": lambda x: x.to(torch.complex64),
    "a part of complex numbers": lambda x: x.to(torch.complex64).real.half(),
}


@pytest.mark.parametrize("name", CASTS)
@pytest.mark.parametrize("x", [X, H], ids=["float32", "bfloat16"])
def test_a_cast_to_a_coarser_dtype_rounds_nothing(name, x):
    """As near to what the function does as that rounds, and no number of it is a rounded one."""
    own, exact = in_both(CASTS[name], x)
    assert exact.dtype in (torch.float64, torch.complex128)
    torch.testing.assert_close(exact.to(own.dtype), own, rtol=0.02, atol=0.02)
    if x is X and name not in ("complex",):
        rounded = exact.to(own.dtype if own.dtype != torch.float32 else torch.bfloat16)
        assert not torch.equal(rounded.to(exact.dtype), exact)


def changed(cast):
    def function(x):
        h = cast(x)
        h *= 3
        return torch.cat([h.double(), x.double()])

    return function


ALIASES = {
    "float()": lambda x: x.float(),
    "bfloat16()": lambda x: x.bfloat16(),
    "double()": lambda x: x.double(),
    "to(float32)": lambda x: x.to(torch.float32),
    "to(bfloat16)": lambda x: x.to(dtype=torch.bfloat16),
    "to(device, dtype)": lambda x: x.to("cpu", torch.float32),
    "to(device)": lambda x: x.to("cpu"),
    "to(copy)": lambda x: x.to(torch.float32, copy=True),
    "to(own dtype, copy)": lambda x: x.to(x.dtype, copy=True),
    "to(itself)": lambda x: x.to(x),
    "to(another)": lambda x: x.to(torch.zeros(1)),
    "type": lambda x: x.type(torch.float32),
    "type_as": lambda x: x.type_as(torch.zeros(1)),
    "type_as one made of it": lambda x: x.type_as(x + 1),
    "there": lambda x: x[2:].float(),
    "and back": lambda x: x.bfloat16().float(),
    "as_tensor": lambda x: torch.as_tensor(x, dtype=torch.float32),
    "asarray": lambda x: torch.asarray(x, dtype=torch.bfloat16),
    "of something computed": lambda x: (x + 1).float(),
}


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("x", [X, H], ids=["float32", "bfloat16"])
def test_a_cast_gives_the_same_tensor_where_it_does_so_otherwise_and_a_copy_where_not(name, x):
    own, exact = in_both(changed(ALIASES[name]), x)
    torch.testing.assert_close(exact, own, rtol=0.02, atol=0.02)


DRAWN = {
    "rand": lambda x: x + torch.rand(64),
    "randn": lambda x: x + torch.randn(64),
    "randn in bfloat16": lambda x: x + torch.randn(64, dtype=torch.bfloat16),
    "rand_like": lambda x: x + torch.rand_like(x),
    "randn_like": lambda x: x + torch.randn_like(x * 2),
    "randn_like in another": lambda x: x + torch.randn_like(x, dtype=torch.float16),
    "uniform_": lambda x: torch.empty(64).uniform_() + x,
    "normal_": lambda x: torch.empty_like(x).normal_() + x,
    "exponential_": lambda x: torch.empty(64).exponential_() + x,
    "bernoulli": lambda x: torch.bernoulli(x.abs() / 2),
    "dropout": torch.nn.functional.dropout,
    "randint": lambda x: x + torch.randint(9, (64,)),
    "normal": lambda x: torch.normal(0.0, 1.0, (64,)) + x,
    "a new module": lambda x: torch.nn.Linear(64, 2)(x.float()),
    "multinomial": lambda x: torch.multinomial(x.abs().float(), 3).float(),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("x", [X, H], ids=["float32", "bfloat16"])
def test_random_numbers_are_those_of_the_dtype_that_they_are_drawn_in(name, x):
    own, exact = in_both(DRAWN[name], x)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.to(own.dtype), own, rtol=0.02, atol=0.02)


def test_gradients_are_in_float64_too():
    def gradient(x):
        x = x.clone().requires_grad_()
        (x.bfloat16() * 1.1).float().square().sum().backward()
        return x.grad

    own, exact = in_both(gradient, X)
    torch.testing.assert_close(exact, X.double() * 2 * 1.1**2, rtol=1e-12, atol=0)
    torch.testing.assert_close(own, exact.float(), rtol=0.02, atol=0.02)


def test_float8_stays():
    own, exact = in_both(lambda x: x.to(torch.float8_e4m3fn).float(), X)
    assert torch.equal(exact.float(), own)


def test_bits_of_floats_have_no_like_in_float64_and_floats_of_bits_stay():
    with pytest.raises(RuntimeError, match="no like in float64"):
        in_both(lambda x: x.view(torch.int32) + 1, X)
    own, exact = in_both(lambda x: torch.arange(64).int().view(torch.float32) + x * 0, X)
    assert torch.equal(own.double(), exact)


def test_the_default_dtype_is_as_it_was_afterwards():
    in_both(lambda x: x + torch.full((64,), 0.1), X)
    assert torch.get_default_dtype() is torch.float32


def test_a_default_dtype_that_the_function_sets_counts():
    def function(x):
        torch.set_default_dtype(torch.bfloat16)
        return x + torch.full((64,), 0.1)

    try:
        _, exact = in_both(function, X)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(exact, X.double() + 0.1)


def test_what_maps_a_function_over_numbers_is_widened_as_well():
    def mapped(x):
        return torch.func.vmap(lambda v: (v.bfloat16() * 1.1).float())(x)

    def slope(x):
        return torch.func.vmap(torch.func.grad(lambda v: (v.half() * 1.1).float() ** 2))(x)

    def again(x):
        y = x.clone().requires_grad_()
        kept = torch.utils.checkpoint.checkpoint(
            lambda v: v.bfloat16().sin(), y, use_reentrant=False
        )
        kept.sum().backward()
        return y.grad

    for function, truth in (
        (mapped, X.double() * 1.1),
        (slope, X.double() * 2 * 1.1**2),
        (again, X.double().cos()),
    ):
        torch.testing.assert_close(in_both(function, X)[1], truth, rtol=1e-12, atol=0)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_attention_that_torch_compiles_itself_has_a_reference():
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 1, 16, 8, generator=torch.Generator().manual_seed(0))
    with torch.compiler.set_stance("force_eager"):
        own, exact = in_both(lambda q: flex_attention(q, q, q), q)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), own)
