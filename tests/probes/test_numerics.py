"""Whether results are the same, and how far they are apart where they are not."""

import copy
import enum
from collections import OrderedDict, deque
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest
import torch

from kernelcount.probes import elements, numerics
from kernelcount.probes.kept import Results, kept
from kernelcount.probes.randomness import fixed

NAN, INF = float("nan"), float("inf")


def t(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def compare(expected, got):
    return numerics.compare(Results(tuple(expected)), Results(tuple(got))).numerics


def compare_results(expected, got):
    return numerics.compare(expected, got).numerics


def verdict(one, other):
    return compare([one], [other]).verdict


def test_equal_results_are_equal_in_every_figure():
    found = compare([t(1.0, 2.0), t(1, dtype=torch.int64)], [t(1.0, 2.0), t(1, dtype=torch.int64)])
    assert (found.verdict, found.tensors, found.max_abs, found.ulps) == ("equal", 2, 0.0, 0)


def test_nothing_to_compare_is_no_pass():
    assert compare([], []).verdict == "nothing"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [1.0, -3.5, 0.1])
def test_a_neighbouring_number_is_one_ulp_away_and_close(dtype, value):
    one = t(value, dtype=dtype)
    other = torch.nextafter(one.float(), t(INF)).to(dtype) if dtype == torch.float32 else None
    if other is None:
        integer = {2: torch.int16, 8: torch.int64}[one.element_size()]
        other = (one.view(integer) + 1).view(dtype)
    found = compare([one], [other])
    assert (found.verdict, found.ulps) == ("close", 1)


def test_zero_of_either_sign_is_the_same_and_its_neighbours_are_two_apart():
    assert compare([t(0.0)], [t(-0.0)]).ulps == 0
    tiny = torch.nextafter(t(0.0), t(1.0))
    assert compare([tiny], [-tiny]).ulps == 2


@pytest.mark.parametrize("name", elements.TOLERANCES)
def test_tolerances_are_those_of_torch_testing(name):
    dtype = getattr(torch, name)
    relative, absolute = elements.TOLERANCES[name]
    one = torch.ones((), dtype=dtype) * 100
    for factor, close in ((0.5, True), (3.0, False)):
        other = one * (1 + factor * relative) + factor * absolute
        said = True
        try:
            torch.testing.assert_close(other, one)
        except AssertionError:
            said = False
        assert (verdict(one, other) != "different") == said == close


def test_nan_and_inf_in_the_same_places_pass_and_are_told():
    found = compare([t(NAN, INF, -INF, 1.0)], [t(NAN, INF, -INF, 1.0)])
    assert (found.verdict, found.notes) == ("equal", ("1 NaN in the same places",))


@pytest.mark.parametrize("other", [(1.0, INF), (NAN, 1.0), (NAN, -INF)])
def test_nan_and_inf_in_other_places_do_not(other):
    found = compare([t(NAN, INF)], [t(*other)])
    assert (found.verdict, found.notes) == (
        "different",
        ("the result: NaN or inf in other places",),
    )


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (t(1.0), t(1.0, 2.0), "the result: shape (2,) instead of (1,)"),
        (t(1.0), t(1.0, dtype=torch.float64), "the result: dtype float64 instead of float32"),
    ],
)
def test_another_shape_or_dtype_is_different_whatever_the_values(one, other, said):
    found = compare([one], [other])
    assert (found.verdict, found.notes) == ("different", (said,))


def test_more_results_than_before_are_different():
    assert compare([t(1.0)], [t(1.0), t(2.0)]).verdict == "different"


