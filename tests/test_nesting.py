"""Tensors are found in whatever people put them into."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch

from kernelcount.nesting import leaves, renewed, tensors

Pair = namedtuple("Pair", "lo hi")


@dataclass
class Batch:
    x: torch.Tensor
    n: int = 0


@pytest.mark.parametrize(
    "value",
    [
        (1, torch.ones(1)),
        [[torch.ones(1)], None],
        {"a": {"b": torch.ones(1)}},
        Pair(torch.ones(1), "text"),
        OrderedDict(logits=torch.ones(1)),
        Batch(torch.ones(1)),
        {"a": torch.ones(1)}.items(),
        {"a": torch.ones(1)}.values(),
        {torch.ones(1)},
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_tensor_is_found_in_whatever_functions_return(value):
    assert len(list(tensors(value))) == 1


def test_there_are_none_in_text_and_numbers():
    assert list(tensors(("text", 1.0, None, Batch))) == []


def test_a_list_that_holds_itself_is_no_trap():
    endless: list = [torch.ones(1)]
    endless.append(endless)
    assert len(list(tensors(endless))) == 1
    assert renewed(endless)[1][0] is endless[0]


def test_renewed_containers_hold_the_same_tensors():
    x = torch.ones(2)
    old = ([x, {"a": [x]}], {"s": {1}})
    new = renewed(old)
    new[0][1]["a"].append(x)
    new[1]["s"].add(2)
    assert old == ([x, {"a": [x]}], {"s": {1}})
    assert new[0][0] is x


def test_leaves_come_in_order_and_hold_nothing_themselves():
    x = torch.ones(2)
    assert list(leaves({"a": [1, (x, "text")], "b": None})) == [1, x, "text", None]
