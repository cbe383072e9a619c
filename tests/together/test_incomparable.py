"""Whatever is wrong with copies and comparisons of results, times stay, and a reason is given."""

import functools
from collections import OrderedDict
from dataclasses import dataclass
from types import SimpleNamespace

import numpy
import pytest
import torch

import kernelcount
from kernelcount.probes import agreement, kept
from kernelcount.together import comparing

pytestmark = pytest.mark.filterwarnings("ignore:.*quantize")


def compared(first, other, **options):
    """Another function beside the first, on the CPU: its numerics, times and notes."""
    found = kernelcount.compare(
        first,
        torch.arange(64.0),
        variants=["eager", other],
        device="cpu",
        seconds=0.01,
        **options,
    )
    assert found.exit_code == 0
    assert all(count.call_time_ns > 0 for count in found)
    return found[1].numerics


def quantized(scale):
    return lambda x: torch.quantize_per_tensor(x, scale, 0, torch.qint8)


def per_channel(scale):
    def f(x):
        scales, zeros = torch.tensor([scale] * 8), torch.zeros(8)
        return torch.quantize_per_channel(x.view(8, 8), scales, zeros, 0, torch.qint8)

    return f


SHARED = {
    "expanded": (lambda x: x[:1].expand(8), lambda x: x[:1].repeat(8)),
    "expanded twice": (lambda x: x.as_strided((4, 4), (0, 0)), lambda x: x[:1].repeat(4, 4)),
    "one row": (lambda x: x[:8].expand(4, 8), lambda x: x[:8].repeat(4, 1)),
    "windows": (lambda x: x.unfold(0, 4, 1), lambda x: x.unfold(0, 4, 1).clone()),
    "of nothing": (lambda x: x[:0].expand(3, 0), lambda x: x[:0].repeat(3, 1)),
    "quantized": (quantized(0.5), quantized(0.5)),
    "by channel": (per_channel(0.5), per_channel(0.5)),
}


@pytest.mark.parametrize(("first", "other"), SHARED.values(), ids=SHARED)
def test_results_whose_elements_share_a_place_and_quantized_ones_are_compared(first, other):
    assert compared(first, other).verdict == "equal"
    assert compared(other, first).verdict == "equal"


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (lambda x: x[:1].expand(8), lambda x: x[1:2].expand(8)),
        (lambda x: x.unfold(0, 4, 1), lambda x: x.unfold(0, 4, 1) + 1),
        (quantized(0.5), quantized(0.25)),
        (per_channel(0.5), per_channel(0.25)),
    ],
)
def test_and_are_different_where_they_are(first, other):
    assert compared(first, other).verdict == "different"


class Hostile:
    def __eq__(self, other):
        raise KeyError(1)

    __hash__ = None

    def __repr__(self):
        raise AssertionError


class HostileMapping(OrderedDict):
    def values(self):
        raise AttributeError("of the user's own")

    def __iter__(self):
        raise AttributeError("of the user's own")


@pytest.mark.parametrize("beside_it", [None, 1])
@pytest.mark.parametrize("make", [Hostile, HostileMapping], ids=lambda c: c.__name__)
def test_values_that_raise_whatever_is_asked_of_them_cost_no_times(make, beside_it):
    found = compared(lambda x: (x, make(), beside_it), lambda x: (x, make(), beside_it))
    assert any("cannot be compared" in note for note in found.notes)


ERRORS = [RuntimeError, AssertionError, KeyError, IndexError, ZeroDivisionError, OverflowError]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("place", "name"), [(kept, "_copy"), (agreement, "compare")])
def test_whatever_fails_in_copying_and_comparing_leaves_the_times(monkeypatch, error, place, name):
    def fails(*_):
        raise error("of our own")

    monkeypatch.setattr(place, name, fails)
    found = compared(lambda x: x + 1, lambda x: x + 2)
    assert found.verdict == "unknown"
    assert found.notes[0].startswith("cannot be compared: ")


