"""What a function sets is put back after a count of it, and between implementations."""

import pytest
import torch

from kernelcount import compare, count
from tests.test_settings import CHANGES


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """None that paper might touch: beside one it is refused in this process."""
    monkeypatch.setattr("kernelcount.worker.may_have_a_gpu", lambda: False)


def changed_everywhere():
    """Change every setting that there is, each once."""
    for _, make in CHANGES.values():
        make()


@pytest.mark.parametrize("device", ["cpu", "paper", "fake"])
def test_every_setting_is_as_it_was_after_a_count(device, monkeypatch):
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    before = {name: get() for name, (get, _) in CHANGES.items()}
    got = count(lambda x: (x + 1, changed_everywhere()), torch.ones(3), device=device)
    assert got.figures.capture is not None
    assert {name for name, (get, _) in CHANGES.items() if get() != before[name]} == set()


def test_what_one_implementation_sets_the_next_does_not_see():
    before = {name: get() for name, (get, _) in CHANGES.items()}
    seen = set()

    def meddles(x):
        changed_everywhere()
        return x + 1

    def looks(x):
        now = {name: get() for name, (get, _) in CHANGES.items() if name != "stance"}
        seen.update(name for name in now if now[name] != before[name])
        return x + 1

    got = compare(looks, torch.ones(3), variants=[meddles, "eager"], device="cpu", seconds=0.05)
    assert got["eager"].call_time_ns
    assert seen == set()
