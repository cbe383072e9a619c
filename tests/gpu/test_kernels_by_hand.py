"""The scenarios on a GPU: kernels by hand compute what torch does, and every budget is kept."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

from kernelcount import app, scenarios, warm
from kernelcount.budgets import checking

pytestmark = pytest.mark.gpu
FOLDER = scenarios.folder().absolute()


@pytest.fixture(autouse=True)
def _a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


@pytest.fixture
def load(monkeypatch):
    """Import a file of the folder as its neighbours do."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(FOLDER)])
    return importlib.import_module


@pytest.fixture
def draw():
    """Random numbers on the GPU."""
    generator = torch.Generator("cuda").manual_seed(0)
    return lambda *shape: torch.randn(*shape, device="cuda", generator=generator)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 100_003])
def test_vector_add_in_cuda_c(load, draw, n):
    a, b = draw(n), draw(n)
    torch.testing.assert_close(load("vector_add_cuda").vector_add(a, b), a + b, rtol=0, atol=0)


@pytest.mark.parametrize("way", ["add_relu_cuda", "add_relu_triton"])
@pytest.mark.parametrize("n", [4, 1024, 100_004])
def test_add_relu_by_hand(load, draw, way, n):
    a, b = draw(n), draw(n)
    a[0] = float("nan")
    actual = load(way).add_relu(a, b)
    torch.testing.assert_close(actual, (a + b).relu(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("matmul_cuda", "naive"), ("matmul_cuda", "tiled"), ("matmul_triton", "small_tiles"),
        ("matmul_triton", "large_tiles"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (70, 45, 33), (128, 256, 64)])
def test_products_by_hand(load, draw, file, name, m, k, n):
    a, b = draw(m, k), draw(k, n)
    expected = (a.double() @ b.double()).float()
    torch.testing.assert_close(getattr(load(file), name)(a, b), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["by_atomics", "by_shuffle", "by_ranges"])
@pytest.mark.parametrize("n", [0, 1, 31, 1_000_003])
def test_sums_by_hand(load, name, n):
    x = torch.randint(-8, 9, (n,), device="cuda").float()
    assert getattr(load("sum_cuda"), name)(x).item() == x.double().sum().item()


@pytest.mark.parametrize("n", [1, 2, 2040, 2041, 4500])
def test_the_mean_of_many_tensors_in_cuda_c(load, draw, n):
    gradients = [draw(1 + i % 700) for i in range(n)]
    expected = torch.stack([g.double().abs().sum() for g in gradients]).mean().float()
    actual = load("gradient_mean_cuda").mean_norm(gradients)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 100), (64, 4096)])
def test_softmax_in_triton(load, draw, rows, columns):
    x = draw(rows, columns)
    torch.testing.assert_close(load("softmax_triton").softmax(x), x.softmax(-1))


def test_layer_norm_in_triton(load, draw):
    x, weight, shift, bias = draw(7, 300), draw(300), draw(300), draw(300)
    expected = load("ln_bias_gelu").ln_bias_gelu(x, weight, shift, bias)
    actual = load("layernorm_triton").ln_bias_gelu(x, weight, shift, bias)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_swish_in_cuda_c_with_and_without_an_operator(load, draw):
    x, module = draw(1000), load("swish_cuda")
    expected = torch.nn.functional.silu(x)
    torch.testing.assert_close(module.registered(x), expected)
    torch.testing.assert_close(module.unregistered(x), expected)
    torch.library.opcheck(module.registered, (x,))


@pytest.mark.parametrize(
    ("file", "name", "wrong"),
    [
        ("vector_add_cuda", "vector_add", lambda: (torch.ones(4), torch.ones(4))),
        ("vector_add_cuda", "vector_add", lambda: [torch.ones(4, device="cuda").double()] * 2),
        ("vector_add_cuda", "vector_add", lambda: [torch.ones(4, 4, device="cuda").t()[:, 1:]] * 2),
        ("add_relu_cuda", "add_relu", lambda: [torch.ones(6, device="cuda")] * 2),
        ("add_relu_cuda", "add_relu", lambda: [torch.ones(9, device="cuda")[1:]] * 2),
        ("matmul_cuda", "tiled", lambda: [torch.ones(2, 3, device="cuda")] * 2),
        ("sum_cuda", "by_shuffle", lambda: (torch.ones(4, 4, device="cuda").t()[:, 1:],)),
        ("gradient_mean_cuda", "mean_norm", lambda: ([torch.ones(4)],)),
    ],
)
def test_what_a_kernel_cannot_take_is_refused(load, file, name, wrong):
    with pytest.raises((RuntimeError, ValueError)):
        getattr(load(file), name)(*wrong())
    torch.cuda.synchronize()  # and nothing was launched that fails later


@pytest.mark.parametrize("scenario", scenarios.find(), ids=lambda s: s.name)
def test_every_budget_is_kept(scenario):
    if scenario.name == "two_gpus" and torch.cuda.device_count() < 2:
        pytest.skip("this takes two GPUs")
    budgets = app.budgets([Path(scenario.budget)])
    options = checking.Options(device="cuda:0")
    checked = app.check(budgets, warm.in_fork, lambda _: None, options, beside=warm.beside)
    assert [h for h in checked.held if h.status != "kept"] == []