def test_in_the_reference_as_well(monkeypatch):
    monkeypatch.setattr(comparing, "alone", lambda *_: 1 // 0)
    assert compared(lambda x: x + 1, lambda x: x + 1, reference=True).verdict == "equal"


def test_what_a_function_raises_is_its_own_and_costs_it_its_times():
    calls = []

    def other(x):
        calls.append(x)
        if len(calls) == 8:
            raise KeyError("of the user's own")
        return x + 1

    for raises in range(2, 9):
        calls[:] = [None] * (8 - raises)
        try:
            found = kernelcount.compare(
                lambda x: x + 1,
                torch.ones(4),
                variants=["eager", other],
                device="cpu",
                seconds=0.01,
            )
        except KeyError:
            continue
        said = [n.detail for n in found[1].notes if n.code == "not-timed"]
        assert said == ['not timed: raised KeyError: "of the user\'s own"']


def test_arrays_of_numpys_that_are_no_tensors_are_compared_as_they_are():
    texts = [lambda x, t=t: (x, numpy.array([t])) for t in ("a", "a", "b")]
    assert compared(texts[0], texts[1]).verdict == "equal"
    assert compared(texts[0], texts[2]).verdict == "different"


# ── what else functions give ─────────────────────────────────────────────────────────────────────


@dataclass
class Output:
    loss: torch.Tensor
    more: object = None


def masked(mask, *, behind=2.0):
    return lambda x: (x, numpy.ma.array([1.0, behind], mask=mask))


ALIKE = {
    "None": (lambda x: (x, None), lambda x: (x, None)),
    "None in a dataclass": (lambda x: Output(x, None), lambda x: Output(x, None)),
    "ellipsis": (lambda x: (x, ...), lambda x: (x, ...)),
    "masked": (masked([0, 1]), masked([0, 1])),
    "behind the mask": (masked([0, 1]), masked([0, 1], behind=7.0)),
    "texts": (lambda x: (x, numpy.array(["a", "b"])),) * 2,
    "dates": (lambda x: (x, numpy.array(["2020-01-01", "2021-01-01"], "M8[D]")),) * 2,
}


@pytest.mark.parametrize(("first", "other"), ALIKE.values(), ids=ALIKE)
def test_what_is_the_same_is_equal_without_a_word(first, other):
    found = compared(first, other)
    assert found.verdict == "equal"
    assert not [note for note in found.notes if "compared" in note]


UNLIKE = {
    "None": (lambda x: (x, None), lambda x: (x, 1)),
    "mask": (masked([0, 1]), masked([1, 0])),
    "namespace": (lambda x: (x, SimpleNamespace(a=x)), lambda x: (x, SimpleNamespace(a=x + 5))),
    "its names": (lambda x: SimpleNamespace(a=x), lambda x: SimpleNamespace(b=x)),
    "objects": (
        lambda x: (x, numpy.array([x, None], dtype=object)),
        lambda x: (x, numpy.array([x + 5, None], dtype=object)),
    ),
    "texts": (
        lambda x: (x, numpy.array(["a", "b"])),
        lambda x: (x, numpy.array(["a", "c"])),
    ),
}


@pytest.mark.parametrize(("first", "other"), UNLIKE.values(), ids=UNLIKE)
def test_what_is_not_is_different(first, other):
    assert compared(first, other).verdict == "different"


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (lambda x: (x, x + 1), lambda x: [[x], x + 1], "list instead of tuple"),
        (lambda x: x + 1, lambda x: (x + 1,), "tuple instead of Tensor"),
        (lambda x: {"a": x + 1}, lambda x: OrderedDict(a=x + 1), "OrderedDict instead of dict"),
        (lambda x: ([x], x), lambda x: ((x,), x), "tuple instead of list"),
    ],
)
def test_another_container_is_told(first, other, said):
    found = compared(first, other)
    assert found.verdict == "equal"
    assert said in found.notes


@pytest.mark.parametrize("first", [0, 1])
def test_a_remembered_result_has_a_reason_for_not_being_compared(first):
    @functools.cache
    def remembers(x):
        return x + 2

    functions = [remembers, lambda x: x + 3]
    found = kernelcount.compare(
        functions[first],
        torch.ones(4),
        variants=["eager", functions[1 - first], functions[1]],
        device="cpu",
        seconds=0.01,
    )
    why = "the first variant has no results" if first == 0 else "a result that is remembered is not"
    assert found[1].numerics.verdict == "unknown"
    assert found[1].numerics.notes[0].startswith(why)
    assert found[2].numerics.verdict == ("equal" if first else "unknown")
