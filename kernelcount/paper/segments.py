"""The parts of a call between graph breaks, and graphs made of several of them.

A part is one of Dynamo's graphs, or an op that ran outside of any. Which tensors go from one to the
next is told by the tensors themselves, so that parts can be put into one graph as if the code
between them, which does nothing on the GPU, had never parted them.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from kernelcount.errors import NotMeasuredError
from kernelcount.origins.callers import site
from kernelcount.paper import adapter
from kernelcount.paper.places import STAND_IN
from kernelcount.paper.steps import leaves, mapped

Spot = tuple[str, int | None]
"""The file and line at which a graph broke."""


@dataclass(frozen=True)
class Segment:
    """One of Dynamo's graphs, `module`, as it was called; or an op, `func`, outside of any.

    `given` and `made` are arguments and results; `grad`: whether gradients were on. `broke`: where
    the graph broke off, None where it did not.
    """

    given: Any
    made: Any
    grad: bool
    module: Any = None
    func: Any = None
    broke: Spot | None = None


@dataclass
class Recorder:
    """Takes down the segments of one call. `trouble`: why they are not all there is, or empty.

    `reads`: at how many segments a value was asked for, from which the host's code goes on.
    `beside`: what was launched that nobody counts.
    """

    segments: list[Segment] = field(default_factory=list)
    trouble: str = ""
    reads: list[int] = field(default_factory=list)
    beside: Counter[str] = field(default_factory=Counter)
    _inside: bool = False

    def graph(self, module: Any, given: Sequence[Any], run: Callable[..., Any]) -> Any:
        """Call one of Dynamo's graphs, by `run`."""
        import torch

        grad = torch.is_grad_enabled()
        self._look()
        before, self._inside = self._inside, True
        try:
            made = run(*given)
        finally:
            self._inside = before
        broke = adapter.broke_at(module)
        self.segments.append(Segment(given, made, grad, module=module, broke=broke))
        return made

    def op(
        self, func: Any, args: Any, kwargs: dict[str, Any], made: Any, *, counted: bool = True
    ) -> None:
        """An op was run. Those of a graph, and of the way back, are none of ours.

        `counted` False: it is a part of what is counted as a whole, as cuDNN does a whole GRU.
        """
        import torch

        self.went_backward()
        if self._inside or adapter.backward_node() is not None:
            return
        if not counted:
            self.trouble = self.trouble or _A_WHOLE
            return
        if not any(isinstance(t, torch.Tensor) for t in leaves(made)):
            return  # a value has gone to the host
        self._look()
        grad = torch.is_grad_enabled()
        self.segments.append(Segment((args, kwargs), made, grad, func=func))

    def read(self) -> None:
        """A value was asked for."""
        if not self._inside and adapter.backward_node() is None:
            self.reads.append(len(self.segments))

    def went_backward(self) -> None:
        """Something runs: in a backward pass of the user's own it is no part of ours."""
        if self._inside or adapter.backward_node() is None or self.trouble:
            return
        if _goes_backward(sys._getframe(1)):  # else it is we who go back
            self.trouble = "the function goes backward itself"
        elif site(sys._getframe(1)) is not None:
            self.trouble = "code of its own runs in the backward pass, as a hook does"

    @property
    def ops(self) -> int:
        """How many ops there are in all segments."""
        return sum(1 if s.module is None else len(_called(s.module)) for s in self.segments)

    @property
    def depends_on_values(self) -> bool:
        """Whether anything came after a value was asked for, which may hang on it."""
        return any(at < len(self.segments) for at in self.reads)

    @property
    def spots(self) -> list[Spot]:
        """Where graphs broke off, each place once."""
        return list(dict.fromkeys(s.broke for s in self.segments if s.broke is not None))

    def _look(self) -> None:
        import torch

        if torch.is_autocast_enabled("cuda") and not self.trouble:
            self.trouble = "autocast is on round parts of it"


_A_WHOLE = "a call between its graphs is one op on a GPU, and many where it can be followed"


def _goes_backward(frame: FrameType | None) -> bool:
    """Whether it is code of the user's that has autograd go backward, in which this frame is."""
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        frame = frame.f_back
    return frame is not None and site(frame) is not None


def _called(module: Any) -> list[Any]:
    return [node for node in module.graph.nodes if node.op.startswith("call")]


@dataclass(frozen=True)
class Group:
    """Segments as one graph: a module, the tensors that it took and those that it made.

    `holds`: what the module has as attributes.
    """

    module: Any
    takes: list[Any]
    makes: list[Any]
    holds: tuple[Any, ...] = ()

    def key(self) -> object:
        """What is the same for groups of which one may run in the place of the other."""
        forms = [(t.shape, t.stride(), t.dtype, t.device, t.requires_grad) for t in self.takes]
        return (self.module.code, *forms, *map(id, self.holds))


