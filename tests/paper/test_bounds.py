"""What a call must move at least."""

from dataclasses import dataclass

import torch

from kernelcount.paper.bounds import Ends


@dataclass
class Made:
    y: torch.Tensor
    n: int


def on_gpu(*shape):
    return torch.empty(shape, device="meta")


def test_each_input_is_read_once_and_each_output_written_once():
    given, made = on_gpu(100), on_gpu(50)
    assert Ends([given, given[10:]]).floor({"out": made}) == (400, 600)


def test_an_input_that_is_changed_is_written_too_and_a_view_of_it_is_no_output():
    given = on_gpu(100)
    ends = Ends([given])
    given.add_(1)
    assert ends.floor(given.view(10, 10)) == (400, 800)


def test_a_modules_parameters_must_be_read_and_are_no_measure_of_transfers():
    module = torch.nn.Linear(8, 100, device="meta")
    assert Ends((module, ([on_gpu(8)], {}))).floor(on_gpu(100)) == (400, 32 + 400 + 3200 + 400)


def test_a_parameter_that_is_an_argument_as_well_is_read_once():
    module = torch.nn.Linear(8, 8, bias=False, device="meta")
    assert Ends((module, [module.weight])).floor(None) == (256, 256)


def test_repeated_elements_and_host_arrays_do_not_count():
    assert Ends([on_gpu(1).expand(100), torch.ones(1000)]).floor(torch.ones(5)) == (4, 4)


def test_what_stands_in_a_dataclass_is_a_result():
    assert Ends([on_gpu(10)]).floor([Made(on_gpu(20), 3)]) == (80, 120)
