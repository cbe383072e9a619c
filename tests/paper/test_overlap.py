"""How much memory views have together."""

import random

import pytest
import torch

from kernelcount.paper.overlap import bytes_together, distinct_bytes


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
    assert distinct_bytes(x.as_strided((100, 2), (2, 3))) == 4 * 200


def _bytes(tensor):
    places = torch.tensor([tensor.storage_offset()])
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = (places[:, None] + torch.arange(n) * stride).reshape(-1)
    return {4 * i + byte for i in places.tolist() for byte in range(4)}


def _any_view(x, draw):
    for _ in range(draw.randint(0, 3)):
        dim = draw.randrange(x.dim())
        match draw.randrange(4):
            case 0:
                x = x.transpose(dim, 0)
            case 1 if x.shape[dim] > 1:
                x = x.narrow(dim, draw.randrange(2), x.shape[dim] - 1)
            case 2:
                x = x[(slice(None),) * dim + (slice(None, None, 2),)]
            case 3 if x.shape[-1] > 2:
                x = x.unfold(-1, 2, draw.randint(1, 2))
    return x


def test_it_is_never_below_what_is_there_and_mostly_just_that():
    draw = random.Random(7)
    exact = 0
    for _ in range(500):
        x = on_gpu(*draw.choice([(24,), (4, 6), (2, 3, 4)]))
        views = [_any_view(x, draw) for _ in range(draw.randint(1, 3))]
        found, there = bytes_together(views), len(set().union(*map(_bytes, views)))
        assert found >= there, [(v.shape, v.stride(), v.storage_offset()) for v in views]
        exact += found == there
    assert exact > 400
