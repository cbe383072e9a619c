"""The casts of autocast in eager code."""

from pathlib import Path

import pytest
import torch

from kernelcount import runners
from kernelcount.model import Job, Unmeasured
from kernelcount.paper import adapter, autocast

pytestmark = pytest.mark.filterwarnings("ignore")

CODE = """
import torch.nn.functional as F

def product(a):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return a.view(-1, 8) @ a.view(8, -1)

layer = torch.nn.Linear(64, 64).cuda()
norm = torch.nn.LayerNorm(64).cuda()
def layers(a):
    with torch.autocast("cuda"):
        return norm(layer(layer(a.view(1, 64))))

def loss(a):
    w = torch.ones(64, 64, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        lost = F.mse_loss(a.view(1, 64) @ w, torch.zeros(1, 64, device="cuda"))
    lost.backward()

def softmax(a):
    with torch.autocast("cuda", dtype=torch.float16):
        return (a.view(-1, 8) @ a.view(8, -1)).softmax(-1)

def widest(a):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return torch.addcmul(a, a.bfloat16(), a)

def pointwise(a):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        b = a + 1
    return b * 2

def switched_off(a):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        with torch.autocast("cuda", enabled=False):
            return a.exp() + 1

def on_the_host(a):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return a + 1, torch.ones(4, 4) @ torch.ones(4, 4)

def banned(a):
    with torch.autocast("cuda"):
        return F.binary_cross_entropy(a.sigmoid(), torch.ones(64, device="cuda"))
"""


@pytest.mark.parametrize(
    ("name", "casts", "others"),
    [
        ("product", 2, 1),  # three, as measured on an H200
        ("layers", 4, 3),  # the input, weight and bias once for both, and back to float32
        ("loss", 5, 8),  # two operands, the product, and two on the way back
        ("softmax", 2, 2),  # the kernel takes float16 and gives float32
        ("widest", 2, 1),
        ("pointwise", 0, 2),
        ("switched_off", 0, 2),
        ("on_the_host", 0, 1),
    ],
)
def test_autocast_casts_what_it_casts_on_a_gpu(target, name, casts, others):
    job = Job(f"{target(CODE)}:{name}", variants=("eager",), device="paper", sizes=(64,))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert not isinstance(outcome, Unmeasured), outcome.reason
    counted = {r.label: r.count for r in outcome.rows() if r.activity == "kernel"}
    assert (counted.pop("_to_copy", 0), sum(counted.values())) == (casts, others)


def test_what_is_not_followed_is_named(target):
    job = Job(f"{target(CODE)}:banned", variants=("eager",), device="paper", sizes=(64,))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert any("under autocast" in n.detail for n in outcome.notes if n.code == "at-least")


def of_this_torch():
    """The ops that torch names in ATen/autocast_mode.h, before those that become another."""
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text().partition("#define AT_FORALL_LOWER_PRECISION_FP(_)")[2]
    lines = (line.strip(" \\") for line in text.partition("ADD_NS(norm)")[0].splitlines())
    words = (x.removeprefix("_(").removesuffix(")") for x in lines if x[:2] == "_(" and x[2:])
    # torch 2.11 has overloads for named dimensions, which nobody's code calls.
    return {".".join(x.split(", ")) for x in words if "imname" not in x}


def test_the_tables_have_all_that_torch_casts_for():
    assert len(of_this_torch()) > 80
    assert of_this_torch() <= set(autocast.tables())


@pytest.mark.parametrize("name", sorted(set(autocast.tables()) - set(autocast.OPEN.split())))
def test_torch_tells_of_each_op_whether_it_casts_for_it(name):
    followed = (op := adapter.overload_of(name)) is not None and adapter.is_cast(op)
    assert not followed or name in of_this_torch() | set(autocast.WIDEST.split())
    assert followed or name not in of_this_torch()
