"""CUDA graphs: when they apply, and what a capture that fails leaves behind; CUDA is played."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Capture, Numerics, Sync
from kernelcount.remedies import graphs
from kernelcount.remedies.facts import Facts


@pytest.fixture
def launching(facts):
    """What is known of a function that launches so much."""

    def known(function, *args, launches=2, graph_launches=0, **options):
        counted = Capture("eager", launches=launches, graph_launches=graph_launches)
        return facts(function, *args, counted=counted, options=options)

    return known


@pytest.fixture
def cuda(monkeypatch):
    """Stands in for torch.cuda: a list of what happened, and the error that ends a capture."""
    played = SimpleNamespace(happened=[], at_end=None, current="the user's", random="the user's")

    class Generator:
        def clone_state(self):
            return "another"

        def graphsafe_set_state(self, state):
            played.random = state

    class Stream:
        def wait_stream(self, other):
            played.happened.append("wait")

    class Graph:
        def replay(self):
            played.happened.append("replay")

    @contextmanager
    def stream(_):
        played.happened.append("aside")
        yield
        played.happened.append("back")

    class Recording:
        def __init__(self, graph):
            pass

        def __enter__(self):
            played.happened.append("capture")
            played.current = "the capture's"

        def __exit__(self, *_):
            if played.at_end:
                raise played.at_end
            played.current = "the user's"

    mine = Stream()
    for name, value in {
        "CUDAGraph": Graph, "graph": Recording, "Stream": Stream, "stream": stream,
        "current_stream": lambda: mine, "current_device": lambda: 0,
        "default_generators": [Generator()],
        "set_stream": lambda s: setattr(played, "current", "the user's" if s is mine else s),
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(Facts, "gpu", True)
    return played


# ── when they apply ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, ""),
        ({"launches": 0}, "nothing is launched"),
        ({"launches": None}, "its launches are unknown"),
        ({"launches": 1, "graph_launches": 1}, "it is launched by graphs already"),
        ({"cold": True}, "a graph has one set of arguments, and --cold takes another for each"),
        ({"backward": True}, "with --backward gradients would have to lie in the graph's memory"),
    ],
)
def test_a_graph_of_the_call_applies_where_something_is_launched_anew_each_time(
    cuda, launching, given, reason
):
    said = graphs.no_graph_of_call(launching(torch.relu, torch.ones(2), **given))
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def test_a_call_that_waits_for_the_gpu_is_not_captured_and_its_line_is_told(cuda, facts):
    waits = (Sync("item", file="/home/me/step.py", line=7), Sync("bool"))
    counted = Capture("eager", launches=2, graph_launches=0, syncs=waits)
    said = graphs.no_graph_of_call(facts(torch.relu, torch.ones(2), counted=counted))
    assert said == "the CPU waits for the GPU in the call (item at step.py:7): no graph holds that"


def test_without_a_gpu_there_is_none(launching):
    assert graphs.no_graphs(launching(torch.relu)) == "CUDA graphs need an NVIDIA or AMD GPU"


# ── the capture ──────────────────────────────────────────────────────────────────────────────────


def test_the_call_is_made_aside_first_captured_once_and_then_replayed(cuda, launching):
    def f(x):
        cuda.happened.append("call")
        return x + 1

    with graphs.in_graph(launching(f, torch.ones(2))) as attempt:
        assert cuda.happened == [
            "wait", "aside", "call", "call", "call", "back", "wait", "capture", "call",
        ]  # fmt: skip
        assert attempt.way.call(torch.ones(2)).tolist() == [2, 2]
        assert cuda.happened[-1] == "replay"
        assert cuda.random == "the user's"


def test_arguments_are_as_they_were_and_where_they_were(cuda, launching):
    x = torch.ones(2)
    with graphs.in_graph(launching(lambda x: x.mul_(2), x)) as attempt:
        assert x.tolist() == [1, 1]
        assert attempt.subject.arguments.args[0] is x


@pytest.mark.parametrize("at_end", [None, RuntimeError("CUDA error: capture invalidated")])
def test_a_capture_that_fails_says_what_was_wrong_first_and_leaves_the_users_stream(
    cuda, launching, at_end
):
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) > 3:
            raise RuntimeError("CUDA error: operation not permitted\nwhen stream is capturing")

    cuda.at_end = at_end
    said = "the call cannot be captured: RuntimeError: CUDA error: operation not permitted$"
    with pytest.raises(NotMeasuredError, match=said):
        with graphs.in_graph(launching(f, torch.ones(2))):
            pass
    assert cuda.current == "the user's"
    assert cuda.random == "another"  # a generator that was captured, and not let go, raises


def test_a_capture_that_torch_refuses_only_at_its_end_says_so(cuda, launching):
    cuda.at_end = RuntimeError("CUDA error: stream is not joined")
    with pytest.raises(NotMeasuredError, match="stream is not joined"):
        with graphs.in_graph(launching(torch.relu, torch.ones(2))):
            pass


def test_memory_that_runs_out_is_no_matter_of_the_capture(cuda, launching):
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) > 3:
            raise MemoryError

    with pytest.raises(MemoryError):
        with graphs.in_graph(launching(f, torch.ones(2))):
            pass


def test_a_replay_that_gives_other_results_is_no_remedy(cuda, launching):
    with graphs.in_graph(launching(torch.relu, torch.ones(2))) as attempt:
        close = Numerics("close", 1)
        assert attempt.remark(close) == ""
        with pytest.raises(NotMeasuredError, match="a replay gives other results"):
            attempt.remark(replace(close, verdict="different"))
