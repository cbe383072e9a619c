"""What containers and objects hold is put back where a call has changed it, and told in order."""

from collections import Counter, OrderedDict, UserDict, defaultdict, deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy
import pytest
import torch

from kernelcount.contents import Contents, told
from kernelcount.state import UserState


class Object:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Slotted:
    __slots__ = ("r", "x")

    def __init__(self, x):
        self.x = x


class OwnDict(dict):
    def __setitem__(self, key, value):
        raise AssertionError("the user's own is not asked to put things back")


@dataclass(frozen=True)
class Frozen:
    held: list


X, Y = torch.ones(2), torch.zeros(2)


def _set(name, value):
    return lambda o: object.__setattr__(o, name, value)


CHANGES = {
    "item of a dict": ({"x": X}, lambda d: d.update(o=Y)),
    "item replaced": ({"x": X}, lambda d: d.update(x=Y)),
    "item deleted": ({"x": X}, lambda d: d.pop("x")),
    "plain value": ({"n": 3}, lambda d: d.update(n=4)),
    "of another type": ({"n": 1}, lambda d: d.update(n=True)),
    "appended": ([X], lambda v: v.append(Y)),
    "replaced in a list": ([X], lambda v: v.__setitem__(0, Y)),
    "emptied": ([X], lambda v: v.clear()),
    "in another order": ([X, Y], lambda v: v.reverse()),
    "set": ({1}, lambda s: s.add(2)),
    "deque": (deque([X], maxlen=4), lambda v: v.appendleft(Y)),
    "ordered": (OrderedDict(a=X, b=Y), lambda d: d.move_to_end("a")),
    "counter": (Counter("a"), lambda c: c.update("a")),
    "default": (defaultdict(list), lambda d: d["new"]),
    "own dict": (OwnDict(a=X), lambda d: dict.__setitem__(d, "a", Y)),
    "user dict": (UserDict(a=X), lambda d: d.update(b=Y)),
    "attribute": (Object(x=X), _set("r", Y)),
    "attribute replaced": (Object(x=X), _set("x", Y)),
    "attribute deleted": (Object(x=X), lambda o: delattr(o, "x")),
    "slot": (Slotted(X), _set("r", Y)),
    "slot deleted": (Slotted(X), lambda o: delattr(o, "x")),
    "namespace": (SimpleNamespace(x=X), _set("x", Y)),
    "of a tensor": (torch.ones(2), _set("scale", 2)),
    "inside a frozen one": (Frozen([X]), lambda f: f.held.append(Y)),
    "deep": ({"a": [({"b": Object(c=[X])},)]}, lambda d: d["a"][0][0]["b"].c.append(Y)),
    "bytes": (bytearray(b"ab"), lambda b: b.extend(b"c")),
    "array": (numpy.ones(2), lambda a: a.__imul__(2)),
    "array of structures": (numpy.zeros(2, [("a", "f4")]), lambda a: a["a"].fill(1)),
}


def _told(value):
    return [
        (name, leaf.tolist() if hasattr(leaf, "tolist") else leaf)
        for name, leaf in told([("it", value)], Contents(value))
    ]


@pytest.mark.parametrize(("value", "change"), CHANGES.values(), ids=CHANGES)
def test_what_a_call_puts_in_or_takes_out_is_seen_told_and_put_back(value, change):
    contents, before = Contents(value), _told(value)
    assert not contents.changed()
    for _ in range(2):
        change(value)
        assert contents.changed()
        assert repr(_told(value)) != repr(before)
        assert contents.restore()
        assert not contents.changed()
        assert repr(_told(value)) == repr(before)


@pytest.mark.parametrize(("value", "change"), CHANGES.values(), ids=CHANGES)
def test_and_a_call_begins_with_what_the_first_one_did(value, change):
    before = repr(_told(value))
    state = UserState(None, ((), {"given": value}), backward=False)
    _, lent = state.before_call()
    assert repr(_told(lent["given"])) == before
    assert not state.mutated
    change(lent["given"])
    state.look_at_contents()
    assert state.mutated
    _, lent = state.before_call()
    assert repr(_told(lent["given"])) == before
    change(lent["given"])
    state.restore()
    assert repr(_told(value)) == before


def test_tensors_behind_attributes_are_found_and_put_back():
    held = Object(x=torch.ones(2), more=[torch.ones(3)])
    state = UserState(None, ((held,), {}), backward=False)
    held.x.mul_(2)
    held.more[0].zero_()
    state.before_call()
    assert (held.x.tolist(), held.more[0].tolist()) == ([1, 1], [1, 1, 1])
    assert state.mutated


def test_the_order_in_which_keys_were_put_in_is_not_told():
    assert _told({"a": 1, "b": 2}) == _told({"b": 2, "a": 1})


def test_what_holds_itself_or_more_than_can_be_looked_at_is_no_trap():
    endless: list = [X]
    endless.append(endless)
    chain: list = []
    for _ in range(30_000):
        chain = [chain]
    wide = [[[Object(a=1)] * 100] * 100] * 100
    for value in (endless, chain, wide):
        assert len(_told(value)) < 30_000
        assert not Contents(value).changed()


def test_objects_that_refuse_everything_cost_nothing():
    class Hostile(dict):
        @property
        def __dict__(self):
            raise ValueError

        def __repr__(self):
            raise ValueError

    assert not Contents([Hostile(a=X)]).changed()
    assert len(_told([Hostile(a=X)])) == 3


def test_libraries_objects_and_modules_are_one_thing():
    value = [torch.nn.Linear(2, 2), torch.Generator(), len, torch.finfo(torch.half)]
    assert len(_told(value)) == 1
    assert Contents(value).tensors == []
