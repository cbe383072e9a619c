"""Work that a function does on the CPU, which no kernel is."""

import pytest

from kernelcount import runners
from kernelcount.model import Capture, Job, Unmeasured

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAM = """
import torch
HELD = torch.randn(1000, 1000)
SENT = torch.ones(10, 10)
WEIGHT = torch.nn.Parameter(torch.randn(10))
WEIGHT.grad = torch.ones(10)
OPTIMIZER = torch.optim.SGD([WEIGHT], lr=0.1)
def all_of_it():
    return (HELD * 2).relu()
def some_of_it(x):
    OPTIMIZER.step()
    return x + 1
def beside_the_gpu(x):
    return HELD * 2
def numbers_alone(x):
    return x * (torch.tensor(2.0) + 1)
def views(x):
    return x.t()
def sent(x):
    return x + SENT.to("cuda").relu()
"""


def counted(target, name, variant="eager"):
    inputs = () if name == "all_of_it" else ("f32[10,10]",)
    job = Job(f"{target(PROGRAM)}:{name}", device="paper", variants=(variant,), inputs=inputs)
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    return outcome


@pytest.mark.parametrize("variant", ["eager", "compile"])
def test_a_function_that_computes_on_the_cpu_alone_is_unmeasured(target, variant):
    outcome = counted(target, "all_of_it", variant)
    assert isinstance(outcome, Unmeasured)
    assert "on the CPU (mul, relu)" in outcome.reason


def test_what_is_done_on_the_cpu_beside_is_said(target):
    outcome = counted(target, "some_of_it")
    assert isinstance(outcome, Capture)
    assert outcome.count("kernel") == 1
    notes = {n.code: n.detail for n in outcome.notes}
    assert notes["on-cpu"].endswith("not counted: add_")


def test_a_function_that_leaves_the_gpu_idle_has_no_kernel_and_says_where_it_computes(target):
    outcome = counted(target, "beside_the_gpu")
    assert isinstance(outcome, Capture)
    assert outcome.count("kernel") == 0
    assert "on-cpu" in {n.code for n in outcome.notes}


@pytest.mark.parametrize("name", ["numbers_alone", "views"])
def test_numbers_and_views_are_no_work_of_the_cpu(target, name):
    outcome = counted(target, name)
    assert isinstance(outcome, Capture)
    assert "on-cpu" not in {n.code for n in outcome.notes}


def test_what_a_graph_sends_to_the_gpu_is_a_copy_and_no_work_of_the_cpu(target):
    outcome = counted(target, "sent", "compile")
    assert isinstance(outcome, Capture)
    assert (outcome.count("kernel"), outcome.count("copy")) == (1, 1)
    assert "on-cpu" not in {n.code for n in outcome.notes}
