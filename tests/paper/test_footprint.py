"""How much memory views have together, and how many elements accesses reach."""

from itertools import product
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcount.paper import footprint as counting
from kernelcount.paper.footprint import (
    bytes_together,
    distinct_bytes,
    footprint,
    places_together,
)


def on_gpu(*shape, dtype=torch.float32):
    return torch.empty(shape, device="meta", dtype=dtype)


@pytest.mark.parametrize(
    ("view", "elements"),
    [
        (lambda x: x, 1200),
        (lambda x: x.t(), 1200),
        (lambda x: x[:, 3:7], 120),
        (lambda x: x[::2, ::2], 300),
        (lambda x: x[:1].expand(30, 40), 40),
        (lambda x: x[:0], 0),
        (lambda x: x.view(-1).unfold(0, 4, 1), 1200),
        (lambda x: x.view(-1).unfold(0, 4, 6), 800),
        (lambda x: x.unfold(0, 3, 1).unfold(1, 3, 1), 1200),
        (lambda x: x[:, :10].unfold(0, 3, 1).unfold(1, 3, 1), 300),
        (lambda x: x.as_strided((10, 900), (10, 1)), 990),
        (lambda x: x[0, 0], 1),
    ],
)
def test_a_view_has_each_element_once_however_often_it_leads_there(view, elements):
    assert distinct_bytes(view(on_gpu(30, 40))) == 4 * elements


@pytest.mark.parametrize(
    ("views", "elements"),
    [
        (lambda x: [x, x], 1200),
        (lambda x: [x, x.t()], 1200),
        (lambda x: [x, x[3:5, ::2]], 1200),
        (lambda x: [x[1:], x[:-1]], 1200),
        (lambda x: [x[:, 1:], x[:, :-1]], 1200),
        (lambda x: [x[:, 2:], x[:, 1:-1], x[:, :-2]], 1200),
        (lambda x: [x[2:, 2:], x[2:, :-2], x[:-2, 2:], x[:-2, :-2]], 1200),
        (lambda x: [x[1:-1, 1:-1], x[:-2, 1:-1], x[1:-1, :-2]], 28 * 38 + 38 + 28),
        (lambda x: x.chunk(4, 1), 1200),
        (lambda x: list(x[:, :20].split(1)), 600),
        (lambda x: [x[::2], x[1::2]], 1200),
        (lambda x: [x[:, ::2], x[:, 2:4]], 630),
        (lambda x: [x[:10], x[:, :4]], 10 * 40 + 20 * 4),
        (lambda x: [x, on_gpu(5)], 1205),
        (lambda x: [x[:0], x[0]], 40),
        (lambda x: [x.view(-1)[5:130], x[:, ::2]], 125 + 600 - 62),
        (lambda x: [x.view(-1)[1:-1], x[:, 0], x[:, -1]], 1200),
        (lambda x: [x.view(-1)[:100:2], x.view(-1)[100::3]], 50 + 367),
        (lambda x: [x[i : 26 + i, j : 36 + j] for i in range(5) for j in range(5)], 1200),
    ],
)
def test_views_of_one_array_have_together_what_is_in_any_of_them(views, elements):
    assert bytes_together(views(on_gpu(30, 40))) == 4 * elements


def test_views_of_other_dtypes_are_told_apart_by_their_bytes():
    x = on_gpu(10, dtype=torch.complex64)
    parts = torch.view_as_real(x)
    assert bytes_together([x, parts]) == 80
    assert bytes_together([parts[:, 0], parts[:, 1]]) == 80
    assert bytes_together([x, parts[:, 0]]) == 80


def test_views_that_are_woven_count_each_by_itself_and_no_more_than_lies_between_their_ends():
    x = on_gpu(600)
    assert bytes_together([x[::2], x[::3]]) == 4 * (300 + 200)
    assert bytes_together([x[::2], x[::3], x[1::3]]) == 4 * 599
    assert bytes_together([x[:300:2], x[:300:3], x[300:]]) == 4 * (150 + 100 + 300)
    assert distinct_bytes(x.as_strided((100, 2), (2, 3))) == 4 * 200


def reached(*accesses):
    return places_together(footprint(start, steps) for start, steps in accesses)


def test_what_two_slices_share_counts_once():
    assert reached((0, [(1, 10)]), (5, [(1, 10)])) == 15
    assert reached((0, [(1, 999)]), (1, [(1, 999)])) == 1000
    assert reached((0, [(2, 50)]), (1, [(2, 50)])) == 100


def test_the_halves_of_each_head_are_in_the_row_that_holds_them():
    row = (0, [(12288, 5), (1, 4096)])
    halves = [(start, [(12288, 5), (128, 32), (1, 64)]) for start in (0, 64)]
    assert reached(row, *halves) == reached(*halves) == 5 * 4096


