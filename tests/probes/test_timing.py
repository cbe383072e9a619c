"""Several candidates take turns until their times are precise."""

from contextlib import contextmanager, nullcontext

import pytest

from kernelcount import noise
from kernelcount.probes import timing
from kernelcount.probes.timing import Candidate


class Clock:
    """A device on which a call takes as long as it says, and a batch some more."""

    def __init__(self, empty=10_000.0):
        self.empty, self.batches = empty, []

    def time(self, calls, between=None):
        self.batches.append(len(calls))
        total = self.empty
        for call in calls:
            if between is not None:
                between()
            total += call()
        return total


def takes(name, *times, **given):
    """A candidate whose calls take these times in turn, the last one for ever."""
    left = list(times)
    return Candidate(
        name, [lambda: left.pop(0) if len(left) > 1 else left[0]], nullcontext, **given
    )


def test_a_batch_is_long_enough_to_hide_what_it_costs_to_begin_and_end_it():
    short, long = takes("short", 1_000.0), takes("long", 1e9)
    timing.in_turn([short, long], Clock(), 5)
    assert short.batch >= 900
    assert long.batch == 1
    assert short.samples[0] == pytest.approx(1_000.0, rel=0.02)


def test_a_first_call_that_loads_something_does_not_make_the_batch_small():
    candidate = takes("cold", 5e8, 1_000.0)
    timing.in_turn([candidate], Clock(), 5)
    assert candidate.batch >= 900


def test_each_has_a_sample_of_every_turn_and_it_ends_when_all_are_precise():
    candidates = [takes("a", 5e7), takes("b", 7e7)]
    timing.in_turn(candidates, Clock(), 60)
    assert {len(c.samples) for c in candidates} == {8}
    assert all(noise.half_width(c.samples) <= noise.PRECISION for c in candidates)


def test_the_clock_is_waited_for_until_nobody_gets_faster():
    slow_start = [5e7 * 0.9**i for i in range(30)]
    candidate = takes("ramps up", *slow_start)
    timing.in_turn([candidate], Clock(), 60)
    assert max(candidate.samples) <= min(candidate.samples) * 1.02


def test_it_ends_with_its_time_however_imprecise():
    noisy = Candidate("noisy", [iter(float(i % 7 + 1) * 1e7 for i in range(10**9)).__next__],
                      nullcontext)  # fmt: skip
    timing.in_turn([noisy], Clock(), 0.05)
    assert noisy.samples


def test_turns_go_back_and_forth():
    order = []

    def candidate(name):
        @contextmanager
        def during():
            order.append(name)
            yield

        return Candidate(name, [lambda: 5e7], during)

    timing.in_turn([candidate("a"), candidate("b")], Clock(), 60)
    assert order[-6:] == ["b", "a", "a", "b", "b", "a"]


def test_arguments_that_a_call_changes_are_made_ready_before_each():
    made = []
    candidate = takes("in place", 5e7, between=lambda: made.append(1))
    clock = Clock()
    timing.in_turn([candidate], clock, 60)
    assert candidate.batch == 1
    assert len(made) >= len(candidate.samples)


def test_what_a_call_raises_passes_through():
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        timing.in_turn([Candidate("fails", [fails], nullcontext)], Clock(), 1)
