"""Parts of a call put into one graph: it gives what they give, one after the other."""

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.paper.segments import Builder, Recorder, Segment, view_of

aten = torch.ops.aten


def op(func, *given, grad=False):
    """An op that ran outside of any graph."""
    return Segment((given, {}), func(*given), grad, func=func)


def graph(function, *given):
    """One of Dynamo's graphs, as it was called."""
    module = torch.fx.symbolic_trace(function)
    return Segment(given, (module(*given),), False, module=module)


def test_what_one_part_makes_the_next_one_takes():
    x = torch.arange(4.0)
    first = graph(lambda a: a + 1, x)
    second = op(aten.mul.Tensor, first.made[0], 2)
    builder = Builder([first, second])
    group = builder.group({id(second.made)})
    assert [id(t) for t in group.takes] == [id(x)]
    assert [id(t) for t in group.makes] == [id(second.made)]
    assert torch.equal(group.module(x)[0], (x + 1) * 2)


def test_what_is_needed_and_what_nobody_used_is_given():
    x = torch.arange(4.0)
    first = graph(lambda a: a + 1, x)
    aside = op(aten.sum.default, first.made[0])
    last = op(aten.mul.Tensor, first.made[0], 2)
    group = Builder([first, aside, last]).group({id(first.made[0])})
    assert {id(t) for t in group.makes} == {id(first.made[0]), id(aside.made), id(last.made)}


def test_a_view_that_comes_back_as_another_object_is_the_same():
    x = torch.arange(4.0)
    first = op(aten.view.default, x, [2, 2])
    again = x.view(2, 2)
    assert again is not first.made
    assert view_of(again) == view_of(first.made)
    second = op(aten.mul.Tensor, again, 2)
    group = Builder([first, second]).group({id(second.made)})
    assert [id(t) for t in group.takes] == [id(x)]


def test_several_results_are_told_apart():
    x = torch.tensor([3.0, 1.0])
    first = op(aten.sort.default, x)
    second = op(aten.mul.Tensor, first.made[1], 2)
    group = Builder([first, second]).group({id(second.made)})
    assert torch.equal(group.module(x)[-1], torch.tensor([2, 0]))


def test_parts_that_are_alike_have_one_key_and_others_have_not():
    def group(size, factor):
        part = op(aten.mul.Tensor, torch.ones(size), factor)
        return Builder([part]).group({id(part.made)})

    assert group(4, 2).key() == group(4, 2).key()
    assert group(4, 2).key() != group(5, 2).key()
    assert group(4, 2).key() != group(4, 3).key()


def test_a_part_that_takes_what_no_graph_can_is_refused():
    part = Segment(((torch.ones(2), object()), {}), torch.ones(2), False, func=aten.add.Tensor)
    with pytest.raises(NotMeasuredError, match="a part of it takes a object"):
        Builder([part])


def test_gradients_are_switched_where_the_parts_have_them_switched():
    x = torch.arange(4.0)
    first = op(aten.add.Tensor, x, 1, grad=True)
    second = op(aten.mul.Tensor, first.made, 2)
    code = Builder([first, second]).group({id(second.made)}).module.code
    assert "set_grad_enabled(False)" in code


def test_what_comes_after_a_value_was_read_may_hang_on_it():
    recorder = Recorder()
    recorder.op(aten.add.Tensor, (torch.ones(2), 1), {}, torch.ones(2))
    recorder.read()
    recorder.op(aten._local_scalar_dense.default, (torch.ones(()),), {}, 1.0)
    assert not recorder.depends_on_values
    recorder.op(aten.add.Tensor, (torch.ones(2), 1), {}, torch.ones(2))
    assert recorder.depends_on_values
    assert recorder.ops == 2
