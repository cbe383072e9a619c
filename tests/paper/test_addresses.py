"""Code that asks for addresses is told of places that there are not, unless it bears the mark."""

import re
from pathlib import Path

import pytest
import torch

import kernelcount
from kernelcount import runners
from kernelcount.errors import KernelcountError
from kernelcount.model import Capture, Job
from kernelcount.paper.addresses import MARK

pytestmark = pytest.mark.filterwarnings("ignore")

PACKAGE = Path(kernelcount.__file__).parent
SCENARIOS = PACKAGE.parent / "scenarios"

ASKS = """
{mark}
def f(x):
    there = x.data_ptr() and x.untyped_storage().data_ptr()
    return x + 1 if there else (x + 1) * 2
"""


def counted(path):
    job = Job(f"{path}:f", device="paper", sizes=(64,), variants=("eager",))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    return outcome


@pytest.mark.parametrize(
    ("mark", "kernels", "notes"),
    [("", 1, ["idle-card"]), (f"{MARK} = False", 1, ["idle-card"]), (f"{MARK} = True", 2, [])],
)
def test_a_module_with_the_mark_is_told_the_truth(target, mark, kernels, notes):
    outcome = counted(target(ASKS.format(mark=mark)))
    assert isinstance(outcome, Capture), outcome
    assert outcome.count("kernel") == kernels
    assert [n.code for n in outcome.notes] == notes


def test_the_package_knows_no_module_of_the_scenarios():
    text = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    helpers = {p.stem for p in SCENARIOS.glob("*.py")}
    assert "cuda_source" in helpers
    assert not re.search(r"\bcuda_source\b", text)


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch builds CUDA C")
def test_cuda_c_that_is_built_as_the_module_is_imported_is_told_in_plain_words(target):
    path = target(
        "from torch.utils.cpp_extension import load_inline\n"
        "made = load_inline('made', '', cuda_sources='int f();', functions=[])\n"
        "def f(x):\n    return x\n"
    )
    with pytest.raises(KernelcountError, match="CUDA C of its own") as raised:
        counted(path)
    assert raised.value.code == 3
