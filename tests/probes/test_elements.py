"""How far numbers are apart, as a part of the first of them."""

import json

import pytest
import torch

from kernelcount.probes import elements
from kernelcount.probes.elements import pair
from kernelcount.probes.kept import Results
from kernelcount.probes.numerics import compare
from kernelcount.probes.reference import ZERO, judged

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_a_distance_is_a_part_of_the_first_number(dtype):
    found = pair(torch.tensor([100, 3], dtype=dtype), torch.tensor([101, 3], dtype=dtype))
    assert (found.absolute, found.relative) == (1.0, 0.01)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, torch.complex64, torch.bool])
def test_no_distance_from_zero_is_a_part_of_it(dtype):
    one, other = torch.tensor([0, 1], dtype=dtype), torch.tensor([1, 1], dtype=dtype)
    assert pair(one, other).relative is None
    assert pair(other, one).relative == 1.0


def test_a_zero_that_agrees_is_no_hindrance():
    one, other = torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0])
    assert pair(one, other).relative == 0.5
    assert pair(one, one).relative == 0.0


def test_large_integers_are_compared_to_the_last_digit():
    one = torch.tensor([2**60, -(2**63)])
    assert pair(one, one + 1).relative == 2.0**-60
    assert pair(one[1:], one[1:] + 1).relative == 2.0**-63


def test_negative_numbers_have_a_size():
    assert pair(torch.tensor([-100]), torch.tensor([-101])).relative == 0.01
    assert pair(torch.tensor([-4.0]), torch.tensor([4.0])).relative == 2.0


def test_what_one_piece_does_not_know_the_whole_does_not(monkeypatch):
    monkeypatch.setattr(elements, "PIECE", 1)
    assert pair(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.5])).relative is None
    assert pair(torch.tensor([2.0, 1.0]), torch.tensor([3.0, 1.25])).relative == 0.5


def test_what_is_past_all_floats_is_not_known():
    one, other = torch.tensor([1e-300]).double(), torch.tensor([1e300], dtype=torch.float64)
    one.fill_(1e-300)
    assert pair(one, other).relative is None


def test_what_one_tensor_does_not_know_the_results_do_not():
    one, other = torch.tensor([100]), torch.tensor([101])
    zero = torch.tensor([0.0])
    assert compare(Results((one,)), Results((other,))).numerics.max_rel == 0.01
    assert compare(Results((one, zero)), Results((other, zero + 1))).numerics.max_rel is None


def test_an_error_is_no_part_of_a_truth_that_is_zero():
    zero, one = torch.zeros(2), torch.full((2,), 1e-4)
    first, own, exact = Results((zero,)), Results((one,)), Results((zero.double(),))
    said = judged(compare(first, own), exact, first, own)
    assert (said.verdict, said.error, said.base_error) == ("different", None, 0.0)
    assert ZERO in said.notes
    assert json.dumps(said.error, allow_nan=False) == "null"
    same = judged(compare(first, first), exact, first, first)
    assert (same.error, same.base_error, ZERO in same.notes) == (0.0, 0.0, False)


def test_nor_is_that_of_the_first_variant():
    zero, one = torch.zeros(2), torch.full((2,), 1e-4)
    first, own, exact = Results((one,)), Results((zero,)), Results((zero.double(),))
    said = judged(compare(first, own), exact, first, own)
    assert (said.error, said.base_error, ZERO in said.notes) == (0.0, None, True)