def test_another_layout_is_told_and_does_not_matter():
    one = torch.arange(6.0).view(2, 3)
    found = compare([one], [one.t().contiguous().t()])
    assert (found.verdict, found.notes) == (
        "equal",
        ("the result: strides (1, 2) instead of (3, 1)",),
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integers_and_booleans_must_be_equal(dtype):
    assert verdict(t(1, 0, dtype=dtype), t(1, 1, dtype=dtype)) == "different"


def test_complex_numbers_and_empty_tensors_are_compared():
    assert verdict(t(1 + 1j, dtype=torch.complex64), t(1 + 1j, dtype=torch.complex64)) == "equal"
    assert verdict(t(1 + 1j, dtype=torch.complex64), t(1 + 2j, dtype=torch.complex64)) != "equal"
    assert verdict(torch.empty(0), torch.empty(0)) == "equal"


@dataclass
class Result:
    y: torch.Tensor
    n: int


class Output(OrderedDict):
    pass


@pytest.mark.parametrize(
    "made",
    [
        lambda x: (x, [x]),
        lambda x: {"a": x, "b": {"c": (x, None)}},
        lambda x: [Result(x, 1), Result(x, 2)],
        lambda x: Output(logits=x, loss=x),
        lambda x: {"a": x, "b": x + 0}.items(),
    ],
    ids=["tuple", "dict", "dataclass", "OrderedDict", "items"],
)
def test_every_kind_of_result_is_walked(made):
    one, other = (kept(made(t(v)), ()) for v in (1.0, 2.0))
    assert len(one.tensors) == 2
    assert compare_results(one, other).verdict == "different"


def test_a_kept_result_is_a_copy_with_the_same_strides():
    x = torch.zeros(4, 4).t()[::2]
    (copy,) = kept(x, ()).tensors
    x += 1
    assert copy.stride() == x.stride()
    assert copy.sum() == 0


def test_a_sparse_result_is_compared_by_its_numbers():
    one, other = (kept(t(0.0, v).to_sparse(), ()) for v in (1.0, 2.0))
    assert compare_results(one, one).verdict == "equal"
    assert compare_results(one, other).verdict == "different"


def test_who_shares_memory_with_an_argument_is_noted():
    x = t(1.0, 2.0)
    view, copy = kept((x[:1], x + 1), x), kept((x[:1].clone(), x + 1), x)
    assert view.shared == (0,)
    assert compare_results(view, view).notes == ("result 1 shares memory with an argument",)
    (said,) = compare_results(view, copy).notes
    assert said == "result 1 shares memory with an argument in the first alone"
    (said,) = compare_results(copy, view).notes
    assert said == "result 1 shares memory with an argument here alone"


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        (2.5, 2.5, "nothing"),
        (2.5, 2.5 + 1e-6, "nothing"),
        (2.5, 2.6, "different"),
        (NAN, NAN, "nothing"),
        (NAN, 1.0, "different"),
        ([1, 2], [1], "different"),
        (1 + 1j, 1 + 2j, "different"),
        ("done", "done", "nothing"),
        ("done", "failed", "different"),
        (True, False, "different"),
        (True, 1, "different"),
        (None, "done", "different"),
    ],
)
def test_numbers_of_python_may_differ_but_are_no_tensors(one, other, verdict):
    found = compare_results(kept(one, ()), kept(other, ()))
    assert (found.verdict, found.tensors) == (verdict, 0)


def test_numbers_that_agree_are_told_of_and_are_no_pass():
    found = compare_results(Results((), (1.0, 2)), Results((), (1.0, 2)))
    assert found.verdict == "nothing"
    assert found.notes[-1] == "2 numbers of Python's agree"


def test_large_results_are_compared_piece_by_piece(monkeypatch):
    monkeypatch.setattr(elements, "PIECE", 7)
    one = torch.arange(60.0).reshape(3, 20).t()
    other = one.clone()
    other[19, 2] += 5
    other[0, 0] = one[0, 0] = NAN
    found = compare([one], [other])
    assert (found.verdict, found.max_abs, found.tensors) == ("different", 5.0, 1)
    assert "1 NaN in the same places" in found.notes
    assert compare([one], [one.clone()]).verdict == "equal"


def test_the_same_random_numbers_come_each_time_and_the_users_go_on_as_before():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    drawn = []
    for _ in range(2):
        with fixed(0) as draws:
            assert not draws()
            drawn.append(torch.rand(2))
            assert draws()
    assert torch.equal(*drawn)
    assert torch.equal(torch.rand(3), expected)


# ── what is no plain tensor of floats ────────────────────────────────────────────────────────────


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor


