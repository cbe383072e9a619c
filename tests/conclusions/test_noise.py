"""Whether two series differ by more than noise."""

import random
from itertools import repeat

import pytest

from kernelcount.conclusions import noise


@pytest.fixture(scope="module")
def stats():
    """SciPy's, which takes a second to import."""
    from scipy import stats

    return stats


def normal(seed, n, centre=0.0, width=1.0):
    generator = random.Random(seed)
    return [generator.gauss(centre, width) for _ in range(n)]


@pytest.mark.parametrize("n", [8, 9, 20, 50])
@pytest.mark.parametrize("centre", [0.0, 0.4])
def test_for_few_differences_the_p_value_is_scipys_exact_one(stats, n, centre):
    differences = normal(n, n, centre)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert noise.significance(differences) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_for_many_it_is_the_normal_approximation_with_ties_corrected(stats, ties):
    differences = [round(d, 1) if ties else d for d in normal(3, 200, 0.2)]
    expected = stats.wilcoxon(differences, correction=False, method="asymptotic").pvalue
    assert noise.significance(differences) == pytest.approx(expected, rel=1e-6)


def test_nothing_but_zeros_differs_in_nothing():
    assert noise.significance([0.0] * 20) == 1.0


def test_the_interval_of_the_median_holds_it_as_often_as_it_says():
    held = 0
    for seed in range(1000):
        low, high = noise.interval(normal(seed, 40))
        held += low <= 0 <= high
    assert held >= 980


def test_the_interval_takes_the_ranks_of_the_binomial_distribution(stats):
    expected = stats.binom.ppf(0.005, 100, 0.5)
    assert noise.interval(range(100))[0] == expected - 1


@pytest.mark.parametrize("n", [0, 1, 7])
def test_from_too_few_samples_nothing_is_told(n):
    assert noise.interval([1.0] * n) is None
    assert noise.half_width([1.0] * n) is None
    assert noise.differ([1.0] * n, [2.0] * n) is None


def test_eight_samples_that_all_agree_are_enough():
    assert noise.differ([1.0] * 8, [1.5] * 8) is True


def test_equals_are_hardly_ever_told_apart():
    found = [
        noise.differ(normal(seed, 40, 100.0, 3.0), normal(seed + 10_000, 40, 100.0, 3.0))
        for seed in range(200)
    ]
    assert found.count(True) <= 4


def test_a_difference_below_the_precision_is_none_however_often_it_is_seen():
    assert noise.differ([100.0] * 200, [100.9] * 200) is False
    assert noise.differ([100.0] * 200, [101.1] * 200) is True


def test_what_slows_both_down_for_a_while_hides_no_difference():
    weather = [1.0 if i % 10 < 5 else 3.0 for i in range(40)]
    assert noise.differ(weather, [w * 1.05 for w in weather]) is True


def test_series_of_different_lengths_are_no_pairs():
    with pytest.raises(ValueError, match="shorter"):
        noise.differ([1.0] * 9, list(repeat(1.0, 8)))


@pytest.mark.parametrize(
    ("after", "same"), [(100, True), (106.9, True), (107, False), (93.5, True), (93.4, False)]
)
def test_times_are_told_apart_from_seven_percent_of_the_shorter_on(after, same):
    assert noise.same_time(100, after) is same
    assert noise.same_time(after, 100) is same
    assert noise.same_time(0, 0)
