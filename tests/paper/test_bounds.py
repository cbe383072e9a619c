"""What a call must move at least."""

from dataclasses import dataclass

import pytest
import torch

from kernelcount import runners
from kernelcount.model import Capture, Job
from kernelcount.paper.bounds import Ends
from kernelcount.paper.rules import Op


@dataclass
class Made:
    y: torch.Tensor
    n: int


def on_gpu(*shape):
    return torch.empty(shape, device="meta")


# What no op was met of is as much as it can be: `blind`.


def test_each_input_is_read_once_and_each_output_written_once():
    given, made = on_gpu(100), on_gpu(50)
    assert Ends([given, given[10:]]).floor({"out": made}, blind=True) == (400, 600)


def test_an_input_that_is_changed_is_written_too_and_a_view_of_it_is_no_output():
    given = on_gpu(100)
    ends = Ends([given])
    given.add_(1)
    assert ends.floor(given.view(10, 10), blind=True) == (400, 800)


def test_a_modules_parameters_must_be_read_and_are_no_measure_of_transfers():
    module = torch.nn.Linear(8, 100, device="meta")
    ends = Ends((module, ([on_gpu(8)], {})))
    given = [module.bias, on_gpu(8), module.weight]
    ends.met(Op("addmv", "aten", tuple(given), {}, given, [on_gpu(100)]))
    assert ends.floor(on_gpu(100), blind=True) == (400, 32 + 400 + 3200 + 400)


def test_a_parameter_that_is_an_argument_as_well_is_read_once():
    module = torch.nn.Linear(8, 8, bias=False, device="meta")
    assert Ends((module, [module.weight])).floor(None, blind=True) == (256, 256)


def test_repeated_elements_do_not_count():
    assert Ends([on_gpu(1).expand(100)]).floor(None, blind=True) == (4, 4)


def test_host_arrays_need_not_move_but_those_that_are_given_are_a_measure_of_transfers():
    given = [on_gpu(1), torch.ones(1000)]
    assert Ends(given).floor(torch.ones(5000), blind=True) == (4000, 4)


def test_where_no_array_is_given_what_is_reached_and_touched_is_a_measure():
    held, other = on_gpu(100), on_gpu(1000)
    ends = Ends([], [held, other])
    ends.met(Op("sum", "aten", (held,), {}, [held], [on_gpu(1)]))
    assert ends.floor(on_gpu(1)) == (400, 404)


def test_what_stands_in_a_dataclass_is_a_result():
    assert Ends([on_gpu(10)]).floor([Made(on_gpu(20), 3)], blind=True) == (80, 120)


def test_views_of_one_memory_are_inputs_together_and_so_are_those_that_come_out():
    given, made = on_gpu(100), on_gpu(60)
    assert Ends([given[:50], given[40:]]).floor([*made.split(20)], blind=True) == (240, 640)


def relu_of(x):
    return Op("relu", "aten", (x,), {}, [x], [torch.empty_like(x)], pointwise=True)


def test_what_the_function_reaches_counts_as_far_as_ops_read_it():
    held, other = on_gpu(10), on_gpu(20)
    ends = Ends([on_gpu(100)], [held, other])
    ends.met(relu_of(held[5:]))
    ends.met(Op("view", "aten", (other, [2, 10]), {}, [other], [other.view(2, 10)]))
    assert ends.floor(None, blind=True) == (400, 420)


def test_what_is_held_and_written_over_before_it_is_read_need_not_be_read():
    held = on_gpu(10)
    ends = Ends([on_gpu(100)], [held])
    ends.met(Op("fill_", "aten", (held, 1), {}, [held], [held]))
    held.fill_(1)
    ends.met(relu_of(held))
    assert ends.floor(None, blind=True) == (400, 440)


def test_gradients_that_a_call_leaves_are_written_and_read_where_they_are_added_to():
    x = on_gpu(100).requires_grad_()
    seed = on_gpu(100)
    ends = Ends([x], [seed])
    made = x.relu()
    made.backward(seed)
    ends.met(relu_of(seed))
    assert ends.floor(made, blind=True) == (400, 4 * 400)
    again = Ends([x], [seed])
    x.relu().backward(seed)
    assert again.floor(None, blind=True) == (400, 3 * 400)


def test_an_input_is_read_as_far_as_ops_read_it_and_written_as_far_as_they_write_it():
    x, y, never = on_gpu(100, 10), on_gpu(100, 5), on_gpu(1000)
    ends = Ends([x, y, never])
    half = x[:, ::2]
    ends.met(Op("copy_", "aten", (half, y), {}, [half, y], [half]))
    half.copy_(y)
    ends.met(Op("sum", "aten", (x,), {}, [x], [on_gpu(1)]))
    assert ends.floor(None) == (4000, 2000 + 2000 + 2000)


def test_of_a_table_the_rows_asked_for_are_read_and_those_put_are_written():
    table, index, rows = on_gpu(1000, 10), torch.empty(5, device="meta").long(), on_gpu(5, 10)
    ends = Ends([table, index])
    ends.met(Op("embedding", "aten", (table, index), {}, [table, index], [rows]))
    assert ends.floor(rows) == (40_000, 200 + 40 + 200)
    ends = Ends([table, index, rows])
    put = (table, [index], rows)
    ends.met(Op("index_put_", "aten", put, {}, [table, index, rows], [table]))
    assert ends.floor(None) == (40_000, 40 + 200 + 200)


def test_what_an_optimizer_steps_is_written_though_it_is_of_no_newer_version():
    weight, gradient = on_gpu(100), on_gpu(100)
    lists = ([weight], [gradient])
    ends = Ends([gradient], [weight])
    ends.met(Op("_foreach_add_", "aten", lists, {}, [weight, gradient], [weight]))
    assert ends.floor(None, blind=True) == (400, 3 * 400)


PROGRAM = """
import pytest
import torch
w = torch.randn(1000, device="cuda")
never = torch.randn(1000, device="cuda")
layer = torch.nn.Linear(100, 100, device="cuda")
def make_inputs(n, device):
    return (torch.randn(10, 100, device=device, requires_grad=True),)
def holds():
    scale = torch.randn(10, 100, device="cuda")
    return lambda x: x * scale
by_closure = holds()
def by_global(x):
    return (x if x.shape[0] else never).view(-1) * w
def forward(x):
    return x.relu()
def linear(x):
    return layer(x)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("variant", ["eager", "compile"])
@pytest.mark.parametrize(
    ("name", "backward", "floor"),
    [
        ("by_closure", False, 3.0),
        ("by_global", False, 3.0),
        ("forward", False, 2.0),
        ("forward", True, 4.0),
        ("linear", True, (4 * 1000 + 2 * 10_100) / 1000),
    ],
)
def test_a_call_must_read_what_it_holds_and_write_its_gradients(
    target, variant, name, backward, floor
):
    job = Job(f"{target(PROGRAM)}:{name}", device="paper", variants=(variant,), backward=backward)
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert isinstance(outcome, Capture), outcome
    paper = outcome.paper
    assert (paper.unit, paper.floor) == (4000, floor * 4000)
    assert paper.floor <= paper.read + paper.written
