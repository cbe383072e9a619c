"""All variants begin with the same random numbers, of every kind, and the user's own go on."""

import random
import sys

import numpy as np
import pytest
import torch

from kernelcount.probes import randomness

DRAWS = {
    "torch": lambda: torch.rand(()).item(),
    "Python": random.random,
    "Python's normal": lambda: random.gauss(0, 1),
    "NumPy": np.random.rand,
    "NumPy's normal": np.random.randn,
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_each_begins_with_the_same_numbers_and_the_users_go_on(draw):
    draw()
    before = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    seen = []
    for _ in range(2):
        with randomness.fixed(3) as drawn:
            assert not drawn()
            seen.append(draw())
            assert drawn()
    assert seen[0] == seen[1]
    after = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    assert before[0] == after[0]
    assert before[1][1].tolist() == after[1][1].tolist()
    assert before[1][2:] == after[1][2:]
    assert torch.equal(before[2], after[2])


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**32, 2**63 - 1])
def test_every_seed_that_is_allowed_is_one_for_all(seed):
    with randomness.fixed(seed) as drawn:
        assert not drawn()


def test_numpy_is_not_imported_for_it(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "numpy"]:
        monkeypatch.delitem(sys.modules, name)
    with randomness.fixed(0) as drawn:
        assert not drawn()
    assert "numpy" not in sys.modules
