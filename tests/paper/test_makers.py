"""Tensors that are made of Python's lists on the GPU: on the host first, and then copied."""

import pytest

from kernelcount import runners
from kernelcount.model import Capture, Job

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]

MAKERS = [
    "torch.tensor([1.0, 2.0, float(k)], device='cuda')",
    "torch.tensor([1.0, 2.0, float(k)], device=x.device)",
    "torch.as_tensor([1.0, 2.0, float(k)], device='cuda')",
    "torch.as_tensor(numpy.ones(3, numpy.float32), device='cuda:0')",
    "x.new_tensor([1.0, 2.0, float(k)])",
    "torch.tensor([1.0, 2.0, float(k)]).to(x.device)",
]
LOOP = """
import numpy

def f(x):
    for k in range({times}):
        x = x + {maker}.sum()
        {breaks}
    return x
"""


def all_counted(path, *variants):
    job = Job(f"{path}:f", device="paper", sizes=(64,), variants=variants)
    outcomes = [*runners.in_process(job, lambda _: None).outcomes.values()]
    assert all(isinstance(outcome, Capture) for outcome in outcomes), outcomes
    return outcomes


def counted(path, variant):
    (outcome,) = all_counted(path, variant)
    return outcome


@pytest.mark.parametrize(("maker", "times"), [(m, 2 + (m is MAKERS[0])) for m in MAKERS])
def test_in_a_loop_that_breaks_the_graph_it_is_counted(target, maker, times):
    """Three times the whole number has become one of any size for Dynamo: once is enough."""
    text = LOOP.format(maker=maker, breaks="print(end='')", times=times)
    for outcome in all_counted(target(text), "eager", "compile"):
        assert (outcome.count("kernel"), outcome.count("copy")) == (2 * times, times)
        assert not outcome.paper.at_least


@pytest.mark.parametrize("maker", [MAKERS[0], MAKERS[2]])
def test_in_one_graph_it_is_a_constant_of_the_kernel(target, maker):
    outcome = counted(target(LOOP.format(maker=maker, breaks="", times=3)), "compile")
    assert (outcome.count("kernel"), outcome.count("copy")) == (1, 0)


def test_a_graph_that_makes_tensors_is_not_compiled_anew_by_each_call(target):
    path = target(
        "def f(x):\n"
        "    x = x + torch.tensor([1.0, 2.0], device='cuda').sum()\n"
        "    print(end='')\n"
        "    return x * torch.as_tensor([3.0], device='cuda')\n"
    )
    outcome = counted(path, "compile")
    assert outcome.stable
    assert outcome.count("kernel") == 2
    assert "recompiled" not in [note.code for note in outcome.notes]


def test_its_values_are_known_where_the_path_depends_on_them(target):
    path = target(
        "def f(x):\n"
        "    if x.new_tensor([1.0, 2.0]).sum() > 2:\n        return x + 1\n"
        "    return x.sin().cos().tan()\n"
    )
    outcome = counted(path, "eager")
    assert outcome.count("kernel") == 3
