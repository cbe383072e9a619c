"""How many elements accesses reach together."""

from itertools import product
from random import Random

from kernelcount.paper.boxes import box, reached


def addresses(start, sides):
    steps = (range(n) for _, n in sides)
    return {
        start + sum(i * stride for i, (stride, _) in zip(at, sides, strict=True))
        for at in product(*steps)
    }


def test_no_regular_access_is_taken_for_less_than_it_reaches():
    random = Random(0)
    right = 0
    for _ in range(2000):
        given = [
            (
                random.randrange(30),
                [
                    (random.choice([1, 1, 2, 3, 4, 8, 12, 24, 0, -1, -4]), random.randrange(1, 7))
                    for _ in range(random.randrange(4))
                ],
            )
            for _ in range(random.randrange(1, 4))
        ]
        really = len(set().union(*(addresses(*one) for one in given)))
        found = reached(box(*one) for one in given)
        assert found >= really, given
        right += found == really
    assert right > 1400  # the others overlap in no order


def test_what_two_slices_share_counts_once():
    assert reached([box(0, [(1, 10)]), box(5, [(1, 10)])]) == 15
    assert reached([box(0, [(1, 999)]), box(1, [(1, 999)])]) == 1000
    assert reached([box(0, [(2, 50)]), box(1, [(2, 50)])]) == 100


def test_the_halves_of_each_head_are_in_the_row_that_holds_them():
    row = box(0, [(12288, 5), (1, 4096)])
    halves = [box(start, [(12288, 5), (128, 32), (1, 64)]) for start in (0, 64)]
    assert reached([row, *halves]) == reached(halves) == 5 * 4096


def test_windows_that_overlap_are_read_once():
    assert reached([box(0, [(1, 997), (1, 4)])]) == 1000
    assert reached([box(0, [(2, 10), (1, 3)])]) == 21


def test_a_loop_that_runs_backwards_reaches_what_one_forwards_does():
    assert reached([box(9, [(-1, 10)]), box(0, [(1, 10)])]) == 10
