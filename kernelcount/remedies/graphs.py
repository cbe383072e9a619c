"""Fewer launches: a CUDA graph of the call, and torch.compile's mode that makes them.

A graph is captured as torch's documentation has it: a few calls on another stream, then one call
that is recorded instead of run. What the function does on the CPU is in no graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcount.capture import WARM_UPS, Way, calling
from kernelcount.errors import NotMeasuredError
from kernelcount.memory import is_out_of_memory
from kernelcount.model import Numerics
from kernelcount.remedies.facts import Attempt, Facts
from kernelcount.variants import Variant

NAME = "CUDA graph"
_REPLAYED_WRONG = (
    "a replay gives other results: what the function does on the CPU, or keeps in Python, is in no"
    " graph"
)


def no_graphs(facts: Facts) -> str:
    """Why CUDA graphs do not apply; empty where they do."""
    if not facts.gpu:
        return "CUDA graphs need an NVIDIA or AMD GPU"
    if not facts.capture.launches:
        return "nothing is launched" if facts.capture.launches == 0 else "its launches are unknown"
    if facts.capture.launches == facts.capture.graph_launches:
        return "it is launched by graphs already"
    return ""


def no_graph_of_call(facts: Facts) -> str:
    """Why no graph of the whole call is captured; empty where one may be."""
    if reason := no_graphs(facts):
        return reason
    if waits := facts.capture.syncs:
        first = waits[0]
        where = f" at {Path(first.file).name}:{first.line}" if first.file else ""
        return f"the CPU waits for the GPU in the call ({first.kind}{where}): no graph holds that"
    if facts.subject.backward:
        return (
            "with --backward gradients would have to lie in the graph's memory, as"
            " torch.cuda.make_graphed_callables has them"
        )
    if facts.subject.cold:
        return "a graph has one set of arguments, and --cold takes another for each call"
    return ""


@contextmanager
def in_graph(facts: Facts) -> Iterator[Attempt]:
    """The call captured with its arguments where they are.

    Raises NotMeasuredError, in words, where it cannot be captured.
    """
    replay = _captured(facts)
    way = Way(Variant(NAME, facts.way.variant.kind), facts.way.function, replay)
    yield Attempt(way, facts.subject, remark=_judged)


def _judged(found: Numerics) -> str:
    if found.verdict == "different":
        raise NotMeasuredError(_REPLAYED_WRONG)
    return ""


@dataclass(frozen=True)
class _Replay:
    """A graph in a function's place: what it returns lies where the capture put it."""

    graph: Any
    result: Any

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.graph.replay()
        return self.result


def _captured(facts: Facts) -> Callable[..., Any]:
    import torch

    graph = torch.cuda.CUDAGraph()
    with calling(facts.subject, facts.way) as (invocation, state):
        before = torch.cuda.current_stream()
        with _left_as_it_was(before):
            aside = torch.cuda.Stream()
            aside.wait_stream(before)
            with torch.cuda.stream(aside):
                for _ in range(WARM_UPS):
                    invocation(*state.before_call())
            before.wait_stream(aside)
            arguments = state.before_call()
            return _Replay(graph, _recorded(graph, lambda: invocation(*arguments)))


@contextmanager
def _left_as_it_was(stream: Any) -> Iterator[None]:
    """Undo what a capture that fails leaves behind.

    That is its own stream as the current one; and a random number generator that takes itself for
    captured, and so raises from then on: another one's state takes the place of its own.
    """
    import torch

    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    another = generator.clone_state()
    try:
        yield
    except BaseException:
        generator.graphsafe_set_state(another)
        raise
    finally:
        torch.cuda.set_stream(stream)


def _recorded(graph: Any, call: Callable[[], Any]) -> Any:
    """What the call gives while it is captured.

    Raises NotMeasuredError with what was wrong first: ending a capture that has failed may raise,
    too.
    """
    import torch

    errors: list[BaseException] = []
    try:
        with torch.cuda.graph(graph):
            try:
                return call()
            except BaseException as error:
                errors.append(error)
                raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        first = errors[0] if errors else error
        if is_out_of_memory(first):
            raise first from None
        line = next(iter(str(first).splitlines()), "")
        said = f"{type(first).__name__}: {line}".removesuffix(": ")
        raise NotMeasuredError(f"the call cannot be captured: {said}") from error
