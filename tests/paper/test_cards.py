"""The table of cards."""

import pytest

from kernelcount.errors import UsageError
from kernelcount.paper.cards import CARDS, LIMITS, find


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
