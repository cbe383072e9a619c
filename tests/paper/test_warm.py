"""A worker forked from a process that has counted on paper counts what any other does."""

from counting import CASES

from kernelcount import warm
from kernelcount.model import Job


def test_the_counts_are_those_of_this_process(count):
    spec = f"{CASES / 'operations.py'}:mlp"
    here = count(spec, "eager", "compile", device="paper")
    forked = warm.in_fork(Job(spec, device="paper"), lambda _: None)
    assert {o.name: o for o in forked.outcomes.values()} == here