def test_windows_that_overlap_are_read_once():
    assert reached((0, [(1, 997), (1, 4)])) == 1000
    assert reached((0, [(2, 10), (1, 3)])) == 21


def test_a_loop_that_runs_backwards_reaches_what_one_forwards_does():
    assert reached((9, [(-1, 10)]), (0, [(1, 10)])) == 10


def test_a_loop_that_never_runs_reaches_nothing():
    assert reached((3, [(1, 0), (8, 4)])) == 0
    assert reached((3, [(1, 0)]), (0, [(1, 5)])) == 5


def test_a_thousand_parts_that_lie_in_each_other_s_rows_are_told_apart():
    columns = [(3 * i, [(4096, 4000), (1, 2)]) for i in range(1000)]
    assert reached(*columns) == 4000 * 2000
    assert reached(*columns, (0, [(4096, 4000), (1, 3000)])) == 4000 * 3000


def test_what_would_take_too_long_to_tell_apart_counts_each_by_itself(monkeypatch):
    crossing = [(40 * i, [(1, 30)]) for i in range(0, 40, 2)] + [(i, [(40, 40)]) for i in range(20)]
    assert reached(*crossing) == 20 * 30 + 20 * 40 - 20 * 20
    monkeypatch.setattr(counting, "_MOST_LOOKS", 20)
    assert reached(*crossing) == 20 * 30 + 20 * 40


def addresses(start, steps):
    ways = product(*([i * stride for i in range(n)] for stride, n in steps))
    return {start + sum(way) for way in ways}


def accesses(*strides):
    step = st.tuples(st.sampled_from([sign * s for s in strides for sign in (1, -1)]), sizes)
    steps = st.lists(step, max_size=3)
    return st.lists(st.tuples(st.integers(0, 60), steps), min_size=1, max_size=5)


sizes = st.integers(0, 7)


@given(
    accesses(0, 1, 2, 4, 12, 24) | accesses(1, 5, 10, 40) | accesses(1, 7, 28) | accesses(3, 9, 36)
)
@settings(max_examples=200, deadline=None)
def test_it_is_just_what_is_there_where_each_stride_is_a_multiple_of_the_narrower_ones(chosen):
    assert reached(*chosen) == len(set().union(*(addresses(*one) for one in chosen)))


@given(accesses(0, 1, 2, 3, 4, 6, 7, 8, 12, 24))
@settings(max_examples=200, deadline=None)
def test_however_woven_it_is_no_less_than_is_there_and_no_more_than_could_be(chosen):
    sets = [addresses(*one) for one in chosen]
    every = set().union(*sets)
    ends = max(every) - min(every) + 1 if every else 0
    ways = sum(len(list(product(*(range(n) for _, n in steps)))) for _, steps in chosen)
    assert len(every) <= reached(*chosen) <= min(ways, ends)


@given(accesses(1, 2, 3, 4, 8, 12), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_it_depends_on_no_order(chosen, random):
    turned = [(start, random.sample(steps, len(steps))) for start, steps in chosen]
    assert reached(*random.sample(turned, len(turned))) == reached(*chosen)


def test_most_accesses_are_counted_just_as_they_are():
    random, exact = Random(0), 0
    for _ in range(2000):
        chosen = [
            (
                random.randrange(30),
                [
                    (random.choice([1, 1, 2, 3, 4, 8, 12, 24, 0, -1, -4]), random.randrange(1, 7))
                    for _ in range(random.randrange(4))
                ],
            )
            for _ in range(random.randrange(1, 4))
        ]
        exact += reached(*chosen) == len(set().union(*(addresses(*one) for one in chosen)))
    assert exact > 1800  # the others overlap in no order


def places(tensor):
    steps = [(4 * s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    return addresses(4 * tensor.storage_offset(), [*steps, (1, 4)])


def any_view(x, random):
    for _ in range(random.randint(0, 3)):
        dim = random.randrange(x.dim())
        match random.randrange(4):
            case 0:
                x = x.transpose(dim, 0)
            case 1 if x.shape[dim] > 1:
                x = x.narrow(dim, random.randrange(2), x.shape[dim] - 1)
            case 2:
                x = x[(slice(None),) * dim + (slice(None, None, 2),)]
            case 3 if x.shape[-1] > 2:
                x = x.unfold(-1, 2, random.randint(1, 2))
    return x


def test_views_have_never_less_than_is_there_and_mostly_just_that():
    random, exact = Random(7), 0
    for _ in range(500):
        x = on_gpu(*random.choice([(24,), (4, 6), (2, 3, 4)]))
        views = [any_view(x, random) for _ in range(random.randint(1, 3))]
        found, there = bytes_together(views), len(set().union(*map(places, views)))
        assert found >= there, [(v.shape, v.stride(), v.storage_offset()) for v in views]
        exact += found == there
    assert exact > 490
