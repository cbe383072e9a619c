"""The rules, held against what was recorded on a card."""

import pytest

from kernelcount.examination import recorder, ruled
from kernelcount.paper import atlas, rules


@pytest.fixture(scope="module")
def known():
    """Calls that a rule knows, as paper sees them, with what it says."""
    import torch

    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.__version__", "2.11.0")  # as that of the atlas
        ops = [recorder._seen(case, "meta") for case in ruled.all_cases()]
        return [(op, rules.cost(op, "meta")) for op in ops]


def test_the_rules_know_every_case_that_is_recorded_for_them(known):
    assert len(known) > 50
    assert [op.name for op, cost in known if not cost.exact] == []


def test_what_a_rule_knows_is_what_was_recorded(known):
    there = atlas.load(atlas.FILE)
    recorded = [(op, said, entry) for op, said in known if (entry := there.find(op)) is not None]
    assert len(recorded) > 50
    for op, said, entry in recorded:
        assert (op.name, said.kernels, said.copies) == (op.name, entry.kernels, entry.copies)
