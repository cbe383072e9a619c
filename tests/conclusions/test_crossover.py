"""From which size on a variant is faster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelcount.conclusions import crossover
from kernelcount.model import Capture, Note, Run, Speed, Unmeasured

TIE = "no difference"


def run(size, *ratios, note=None):
    """A size at which each other variant is so many times as fast; None: not known."""
    others = tuple(
        Capture(f"v{i}", notes=(Note(note, "as it says"),) if note else ())
        for i, _ in enumerate(ratios, start=1)
    )
    return Run((Capture("eager"), *others), size, speeds=(None, *map(speed, ratios)))


def speed(ratio):
    if ratio is None:
        return None
    if ratio == TIE:
        return Speed(1.001, 0.99, 1.01, TIE)
    return Speed(ratio, ratio * 0.99, ratio * 1.01, "faster" if ratio > 1 else "slower")


def found(*runs):
    (only,) = crossover.find(runs)
    return only


def from_low_high(*runs):
    only = found(*runs)
    about = only.last.about if only.last else None
    return about, only.low, only.high


def test_a_variant_that_is_faster_nowhere_has_no_crossing():
    only = found(run(100, 0.5), run(10_000, TIE))
    assert (only.holds, only.crossings, only.low, only.high) == ("none", (), None, None)


def test_one_that_is_faster_everywhere_is_so_from_the_smallest_size_that_was_timed():
    only = found(run(100, 1.5), run(10_000, 2.0))
    assert (only.holds, only.crossings, only.low, only.high) == ("all", (), None, 100)


def test_one_crossing_is_placed_where_the_line_through_the_logarithms_is_at_1():
    # Half as fast at 1e2 and twice as fast at 1e4: the middle is 1e3, on a logarithmic scale.
    about, low, high = from_low_high(run(100, 0.5), run(10_000, 2.0))
    assert about == pytest.approx(1000)
    assert (low, high) == (100, 10_000)
    assert found(run(100, 0.5), run(10_000, 2.0)).holds == "from"
    about, *_ = from_low_high(run(100, 0.5), run(10_000, 8.0))
    assert about == pytest.approx(10 ** (2 + 2 / 4))


def test_next_to_no_difference_it_is_known_only_in_between():
    rows = run(100, 0.5), run(1000, TIE), run(10_000, 2.0)
    assert from_low_high(*rows) == (None, 1000, 10_000)
    assert found(*rows).holds == "from"


def test_what_is_faster_up_to_a_size_is_not_faster_from_one_on():
    only = found(run(100, 2.0), run(10_000, 0.5), run(1_000_000, 0.5))
    assert (only.holds, only.last, only.low, only.high) == ("until", None, None, None)
    (crossing,) = only.crossings
    assert (crossing.low, crossing.high) == (100, 10_000)
    assert crossing.about == pytest.approx(1000)


def test_of_several_crossings_the_last_is_the_one_from_which_on_it_is_always_faster():
    rows = run(100, 2.0), run(1000, 0.5), run(10_000, 0.9), run(100_000, 1.5)
    assert found(*rows).holds == "some"
    assert len(found(*rows).crossings) == 2
    about, low, high = from_low_high(*rows)
    assert (low, high) == (10_000, 100_000)
    assert low < about < high


def test_a_size_without_a_time_is_no_verdict_and_is_named():
    lost = Run((Capture("eager"), Unmeasured("v1", "out of memory")), 1000, speeds=(None, None))
    only = found(run(100, 0.5), lost, run(10_000, 2.0))
    assert (only.sizes, only.unknown, only.low, only.high) == ((100, 10_000), (1000,), 100, 10_000)
    assert found(run(100, 1.5), run(1000, None), run(10_000, 2.0)).unknown == (1000,)


@pytest.mark.parametrize("code", ["not-compiled", "recompile-limit", "memoised"])
def test_eager_code_under_another_name_is_not_faster_nor_is_a_result_kept_from_before(code):
    only = found(run(100, 0.5), run(1000, 2.0), run(10_000, 2.0, note=code))
    assert (only.unknown, only.sizes[-1], only.high) == ((10_000,), 1000, 1000)
    eager, other = run(10_000, 2.0).outcomes
    base = replace(eager, notes=(Note(code, "as it says"),))
    last = Run((base, other), 10_000, speeds=(None, speed(2.0)))
    assert found(run(100, 0.5), run(1000, 2.0), last) == only


def test_the_order_of_the_sizes_makes_no_difference():
    rows = [run(100, 0.5), run(1000, TIE), run(10_000, 2.0)]
    assert found(*reversed(rows)) == found(*rows)


def test_each_other_variant_has_its_own():
    first, second = crossover.find([run(100, 0.5, 2.0), run(1000, 2.0, 2.0)])
    assert [(c.variant, c.over, c.holds) for c in (first, second)] == [
        ("v1", "eager", "from"),
        ("v2", "eager", "all"),
    ]


def test_a_single_size_crosses_nothing():
    assert crossover.find([run(100, 2.0)]) == ()
    assert crossover.find([run(100, 2.0), run(1000, None)]) == ()
    assert crossover.find([run(None, 2.0)]) == ()
    assert crossover.find([]) == ()


def test_runs_that_nobody_timed_have_none():
    runs = [Run((Capture("eager"), Capture("compile")), size) for size in (1, 2)]
    assert crossover.find(runs) == ()


def test_a_size_of_none_has_no_logarithm():
    assert from_low_high(run(0, 0.5), run(100, 2.0)) == (None, 0, 100)
