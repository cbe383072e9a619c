"""What a function of the caller's reaches: taken to a device and back. Meta stands for a GPU."""

import functools
from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.inhand import Arguments, Carried, InHand, named
from kernelcount.model import Capture, Environment, Unmeasured

Pair = namedtuple("Pair", "a b")
EVERYWHERE = torch.ones(2)


@dataclass(frozen=True)
class Batch:
    x: object


def ones():
    return torch.ones(2)


def devices(values):
    return {str(v.device) for v in values}


@pytest.fixture
def carried():
    """Carry values to meta; what they are there, and all back at the end."""
    made = []

    def to_meta(*values):
        made.append(Carried(values))
        made[-1].to("meta")
        return [made[-1].here(v) for v in values]

    to_meta.back = lambda: [c.back() for c in made]
    yield to_meta
    to_meta.back()


def test_containers_of_all_kinds_are_carried_and_are_as_they_were(carried):
    values = [
        [ones()], {"x": ones()}, (ones(), [ones()]), Pair(ones(), 1), OrderedDict(x=ones()),
        UserDict(x=ones()), Batch(ones()), Batch({"deep": [(ones(),)]}),
    ]  # fmt: skip
    get = [
        lambda v: v[0], lambda v: v["x"], lambda v: v[1][0], lambda v: v.a, lambda v: v["x"],
        lambda v: v["x"], lambda v: v.x, lambda v: v.x["deep"][0][0],
    ]  # fmt: skip
    before = [g(v) for g, v in zip(get, values, strict=True)]
    there = carried(*values)
    assert devices(g(v) for g, v in zip(get, there, strict=True)) == {"meta"}
    assert [type(v) for v in there] == [type(v) for v in values]
    carried.back()
    after = [g(v) for g, v in zip(get, values, strict=True)]
    assert all(a is b for a, b in zip(after, before, strict=True))


def test_closures_globals_and_defaults_are_carried_and_are_as_they_were(carried):
    closed, of_partial, default = ones(), ones(), ones()

    def inner(x=default, *, y=default):
        return [closed, EVERYWHERE, x, y]

    def outer(z):
        return [*inner(), z]

    function = functools.partial(outer, of_partial)
    before = function()
    (there,) = carried(function)
    assert devices(there()) == {"meta"}
    carried.back()
    assert all(a is b for a, b in zip(function(), before, strict=True))


def test_one_tensor_stays_one_and_a_parameter_a_parameter_with_its_gradient(carried):
    linear = torch.nn.Linear(2, 2)
    tied = torch.nn.Linear(2, 2)
    tied.weight = linear.weight
    linear.weight.grad = torch.ones(2, 2)
    optimizer = torch.optim.Adam(linear.parameters())
    optimizer.step()
    weight, state = linear.weight, optimizer.state[linear.weight]
    carried(linear, tied, optimizer)
    assert linear.weight is tied.weight is optimizer.param_groups[0]["params"][0]
    assert isinstance(linear.weight, torch.nn.Parameter)
    assert devices([linear.weight, linear.weight.grad]) == {"meta"}
    moved = optimizer.state[linear.weight]
    assert devices([moved["exp_avg"]]) == {"meta"}
    assert devices([moved["step"]]) == {"cpu"}
    carried.back()
    assert linear.weight is tied.weight is weight
    assert optimizer.state[weight] is state


def test_where_something_is_on_a_device_already_nothing_is_moved():
    here, there = ones(), torch.ones(2, device="meta")
    both = Carried([here, there])
    both.to("meta")
    assert both.here(here) is here
    assert both.placed
    assert not both.moved


def test_what_holds_itself_comes_to_an_end(carried):
    loop = [ones()]
    loop.append(loop)
    (there,) = carried(loop)
    assert devices(there[:1]) == {"meta"}


def test_arguments_made_again_are_equal_and_at_other_addresses():
    x = torch.rand(3, requires_grad=True)
    hand = InHand(torch.sin, Arguments(([x],), {"k": x}))
    hand.carry("cpu")
    first, second = (hand.arguments(again=again) for again in (False, True))
    assert first.args[0][0] is x
    for copy in (second.args[0][0], second.kwargs["k"]):
        assert torch.equal(copy, x)
        assert copy.requires_grad
        assert copy.data_ptr() != x.data_ptr()


def test_a_zero_is_believed_only_of_what_was_given_something_on_the_device():
    zero = Capture("eager", Environment(kind="cuda"))
    given = Arguments((ones(),))
    hand = InHand(torch.sin, given)
    assert isinstance(hand.proven(zero, given), Unmeasured)
    hand.carry("meta")
    assert hand.proven(zero, hand.arguments(again=False)) is zero
    closed = ones()
    of_closure = InHand(lambda: closed)
    of_closure.carry("meta")
    assert "only remembered" in of_closure.proven(zero, Arguments()).reason
    made = InHand(torch.sin)
    assert made.proven(zero, given) is zero
    on_cpu = Capture("eager", Environment(kind="cpu"))
    assert hand.proven(on_cpu, given) is on_cpu
    of_closure.back()


def test_only_torchs_word_of_two_devices_is_explained_and_only_where_something_was_moved():
    error = RuntimeError("Expected all tensors to be on the same device, but found two")
    hand = InHand(torch.sin, Arguments((ones(),)))
    hand.carry("cpu")
    assert hand.explained(error) is error
    hand = InHand(torch.sin, Arguments((ones(),)))
    hand.carry("meta")
    assert isinstance(hand.explained(error), NotMeasuredError)
    assert hand.explained(error).__cause__ is error
    other = RuntimeError("mine")
    assert hand.explained(other) is other


def test_functions_are_named_by_their_module():
    assert named(ones) == "test_inhand:ones"
    assert named(functools.partial(ones)) == "test_inhand:ones"
    assert named(Batch) == "test_inhand:Batch"
    assert named(torch.nn.ReLU()) == "torch.nn.modules.activation:ReLU"
    assert (
        named(torch.compile(torch.nn.ReLU(), backend="eager")) == "torch.nn.modules.activation:ReLU"
    )
    assert named(lambda: 0) == "test_inhand:<lambda>"