class Builder:
    """Puts segments into one graph."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        import torch

        self.takes: list[Any] = []
        self._root = torch.nn.Module()
        self._graph = torch.fx.Graph()
        self._nodes: dict[int, Any] = {}
        self._made: dict[int, Any] = {}
        self._views: dict[tuple[object, ...], Any] = {}
        self._used: set[int] = set()
        self._holds: list[Any] = []
        self._last_input: Any = None
        grad = segments[0].grad
        for segment in segments:
            if segment.grad != grad:
                grad = segment.grad
                self._graph.call_function(adapter.set_grad_enabled(), (grad,))
            (self._op if segment.module is None else self._module)(segment)

    @property
    def made(self) -> list[Any]:
        """What its segments made."""
        return list(self._made.values())

    def group(self, needed: set[int]) -> Group:
        """The graph. It gives what is `needed`, by id, and what nobody has used."""
        import torch

        makes = [t for key, t in self._made.items() if key in needed or key not in self._used]
        self._graph.output(tuple(self._nodes[id(t)] for t in makes))
        module = torch.fx.GraphModule(self._root, self._graph)
        return Group(module, self.takes, makes, tuple(self._holds))

    def _op(self, segment: Segment) -> None:
        import torch

        args, kwargs = mapped(segment.given, self._placed)
        node = self._graph.call_function(segment.func, tuple(args), kwargs)
        if isinstance(segment.made, torch.Tensor):
            self._note(segment.made, node)
        elif isinstance(segment.made, tuple | list):
            for i, made in enumerate(segment.made):
                if isinstance(made, torch.Tensor):
                    self._note(made, self._graph.call_function(operator.getitem, (node, i)))
                elif made is not None:
                    raise NotMeasuredError(f"{segment.func} gives what is no tensor")

    def _module(self, segment: Segment) -> None:
        import torch

        graph, given = segment.module.graph, iter(segment.given)
        copies: dict[Any, Any] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                copies[node] = self._placed(next(given))
            elif node.op == "output":
                made = zip(leaves(node.args[0]), leaves(segment.made), strict=True)
                for inner, result in made:
                    if isinstance(result, torch.Tensor):
                        self._note(result, copies[inner])
            else:
                copies[node] = self._copy(node, segment.module, copies)

    def _copy(self, node: Any, module: Any, copies: dict[Any, Any]) -> Any:
        from torch.fx.node import map_arg

        target = node.target
        if getattr(target, "__name__", "") == "_enter_autocast":
            raise NotMeasuredError(
                "autocast is on in a part of it"
            )  # Dynamo takes it no second time
        if node.op in ("get_attr", "call_module"):
            held = module
            for part in node.target.split("."):
                held = getattr(held, part)
            self._holds.append(held)
            target = f"part_{len(self._holds)}"
            setattr(self._root, target, held)

        def taken(inner: Any) -> Any:
            return copies[inner]

        args, kwargs = map_arg(node.args, taken), map_arg(node.kwargs, taken)
        return self._graph.create_node(node.op, target, args, kwargs)

    def _note(self, tensor: Any, node: Any) -> None:
        if id(tensor) not in self._nodes:  # else an op has changed it in place
            self._made[id(tensor)] = self._views[view_of(tensor)] = tensor
        self._nodes[id(tensor)] = node

    def _placed(self, value: Any) -> Any:
        """The node of a tensor; anything else as it is."""
        import torch

        if isinstance(value, torch.Tensor):
            return self._node_of(value)
        if isinstance(value, torch.device):
            return torch.device("cuda") if value.type == STAND_IN else value
        plain = (int, float, complex, str, torch.dtype, torch.layout, torch.memory_format)
        if value is None or isinstance(value, plain):
            return value
        raise NotMeasuredError(f"a part of it takes a {type(value).__name__}")

    def _node_of(self, tensor: Any) -> Any:
        # A view that is made below autograd reaches the user as another object.
        known = tensor if id(tensor) in self._nodes else self._views.get(view_of(tensor), tensor)
        if id(known) not in self._nodes:
            last, graph = self._last_input, self._graph
            with graph.inserting_after(last) if last else graph.inserting_before():
                self._last_input = graph.placeholder(f"given_{len(self.takes)}")
            self._nodes[id(known)] = self._last_input
            self.takes.append(known)
        self._used.add(id(known))
        return self._nodes[id(known)]


def view_of(tensor: Any) -> tuple[object, ...]:
    """What two tensors share that are the same elements of the same memory, for autograd too."""
    return (
        adapter.unique_id(tensor),
        tensor.storage_offset(),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.requires_grad,
    )
