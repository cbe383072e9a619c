"""What a person gets of the command line where there is no GPU, and none was asked for."""

import json

import pytest
import torch
from counting import CASES

ADD_RELU = f"{CASES / 'operations.py'}:add_relu"

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
]


def test_it_is_counted_on_paper(kernelcount):
    run = ("run", ADD_RELU, "--size", "1e10", "--variant", "eager", "--format", "json")
    code, out, err = kernelcount(*run)
    assert code == 0, err
    document = json.loads(out)
    (eager,) = document["variants"]
    assert document["environment"]["kind"] == eager["basis"] == "paper"
    assert (eager["kernels"], eager["transfers"]) == (2, 4.0)


def test_remedies_are_refused_before_anything_is_counted(kernelcount):
    code, out, err = kernelcount("run", ADD_RELU, "--size", "4", "--remedy")
    assert (code, out) == (2, "")
    assert "--remedy: nothing runs on paper" in err