X = t(1.0, 2.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": X}, {"b": X}),
        ((X, 1), (X, 1.0)),
        ((X, numpy.ones(3)), (X, numpy.zeros(3))),
        ((X, numpy.ones(3)), (X, torch.ones(3).double())),
        ((X, Colour.RED), (X, Colour.BLUE)),
        ((X, torch.float32), (X, torch.float64)),
        ((X, torch.device("cpu")), (X, torch.device("meta"))),
        ((X, Decimal("1.1")), (X, Decimal("1.2"))),
        ((X, Fraction(1, 2)), (X, Fraction(1, 3))),
        ((X, range(3)), (X, range(4))),
        ((X, slice(3)), (X, slice(4))),
        ((X, int), (X, float)),
        ((X, bytearray(b"a")), (X, bytearray(b"b"))),
        ((X, deque([1])), (X, deque([2]))),
        ((X, Holder(X)), (X, None)),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_whatever_stands_beside_an_equal_tensor_is_compared(one, other):
    assert compare_results(kept(one, ()), kept(copy.deepcopy(one), ())).verdict == "equal"
    found = compare_results(kept(one, ()), kept(other, ()))
    assert found.verdict == "different"
    assert found.differs in ("numbers", "values", "count")


def test_what_cannot_be_compared_is_said():
    found = compare_results(kept((X, Holder(X)), ()), kept((X, Holder(X + 1)), ()))
    assert found.notes == ("1 value of type Holder cannot be compared",)


def test_mappings_are_held_against_each_other_by_their_keys():
    one, other = {"a": t(1.0), "b": t(2.0)}, {"b": t(2.0), "a": t(1.0)}
    assert compare_results(kept(one, ()), kept(other, ())).verdict == "equal"
    swapped = {"b": t(1.0), "a": t(2.0)}
    assert compare_results(kept(one, ()), kept(swapped, ())).verdict == "different"


def test_none_of_something_is_said_in_words():
    def said(one, other):
        return compare_results(kept(one, ()), kept(other, ())).notes[-1]

    assert said((X, 1), X) == "1 number in the first and none here"
    assert said(X, (X, "a")) == "1 plain value instead of none"
    assert said((X, X + 1), ()) == "2 tensors in the first and none here"


def test_a_deque_is_no_generator():
    found = compare_results(kept(deque([X]), ()), kept(deque([X]), ()))
    assert (found.verdict, found.tensors) == ("equal", 1)


def test_complex_numbers_have_nan_in_the_same_part():
    one, other = (t(complex(*parts), dtype=torch.complex64) for parts in ((1, NAN), (NAN, 1)))
    assert verdict(one, one) == "equal"
    assert verdict(one, other) == "different"
    assert verdict(one, t(complex(2, NAN), dtype=torch.complex64)) == "different"


def test_large_integers_are_one_apart():
    found = compare([t(2**60, dtype=torch.int64)], [t(2**60 + 1, dtype=torch.int64)])
    assert (found.verdict, found.max_abs) == ("different", 1.0)
    ends = (torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max)
    first, last = (t(end, dtype=torch.int64) for end in ends)
    assert compare([first], [last]).max_abs == 2.0**64


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_is_compared(dtype):
    one, other = t(1.0, 2.0).to(dtype), t(1.0, 3.0).to(dtype)
    assert verdict(one, one.clone()) == "equal"
    found = compare([one], [other])
    assert (found.verdict, found.max_abs) == ("different", 1.0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_compared_part_by_part():
    def nested(last):
        return torch.nested.nested_tensor([t(1.0), t(2.0, last)])

    assert compare_results(kept(nested(3.0), ()), kept(nested(3.0), ())).verdict == "equal"
    assert compare_results(kept(nested(3.0), ()), kept(nested(4.0), ())).verdict == "different"


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (X, X.to_sparse(), "the result: Tensor (sparse_coo) instead of Tensor"),
        (X, torch.nn.Parameter(X), "the result: Parameter that requires grad instead of Tensor"),
        (X, X.clone().requires_grad_(), "the result: Tensor that requires grad instead of Tensor"),
        ((X, X.clone()), (X, X), "result 2 shares memory with result 1 here alone"),
    ],
    ids=["sparse", "Parameter", "gradient", "shared"],
)
def test_another_kind_of_tensor_with_the_same_numbers_is_told(one, other, said):
    found = compare_results(kept(one, ()), kept(other, ()))
    assert (found.verdict, found.notes) == ("equal", (said,))
