"""What a call changes is compared as what it returns is: what it puts where, and what it leaves."""

import contextlib

import pytest
import torch

import kernelcount


class Object:
    pass


def of_object():
    made = Object()
    made.x = torch.ones(8)
    return made


def numerics(first, others, *args):
    """How the results of one function compare with those of others in its place, on the CPU."""
    found = kernelcount.compare(
        first, *args, variants=["eager", *others], device="cpu", seconds=0.01
    )
    return [count.numerics for count in [*found][1:]]


def put(k):
    def f(d):
        d["o"] = d["i"] * k
        return d["i"] + 1

    return f


def append(k):
    def f(values):
        values.append(values[0] * k)
        return values[0] + 1

    return f


def attribute(k):
    def f(o):
        o.r = o.x * k
        return o.x + 1

    return f


def of_tensor(k):
    def f(x):
        x.scale = k
        return x + 1

    return f


def behind(k):
    def f(o):
        o.x.mul_(k)
        return torch.ones(1)

    return f


def replace(k):
    def f(values):
        values[0] = values[0] * k
        return torch.ones(1)

    return f


def plain(k):
    def f(d):
        d["n"] = k
        return d["i"] + 1

    return f


def delete(k):
    def f(d):
        if k != 2:
            del d["i"]
        return torch.ones(1)

    return f


def in_set(k):
    def f(s, x):
        s.add(k)
        return x + 1

    return f


def nested(k):
    def f(d):
        d["a"][0].append(k)
        return torch.ones(1)

    return f


def table():
    return ({"i": torch.ones(8)},)


FILLS = {
    "item": (put, table),
    "appended": (append, lambda: ([torch.ones(8)],)),
    "attribute": (attribute, lambda: (of_object(),)),
    "attribute of a tensor": (of_tensor, lambda: (torch.ones(8),)),
    "tensor behind an attribute": (behind, lambda: (of_object(),)),
    "replaced": (replace, lambda: ([torch.ones(8)],)),
    "plain value": (plain, table),
    "deleted": (delete, table),
    "set": (in_set, lambda: (set(), torch.ones(8))),
    "nested": (nested, lambda: ({"a": ([],)},)),
}


@pytest.mark.parametrize(("make", "arguments"), FILLS.values(), ids=FILLS)
def test_what_a_call_puts_into_its_arguments_is_a_result(make, arguments):
    found = numerics(make(2), [make(2), make(3)], *arguments())
    for numbers, verdict in zip(found, ("equal", "different"), strict=True):
        assert numbers.verdict == verdict
        said = [note for note in numbers.notes if "argument 1" in note]
        assert bool(said) == (verdict == "different")


@pytest.mark.parametrize("which", [0, 1])
def test_also_where_one_of_two_leaves_them_alone(which):
    functions = [put(2), lambda d: d["i"] + 1]
    (found,) = numerics(functions[which], [functions[1 - which]], *table())
    assert (found.verdict, found.differs) == ("different", "count")
    assert "argument 1['o'] afterwards" in found.notes[0]


def test_a_list_that_is_filled_is_no_longer_in_the_next_call():
    lengths = set()

    def f(values):
        lengths.add(len(values))
        values.append(values[0] * 2)
        return values[0] + 1

    given = [torch.ones(8)]
    found = kernelcount.compare(f, given, variants=["eager"], device="cpu", seconds=0.02)
    assert lengths == {1}
    assert len(given) == 1
    assert any(note.code == "mutates-arguments" for note in found[0].notes)


# ── shape, strides, storage ──────────────────────────────────────────────────────────────────────

MOVES = {
    "t_": lambda x: x.t_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "resize_": lambda x: x.resize_(3),
    "set_": lambda x: x.set_(torch.zeros(5)),
    "data": lambda x: setattr(x, "data", x.data + 1),
    "data of another dtype": lambda x: setattr(x, "data", x.data.double()),
    "storage resized": lambda x: x.untyped_storage().resize_(256),
    "behind its back": lambda x: x.data.mul_(2),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_change_of_shape_strides_dtype_or_storage_is_one(move):
    def changes(x):
        y = x.sum()
        move(x)
        return y

    def leaves(x):
        return x.sum()

    x = torch.arange(16.0).view(4, 4)
    beyond = move is MOVES["storage resized"]  # of the tensor itself nothing has changed
    unlike = "equal" if beyond else "different"
    assert [n.verdict for n in numerics(changes, [leaves, changes], x)] == [unlike, "equal"]
    assert [n.verdict for n in numerics(leaves, [changes], x)] == [unlike]
    assert x.tolist() == torch.arange(16.0).view(4, 4).tolist()
    assert (x.dtype, x.stride()) == (torch.float32, (4, 1))


def test_what_one_variant_does_to_an_argument_no_other_one_meets():
    shapes, values = set(), set()

    def changes(x):
        y = x.sum()
        x.mul_(2).resize_(3)
        return y

    def looks(x):
        shapes.add(tuple(x.shape))
        values.add(float(x.sum()))
        return x.sum()

    x = torch.arange(16.0).view(4, 4)
    kernelcount.compare(
        looks, x, variants=["eager", changes, looks], device="cpu", seconds=0.05, reference=True
    )
    assert (shapes, values) == ({(4, 4)}, {120.0})


@pytest.mark.parametrize("when", [1, 4, 9, 20])
def test_not_even_where_that_one_raises_halfway(when):
    seen, calls = set(), []

    def raises(x):
        x.mul_(2)
        calls.append(x)
        if len(calls) > 10 + when:
            raise ValueError
        return x

    def looks(x):
        seen.add(round(float(x.sum()), 3))
        return x * 2

    with contextlib.suppress(ValueError):
        kernelcount.compare(
            looks, torch.ones(4), variants=["eager", raises], device="cpu", seconds=0.01
        )
    assert seen == {4.0}


# ── what a module holds ──────────────────────────────────────────────────────────────────────────


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(()))
        self.register_buffer("none", None)
        self.w = torch.nn.Parameter(torch.ones(()))


