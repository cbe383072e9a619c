"""The names of torch's that lines are told by, and what is made of what nodes remember."""

from pathlib import Path

import pytest
import torch

from kernelcount import app, runners
from kernelcount.model import Job, Place
from kernelcount.paper import origins

SOURCED = Path(__file__).parent / "sourced.py"

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", origins.NAMES)
def test_torch_has_the_name(name):
    assert origins.has(name)


def test_a_torch_that_lacks_one_is_told_of_and_counted_all_the_same(monkeypatch):
    from torch._inductor.scheduler import WhyNoFuse

    origins.lacking.cache_clear()
    monkeypatch.setattr(torch, "__version__", "9.9.0")
    monkeypatch.delattr(WhyNoFuse, "__call__")
    try:
        job = Job(f"{SOURCED}:add_relu", sizes=(64,), device="paper", variants=("eager",))
        (outcome,) = app.run(job, runners.in_process, lambda _: None).report.outcomes
    finally:
        origins.lacking.cache_clear()
    assert outcome.count("kernel") == 2
    assert outcome.provenance.sources == (None, None)
    assert outcome.provenance.unknown == (
        "cannot tell source lines on torch 9.9.0: "
        "it lacks torch._inductor.scheduler.WhyNoFuse.__call__"
    )


def test_the_forwards_number_is_that_of_the_node_at_work_in_backward():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(origins.backward_number())
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    before = origins.sequence_number()
    Double.apply(x).sum().backward()
    assert (seen, origins.backward_number()) == ([before], None)


def test_frames_are_read_innermost_first_and_parts_of_a_function_bear_its_name():
    trace = (
        '  File "/a/main.py", line 3, in run\n    return f(x)\n'
        '  File "/a/model.py", line 7, in torch_dynamo_resume_in_f_at_6\n    y = x + 1\n'
    )
    assert origins.frames_of(trace) == (Place("/a/model.py", 7, "f"), Place("/a/main.py", 3, "run"))


@pytest.mark.parametrize(
    ("stack", "path"),
    [
        (["L['self'].layers.0.norm"], "layers.0.norm"),
        (["L['self']._modules['layers']._modules['0']"], "layers.0"),
        (["L['self'].layers[3]"], "layers.3"),
        (["L['self'].layers.slice(None, 4, None).0.norm"], "layers.0.norm"),
        (["G['MODEL']", "G['MODEL'].layers.0"], "layers.0"),
        (["G['__import_model'].M", "G['__import_model'].M.head"], "head"),
        (["G['MODEL']"], None),
        ([], None),
    ],
)
def test_the_path_of_a_module_is_told_as_its_names(stack, path):
    assert origins.path_of(stack) == path


def test_pairs_that_were_not_fused_are_found_by_what_the_parts_are_made_of():
    parts = [
        origins.Part(frozenset(names), (), frozenset(), frozenset())
        for names in ({"op0", "op1"}, {"op2"}, {"op3"})
    ]
    words = {("op2", "op0"): ("first", ()), ("op0_op1", "op2"): ("%s and %s", (1, 2))}
    watch = origins.Watch(parts, words)
    assert watch.why(0, 1) == watch.why(1, 0) == "1 and 2"
    assert watch.why(0, 2) == ""
