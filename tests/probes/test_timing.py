"""Several candidates take turns until their times are precise."""

import random
from collections import Counter
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import pytest

from kernelcount.conclusions import comparison, noise
from kernelcount.devices import DEVICES
from kernelcount.model import Capture, Timing
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
    assert {len(c.samples) for c in candidates} == {10}  # looked at after 9, of an even number
    assert all(noise.half_width(c.samples) <= noise.PRECISION for c in candidates)


def test_the_clock_is_waited_for_until_nobody_gets_faster():
    slow_start = [5e7 * 0.9**i for i in range(30)]
    candidate = takes("ramps up", *slow_start)
    timing.in_turn([candidate], Clock(), 60)
    assert max(candidate.samples) <= min(candidate.samples) * 1.02


class Ticking(Clock):
    """The same where the time that calls take passes by the clock on the wall, too."""

    def __init__(self, monkeypatch, empty=10_000.0):
        super().__init__(empty)
        self.now = 0.0
        monkeypatch.setattr(timing.time, "monotonic", lambda: self.now)

    def time(self, calls, between=None):
        took = super().time(calls, between)
        self.now += took / 1e9
        return took


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("empty", [1e4, 1e5, 1e6], ids=["quiet", "busy", "very busy"])
def test_one_that_gets_faster_for_ever_and_a_busy_machine_leave_time_for_a_verdict(
    monkeypatch, n, empty
):
    device = Ticking(monkeypatch, empty)
    quicker = [takes(str(i), *(4e5 * 0.985**k for k in range(10_000))) for i in range(n)]
    timing.in_turn(quicker, device, 1.0 * timing.shares(n))
    if empty < 1e6:  # what is lost in no batch of this time leaves too few of them
        assert min(len(c.samples) for c in quicker) >= noise.FEWEST
    assert device.now < 1.5 * timing.shares(n)


@pytest.mark.parametrize(
    ("seconds", "took"),
    [
        (1.0, (24, 3, 1.7)),
        (1.0, (11.8, 11.8, 11.8)),
        (2.5, (24, 3, 1.7)),
        (2.5, (29.7, 29.7, 29.7)),
    ],
)
def test_long_and_short_calls_beside_each_other_have_turns_enough_for_a_verdict(
    monkeypatch, seconds, took
):
    """As a large product in float32, TF32 and bfloat16, on a GPU that warms up half of the time."""
    device, half = Ticking(monkeypatch, 1e5), seconds * timing.shares(3) / 2

    def call(ms):
        return lambda: ms * 1e6 * (1 + max(0.0, 1 - device.now / half))

    each = [Candidate(str(ms), [call(ms)], nullcontext) for ms in took]
    timing.in_turn(each, device, 2 * half)
    assert min(len(c.samples) for c in each) >= noise.FEWEST


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
    assert timing.orders(2) == [[0, 1], [1, 0]]


@pytest.mark.parametrize("n", range(1, 10))
def test_each_stands_at_every_place_and_after_every_other_equally_often(n):
    orders = timing.orders(n)
    after = Counter(pair for order in orders for pair in pairwise(order))
    places = Counter(place for order in orders for place in enumerate(order))
    assert len(after) == n * (n - 1)
    assert len(places) == n * n
    assert len(set(after.values())) <= 1
    assert set(places.values()) == {len(orders) / n}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_each_follows_itself_as_often_as_it_follows_any_other(n):
    ran = []
    candidates = [Candidate(str(i), [lambda: 5e7], lambda i=i: logged(ran, i)) for i in range(n)]
    timing.in_turn(candidates, Clock(), 60)
    timed = timing.orders(n)
    turn = n + (n > 2)
    first = len(ran) - turn * len(candidates[0].samples)
    before = {}
    for at, i in enumerate(ran[first:], first):
        if (at - first) % turn >= turn - n and (n > 2 or at > first):  # what is timed, of the turns
            before.setdefault(i, Counter())[ran[at - 1]] += 1
    often = {count for counts in before.values() for count in counts.values()}
    assert all(len(counts) == n for counts in before.values())
    assert max(often) - min(often) <= (n == 2)  # of two, there is one turn less to follow
    assert len(candidates[0].samples) % len(timed) == 0


@contextmanager
def logged(ran, i):
    ran.append(i)
    yield


def verdicts(candidates):
    """What is said of every pair of candidates that were timed in turn."""
    names = tuple(c.name for c in candidates)
    captures = [
        Capture(c.name, timing=Timing(tuple(c.samples), c.batch, names)) for c in candidates
    ]
    pairs = [(a, b) for a in captures for b in captures if a is not b]
    return Counter(speed.verdict for pair in pairs if (speed := comparison.speed(*pair)))


