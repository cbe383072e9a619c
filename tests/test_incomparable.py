"""Whatever is wrong with copies and comparisons of results, times stay, and a reason is given."""

from collections import OrderedDict

import numpy
import pytest
import torch

import kernelcount
from kernelcount import together
from kernelcount.probes import agreement, kept

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
    monkeypatch.setattr(together, "alone", lambda *_: 1 // 0)
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
