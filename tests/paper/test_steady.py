"""On paper a count is that of a call that launches what another does, as on a GPU."""

import pytest
from counting import codes, operations

from kernelcount import rules
from kernelcount.capture import MOST_CALLS, PAPER_WARM_UPS
from kernelcount.model import Bounds

_LATER = """
calls = 0
def in_turn(a):
    global calls
    calls += 1
    return a + 1 if calls % 2 else a + 1 + 2
def growing(a, cache=[]):
    cache.append(a)
    return sum(cache)
def fourth(a):
    global calls
    calls += 1
    return a + 1 if calls % 4 else a + 1 + 2
def settling(a):
    global calls
    calls += 1
    for _ in range(max(1, 6 - calls)):
        a = a + 1
    return a
def by_size(a, cache=[]):
    cache.append(a)
    return torch.cat(cache)
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x: torch.Tensor):
        self.calls += 1
        return x + 1 if self.calls % 2 else x.relu() + 1
def get_inputs():
    return (torch.ones(64, device="cuda"),)
"""


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("in_turn", lambda call: 2 - call % 2),
        ("growing", lambda call: call),
        ("Layer", lambda call: 2 - call % 2),
    ],
)
def test_what_changes_from_call_to_call_is_unstable_and_says_what_was_seen(
    count, target, name, kernels
):
    outcome = count(f"{target(_LATER)}:{name}", device="paper")["eager"]
    assert outcome.stable is False
    assert codes(outcome) == ["unstable"]
    seen = [str(kernels(call)) for call in range(PAPER_WARM_UPS + 1, MOST_CALLS + 1)]
    assert ", ".join(seen) in outcome.notes[0].detail


@pytest.mark.parametrize("name", ["fourth", "settling"])
def test_what_two_calls_in_a_row_launch_is_steady(count, target, name):
    outcome = count(f"{target(_LATER)}:{name}", device="paper")["eager"]
    assert operations(outcome) == {"add": 1}
    assert outcome.stable is True
    assert codes(outcome) == []


def test_arrays_that_grow_leave_the_kernels_as_they_are(count, target):
    outcome = count(f"{target(_LATER)}:by_size", device="paper")["eager"]
    assert operations(outcome) == {"cat": 1}
    assert outcome.stable is True


@pytest.mark.parametrize(("other", "stable"), [("x * 3", True), ("x * x.sum()", False)])
def test_graphs_in_turn_agree_where_inductor_makes_the_same_kernels_of_them(
    count, target, other, stable
):
    spec = target(f"""
        odd = [True, False]
        def f(x):
            odd.reverse()
            return x * 2 if odd[0] else {other}
    """)
    outcome = count(f"{spec}:f", "compile", device="paper")["compile"]
    assert outcome.stable is stable
    assert ("unstable" in codes(outcome)) is not stable


@pytest.mark.parametrize("limit", ["kernels", "transfers"])
def test_no_limit_is_kept_by_an_unstable_count(count, target, limit):
    outcome = count(f"{target(_LATER)}:growing", device="paper")["eager"]
    reading = rules.read(limit, rules.Counted(outcome))
    assert rules.status(reading, Bounds(0, 1000)) == "undecided"
    assert "no two calls in a row launched the same" in reading.reason
