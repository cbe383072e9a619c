"""A call that holds more than the card's memory is counted, and that it would not fit is said."""

import pytest

from kernelcount import runners
from kernelcount.model import Capture, Job
from kernelcount.paper.cards import CARDS

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]

MEMORY = CARDS["H200"].memory
FLOATS = MEMORY // 4


def notes(path, size, variant="eager", card=None, **flags):
    job = Job(
        f"{path}:f", device="paper", sizes=(int(size),), variants=(variant,), gpu=card, **flags
    )
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert isinstance(outcome, Capture), outcome
    return {note.code: note.detail for note in outcome.notes}


@pytest.fixture
def doubles(target):
    return target("def f(x):\n    return x * 2\n")


@pytest.mark.parametrize("variant", ["eager", "compile"])
def test_arguments_larger_than_the_card_are_told_of(doubles, variant):
    told = notes(doubles, 1e11, variant)["too-large"]
    assert told.startswith("a call holds 800 GB at once, and the memory of the H200 is 150 GB")


def test_what_fits_with_its_result_is_not_told_of(doubles):
    assert "too-large" not in notes(doubles, FLOATS // 2)
    assert "too-large" in notes(doubles, FLOATS // 2 + 256)


def test_the_card_decides(doubles):
    assert "too-large" not in notes(doubles, 1e10)
    assert "T4 is 15.8 GB" in notes(doubles, 1e10, card="T4")["too-large"]


def test_what_is_freed_on_the_way_is_not_held(target):
    chain = target("def f(x):\n    for _ in range(20):\n        x = x + 1\n    return x\n")
    assert "too-large" not in notes(chain, FLOATS // 4)


def test_what_is_kept_on_the_way_is_held(target):
    kept = target("def f(x):\n    made = [x + i for i in range(20)]\n    return made[0]\n")
    assert "too-large" in notes(kept, FLOATS // 4)


def test_what_is_fused_is_not_held(target):
    path = target("def f(x):\n    made = [x + i for i in range(20)]\n    return sum(made)\n")
    assert "too-large" in notes(path, FLOATS // 4)
    assert "too-large" not in notes(path, FLOATS // 4, "compile")


def test_what_autograd_keeps_is_held(target):
    path = target(
        "def f(x):\n"
        "    x = x.detach().requires_grad_()\n"
        "    for _ in range(10):\n        x = x.exp()\n"
        "    return x.sum()\n"
    )
    assert "too-large" in notes(path, FLOATS // 4)
    assert "too-large" not in notes(path, FLOATS // 4, no_grad=True)
