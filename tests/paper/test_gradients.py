"""Gradients that CUDA works out in place, and tensors without memory beside."""

import pytest
import torch

from kernelcount import runners
from kernelcount.model import Capture, Job
from kernelcount.paper.mode import _IN_PLACE

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]

FORWARD = {
    "max": "t.max(1)[0]",
    "sort": "t.sort(1)[0]",
    "topk": "t.topk(2)[0]",
    "cummax": "t.cummax(1)[0]",
    "index": "t[torch.arange(4, device='cuda')]",
    "gather": "t.gather(0, torch.zeros(1, 4, dtype=torch.int64, device='cuda'))",
    "index_select": "t.index_select(0, torch.arange(4, device='cuda'))",
    "take": "t.take(torch.arange(4, device='cuda'))",
}


def counted(path):
    job = Job(f"{path}:f", device="paper", sizes=(64,), variants=("eager",))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert isinstance(outcome, Capture), outcome
    return outcome


@pytest.mark.parametrize("name", FORWARD)
def test_what_is_put_into_zeros_copies_nothing(target, name):
    outcome = counted(
        target(
            "def f(x):\n"
            "    t = x.view(8, 8).detach().requires_grad_()\n"
            f"    made = {FORWARD[name]}\n"
            "    made.backward(torch.empty_like(made))\n"
            "    return t.grad\n"
        )
    )
    assert outcome.count("copy") == 0
    changed = {r.name.removeprefix("aten::") for r in outcome.rows()} & {f"{n}_" for n in _IN_PLACE}
    assert len(changed) == 1


def test_a_gradient_that_is_no_sum_into_zeros_keeps_its_copy(target):
    outcome = counted(
        target(
            "def f(x):\n"
            "    t = x.detach().requires_grad_()\n"
            "    made = t.scatter(0, torch.zeros(4, dtype=torch.int64, device='cuda'), 0.0)\n"
            "    made.backward(torch.empty_like(made))\n"
            "    return t.grad\n"
        )
    )
    assert outcome.count("copy") == 2


@pytest.mark.parametrize("name", FORWARD)
def test_the_nodes_have_the_names_that_are_looked_for(name):
    t = torch.ones(8, 8, requires_grad=True)
    made = eval(FORWARD[name].replace("'cuda'", "'cpu'"), {"t": t, "torch": torch})
    node = made.grad_fn.name().rstrip("0123456789")
    assert node in {node for nodes in _IN_PLACE.values() for node in nodes}