class Outer(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.inner, self.change = Inner(), change

    def forward(self, x):
        self.change(self.inner, x)
        return x * 2


def average(k):
    def change(inner, x):
        inner.m = inner.m * 0.9 + x.mean() * k

    return change


def parameter(k):
    def change(inner, _):
        inner.w = torch.nn.Parameter(inner.w.detach() * k)

    return change


def once_none(k):
    def change(inner, x):
        inner.none = x * k

    return change


def to_none(k):
    def change(inner, _):
        inner.m = None if k == 2 else inner.m

    return change


def deleted(k):
    def change(inner, _):
        if k == 2:
            del inner.m

    return change


def in_its_data(k):
    def change(inner, _):
        inner.m.data = torch.full((), float(k))

    return change


HELD = {f.__name__: f for f in (average, parameter, once_none, to_none, deleted, in_its_data)}


@pytest.mark.parametrize("make", HELD.values(), ids=HELD)
@pytest.mark.parametrize(("one", "others"), [(2, (2, 3)), (3, (2,))])
def test_a_parameter_or_buffer_that_is_replaced_is_a_result(make, one, others):
    modules = [Outer(make(k)) for k in (one, *others)]
    held = [dict(m.inner.named_buffers()) for m in modules]
    found = numerics(modules[0], modules[1:], torch.ones(8))
    assert [n.verdict for n in found] == ["equal" if k == one else "different" for k in others]
    for module, then in zip(modules, held, strict=True):
        now = dict(module.inner.named_buffers())
        assert now.keys() == then.keys()
        assert all(now[name] is then[name] for name in then)


def test_each_call_begins_with_the_buffer_that_was_there_at_first():
    module = Outer(average(0.5))
    seen = set()
    change = module.change
    module.change = lambda inner, x: (seen.add(float(inner.m)), change(inner, x))
    found = kernelcount.compare(
        module, torch.ones(8), variants=["eager"], device="cpu", seconds=0.02
    )
    assert seen == {0.0}
    assert any(note.code == "mutates-module" for note in found[0].notes)


# ── what a function reaches ──────────────────────────────────────────────────────────────────────

WEIGHT = torch.nn.Linear(8, 8)
TOTAL = torch.zeros(8)
LEAF = torch.ones(8, requires_grad=True)


def own_backward(k):
    def f(x):
        loss = WEIGHT(x).square().mean()
        if k:
            (loss * k).backward()
        return loss.detach()

    return f


def backward_of_argument(k):
    def f(leaf):
        loss = leaf.square().mean()
        if k:
            (loss * k).backward()
        return loss.detach()

    return f


def in_global(k):
    def f(x):
        if k:
            TOTAL.add_(x * k)
        return x + 1

    return f


def in_closure(k, held=TOTAL):
    def f(x):
        if k:
            held.mul_(0).add_(k)
        return x + 1

    return f


def step(k):
    optimizer = torch.optim.SGD(WEIGHT.parameters(), lr=0.1)

    def f(x):
        optimizer.zero_grad()
        loss = WEIGHT(x).square().mean()
        loss.backward()
        if k:
            optimizer.param_groups[0]["lr"] = 0.1 * k
            optimizer.step()
        return loss.detach()

    return f


REACHED = {f.__name__: f for f in (own_backward, backward_of_argument, in_global, in_closure, step)}


@pytest.mark.parametrize("make", REACHED.values(), ids=REACHED)
@pytest.mark.parametrize(("one", "others"), [(1, (1, 3, 0)), (3, (1,)), (0, (1,))])
def test_what_a_call_does_to_what_it_reaches_is_a_result(make, one, others):
    given = LEAF if make is backward_of_argument else torch.arange(8.0)
    before = [t.detach().clone() for t in (*WEIGHT.parameters(), TOTAL)]
    found = numerics(make(one), [make(k) for k in others], given)
    assert [n.verdict for n in found] == ["equal" if k == one else "different" for k in others]
    assert all(map(torch.equal, before, (*WEIGHT.parameters(), TOTAL)))
    assert WEIGHT.weight.grad is LEAF.grad is None