class Remembering(Clock):
    """A device on which what ran before has a bearing on the time of a batch, by `factor`."""

    def __init__(self, factor, noise=0.0):
        super().__init__()
        self.factor, self.previous = factor, None
        self.noise, self.random = noise, random.Random(3)

    def time(self, calls, between=None):
        if not calls:
            return super().time(calls)
        names = [call() for call in calls]
        factor = self.factor(names[0], self.previous)
        self.previous = names[-1]
        return self.empty + 5e7 * len(names) * factor * (1 + self.noise * self.random.random())


EFFECTS = {
    "after itself": lambda own, before: 1.05 if own == before else 1.0,
    "after a big one": lambda own, before: 1.05 if before == 0 else 1.0,
}


@pytest.mark.parametrize("noisy", [0.0, 0.04])
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_equals_are_no_different_whatever_what_ran_before_does_to_them(n, effect, noisy):
    candidates = [Candidate(str(i), [lambda i=i: i], nullcontext) for i in range(n)]
    timing.in_turn(candidates, Remembering(EFFECTS[effect], noisy), 0.2)
    assert verdicts(candidates) == {"no difference": n * (n - 1)}


@pytest.mark.parametrize("n", [2, 3, 6])
def test_equals_are_no_different_where_the_first_of_a_turn_is_slower(n, monkeypatch):
    """As it may be after something else was done: the clock is looked at between turns."""

    class Idle(Clock):
        idle, now, random = False, 0.0, random.Random(3)

        def time(self, calls, between=None):
            factor, self.idle = 1.05 if self.idle else 1.0, False
            return super().time(calls) * factor * (1 + 0.02 * self.random.random())

        def monotonic(self):
            self.idle, self.now = True, self.now + 1
            return self.now

    device = Idle()
    monkeypatch.setattr(timing, "time", device)
    candidates = [takes(str(i), 5e7) for i in range(n)]
    timing.in_turn(candidates, device, 60)
    assert verdicts(candidates) == {"no difference": n * (n - 1)}


@pytest.mark.parametrize("n", [2, 3, 6])
def test_equals_are_no_different_where_looking_whether_it_is_precise_slows_the_next(n, monkeypatch):
    """Which sorts all samples: what the next one needs is not in the caches then."""

    class Forgetful(Clock):
        cold, random = 0, random.Random(5)

        def time(self, calls, between=None):
            factor = 1.05 if self.cold and calls else 1.0
            self.cold = max(0, self.cold - 1) if calls else self.cold
            return super().time(calls) * factor * (1 + 0.002 * self.random.random())

        def precise(self, candidates):
            self.cold = 2 if n > 2 else 1  # of three and more the first batch is not timed
            return len(candidates[0].samples) >= 60

    device = Forgetful()
    monkeypatch.setattr(timing, "_precise", device.precise)
    candidates = [takes(str(i), 5e7) for i in range(n)]
    timing.in_turn(candidates, device, 600)
    assert len(candidates[0].samples) >= 60
    assert verdicts(candidates) == {"no difference": n * (n - 1)}


@pytest.mark.parametrize(("takes_ns", "calls"), [(1e5, 2), (1e8, 1)])
def test_before_a_batch_of_short_calls_one_is_made_untimed(takes_ns, calls):
    """It is slower: the caches hold what others need. A long call is not made twice for that."""
    made = []

    class Cold(Clock):
        def time(self, calls, between=None):
            return super().time(calls, between) + (
                5_000.0 if calls and made[-2:] != ["", ""] else 0
            )

    def call():
        made.append("")
        return takes_ns

    @contextmanager
    def during():
        made.append("switch")
        yield

    for between in (None, lambda: None):
        made.clear()
        candidate = Candidate("a", [call], during, between)
        timing.in_turn([candidate], Cold(empty=0.0), 5)
        assert made[-calls - 1 :] == ["switch", *[""] * calls]
        assert candidate.samples[-1] == takes_ns + (0 if calls > 1 else 5_000)


def test_the_untimed_call_leaves_the_rotation_of_arguments_as_it_is():
    """Or a batch would begin with arguments that the caches hold already."""
    made = []
    calls = [lambda i=i: (made.append(i), 5e5)[1] for i in range(3)]
    timing.in_turn([Candidate("a", calls, nullcontext)], Clock(empty=2_000.0), 5)
    assert made[-4:] == [2, 0, 1, 2]


def test_six_times_the_same_function_is_no_difference_on_the_cpu():
    import torch

    x = torch.ones(10_000)
    candidates = [Candidate(str(i), [lambda: x.mul(2).relu()], nullcontext) for i in range(6)]
    timing.in_turn(candidates, DEVICES["cpu"], 0.3)
    found = verdicts(candidates)
    assert found["no difference"] >= 28  # of 30; one pair in a hundred is off by chance, both ways


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
