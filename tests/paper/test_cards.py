"""The table of cards."""

import pytest

from kernelcount.errors import UsageError
from kernelcount.paper.cards import CARDS, LIMITS, find, of_device


def test_the_default_is_the_card_whose_library_calls_are_recorded():
    assert find(None).name == "H200"


def test_names_are_read_in_any_case_and_with_their_maker():
    assert find("h100") is find("NVIDIA H100")


def test_another_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean L40S"):
        find("L40")


@pytest.mark.parametrize("card", CARDS.values(), ids=list(CARDS))
def test_every_figure_has_a_source(card):
    assert card.source
    assert card.capability in LIMITS
    assert min(card.multiprocessors, card.memory, card.l2, card.bandwidth) > 0


@pytest.mark.parametrize(
    ("device", "card"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
    ],
)
def test_a_card_is_known_by_what_torch_calls_it(device, card):
    assert of_device(device).name == card


@pytest.mark.parametrize("device", ["NVIDIA L40", "AMD Instinct MI300X", ""])
def test_a_card_without_a_row_is_none(device):
    assert of_device(device) is None
