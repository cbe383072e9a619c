"""The Python API on a GPU, each time in a process that is no more than a caller's program."""

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.gpu

HEAD = """
import torch
from kernelcount import NotMeasuredError, compare, count

def add_relu(a, b):
    return (a + b).relu()

a, b = torch.randn(2, 100_000_000, device="cuda")
"""


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def program(text):
    """Run a program whose assertions are the test."""
    command = [sys.executable, "-c", HEAD + dedent(text)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


def test_a_function_with_tensors_on_the_gpu_is_measured():
    program("""
        got = count(add_relu, a, b)
        assert (got.kernels, got.launches, got.copies, got.fills) == (2, 2, 0, 0), str(got)
        assert [row.label for row in got.rows] == ["add", "relu"]
        assert got.basis == "measured" and got.environment.kind in ("cuda", "hip")
    """)


def test_eager_and_compile_are_timed_in_turn_and_compared():
    program("""
        eager, compiled = compare(add_relu, a, b)
        assert (eager.kernels, compiled.kernels) == (2, 1)
        assert compiled.speed.verdict == "faster"
        assert compiled.numerics.verdict == "equal"
        assert compiled.peak_memory < eager.peak_memory
    """)


def test_what_is_on_the_host_is_taken_to_the_gpu_and_back():
    program("""
        model = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(8, 64)
        weight, before = model[0].weight, model[0].weight.clone()

        def step():
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

        assert count(step).kernels > 4
        assert model[0].weight is weight and weight.device.type == "cpu" and weight.grad is None
        assert torch.equal(weight, before) and x.device.type == "cpu"
    """)


def test_what_the_caller_has_placed_stays_where_it_is():
    program("""
        table = torch.randn(64)
        got = count(lambda x: x + table.to("cuda"), torch.randn(64, device="cuda"))
        assert (got.kernels, got.copies) == (1, 1), str(got)
    """)


def test_random_numbers_of_the_gpu_and_the_callers_error_are_as_they_were():
    program("""
        state = torch.cuda.get_rng_state()
        dropped = count(lambda x: torch.nn.functional.dropout(x, 0.5), a)
        assert dropped.kernels >= 1
        error = ValueError("mine")
        def fails(x):
            torch.rand(3, device="cuda")
            raise error
        try:
            count(fails, a)
        except ValueError as raised:
            assert raised is error
        assert torch.equal(state, torch.cuda.get_rng_state())
    """)


def test_paper_is_refused_in_a_process_that_has_a_gpu_and_works_in_one_of_its_own(tmp_path):
    path = tmp_path / "users.py"
    path.write_text("def add_relu(a, b):\n    return (a + b).relu()\n")
    program(f"""
        try:
            count(add_relu, a, b, device="paper")
        except NotMeasuredError as error:
            assert "name the function by a string" in str(error)
        else:
            raise AssertionError
        assert count({f"{path}:add_relu"!r}, size=1000, device="paper").kernels == 2
        measured = count({f"{path}:add_relu"!r}, size=1e7)
        assert (measured.kernels, measured.transfers) == (2, 5.0)
        assert count(add_relu, a, b).kernels == 2
    """)
