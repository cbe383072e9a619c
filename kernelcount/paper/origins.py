"""Adapter to torch's private names: which ops each of Inductor's kernels computes, and why apart.

Where this torch lacks one of `NAMES`, kernels are counted all the same, and `lacking` says why
nothing is known of their lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any
from unittest import mock

from kernelcount.model import Place
from kernelcount.origins.callers import plain
from kernelcount.paper.adapter import is_op, resolve

NAMES = (
    "torch._C._autograd._get_sequence_nr",
    "torch._C._current_autograd_node",
    "torch._inductor.ir.Operation.get_origins",
    "torch._inductor.pattern_matcher.ReplacementPatternEntry.replace_with_graph",
    "torch._inductor.scheduler.BaseSchedulerNode.get_buffer_names",
    "torch._inductor.scheduler.BaseSchedulerNode.get_nodes",
    "torch._inductor.scheduler.BaseSchedulerNode.get_operation_names",
    "torch._inductor.scheduler.Scheduler.enter_context",
    "torch._inductor.scheduler.WhyNoFuse.__call__",
    "torch._inductor.virtualized.V",
)

MARK = "# kernelcount: part "
"""Stands in the code before what is written for a part; the number of the part follows."""

INSTEAD = "kernelcount_instead"
"""In the meta of a node that Inductor's patterns have made: the nodes that it stands for."""

_HEAVY = ("val", "tensor_meta", "example_value", "eager_input_vals")

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_ROOT = re.compile(r"^[LG]\['[^']*'\]\.?")
_MODULES = re.compile(r"_modules\['([^']+)'\]")
_INDEX = re.compile(r"\[(?:'([^']+)'|(\d+))\]")
_SLICE = re.compile(r"\.slice\([^)]*\)")


@cache
def lacking() -> str:
    """Why lines are not known with this torch; empty where they are."""
    import torch

    missing = [name for name in NAMES if not has(name)]
    if not missing:
        return ""
    return f"cannot tell source lines on torch {torch.__version__}: it lacks {', '.join(missing)}"


def has(name: str) -> bool:
    """Whether this torch has a name. Every class can be called: its own definition counts."""
    owner, _, last = name.rpartition(".")
    try:
        found = resolve(name)
        return not last.startswith("__") or found is vars(resolve(owner)).get(last)
    except (AttributeError, ImportError):
        return False


def sequence_number() -> int:
    """The number that autograd gives to the next node that is made on this thread."""
    import torch

    return int(torch._C._autograd._get_sequence_nr())


def backward_number() -> int | None:
    """The number of the autograd node that is at work just now; None where none is."""
    import torch

    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


@dataclass(frozen=True)
class Part:
    """What Inductor makes a kernel, or a call, of: nodes of a graph, as the scheduler fused them.

    `operations` and `buffers` are Inductor's names; `reads`: the buffers that it is given.
    """

    operations: frozenset[str]
    nodes: tuple[Any, ...]
    reads: frozenset[str]
    buffers: frozenset[str]


_Words = tuple[str, tuple[Any, ...]]


@dataclass
class Watch:
    """What is seen of one graph's lowering: its parts, and the pairs that were not fused."""

    parts: list[Part] = field(default_factory=list)
    refused: dict[tuple[str, str], _Words] = field(default_factory=dict)

    @cached_property
    def _between(self) -> dict[frozenset[int], _Words]:
        """Inductor's last words on each pair of parts, once all are there."""
        part_of = {name: i for i, part in enumerate(self.parts) for name in part.operations}
        said: dict[frozenset[int], _Words] = {}
        for pair, words in self.refused.items():
            # Fused names are those of their parts, joined: op1_op2.
            found = {part_of.get(name, -1) for fused in pair for name in fused.split("_")}
            if len(found) == len(pair) and -1 not in found:
                said[frozenset(found)] = words
        return said

    def why(self, one: int, other: int) -> str:
        """Inductor's last words on why two parts, or pieces of them, are not one; empty: none."""
        reason, args = self._between.get(frozenset((one, other)), ("", ()))
        try:
            return reason % args if args else reason
        except (TypeError, ValueError):
            return reason


@contextmanager
def watched() -> Iterator[Watch]:
    """Note the parts of the graph that is lowered inside, each marked in the code."""
    watch = Watch()
    if lacking():
        yield watch
        return
    from torch._inductor.scheduler import Scheduler, WhyNoFuse
    from torch._inductor.virtualized import V

    enter, refuse = Scheduler.enter_context, WhyNoFuse.__call__

    def entered(self: Any, node: Any) -> Any:
        V.graph.wrapper_code.writeline(f"{MARK}{len(watch.parts)}")
        watch.parts.append(_part(node))
        return enter(self, node)

    def refused(self: Any, reason: str, *args: Any) -> Any:
        watch.refused[self.name1, self.name2] = (reason, args)
        return refuse(self, reason, *args)

    with ExitStack() as stack:
        stack.enter_context(replacements_noted())
        stack.enter_context(mock.patch.object(Scheduler, "enter_context", entered))
        stack.enter_context(mock.patch.object(WhyNoFuse, "__call__", refused))
        yield watch


@contextmanager
def replacements_noted() -> Iterator[None]:
    """Have nodes that patterns put in the place of others know which: they keep no stack."""
    if lacking():
        yield
        return
    from torch._inductor.pattern_matcher import ReplacementPatternEntry

    put = ReplacementPatternEntry.replace_with_graph

    def noted(match: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        before = set(graph.nodes)
        lost = tuple(one for n in match.nodes if n.op == "call_function" for one in _kept(n))
        result = put(match, graph, *args, **kwargs)
        for node in graph.nodes:
            if node not in before:
                node.meta[INSTEAD] = lost
        return result

    with mock.patch.object(ReplacementPatternEntry, "replace_with_graph", staticmethod(noted)):
        yield


def _kept(node: Any) -> tuple[Any, ...]:
    """What is to be remembered of a node that goes, or of those that it stands for itself."""
    if INSTEAD in node.meta:
        return tuple(node.meta[INSTEAD])
    meta = {k: v for k, v in node.meta.items() if k not in _HEAVY}
    return (SimpleNamespace(target=node.target, meta=meta, args=()),)


def _part(node: Any) -> Part:
    nodes = [
        origin
        for part in node.get_nodes()
        if getattr(part, "node", None) is not None
        for origin in part.node.get_origins()
    ]
    return Part(
        frozenset(node.get_operation_names()),
        tuple(dict.fromkeys(nodes)),
        frozenset(dep.name for dep in node.read_writes.reads),
        frozenset(node.get_buffer_names()),
    )


@dataclass(frozen=True)
class Facts:
    """What a node of a graph remembers of the user's code.

    `op`: the op that was called, without overload; `whole`: the node is that op and no part of it.
    `frames`: the lines that led to it, innermost first. `call`: what tells the call apart from
    others like it. `function`: the name of the function that was called, as far as it is known.
    """

    op: str
    whole: bool
    frames: tuple[Place, ...]
    module: str | None
    call: str
    function: str
    backward: bool


def facts(node: Any, *, backward: bool) -> Facts:
    """What is known of a node. `backward`: whether its graph is that of a backward pass."""
    original = node.meta.get("original_aten")
    given = original if is_op(original) else node.target
    meta = _memory(node)
    called = meta.get("source_fn_stack") or meta.get("fwd_source_fn_stack") or ()
    modules = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}
    source, function = called[-1] if called else ("", "")
    tag = str(meta.get("partitioner_tag"))
    return Facts(
        _name(given),
        _name(given) == _name(node.target),
        frames_of(str(meta.get("stack_trace") or "")),
        path_of([str(entry[0]) for entry in modules.values()]),
        str(source) or f"node {meta.get('seq_nr')}",
        str(getattr(function, "__name__", function)),
        tag == "is_backward" or (backward and tag != "is_forward"),
    )


_WRITES = re.compile(r"copy_|\w+_scatter")


def _memory(node: Any) -> dict[str, Any]:
    """What a node remembers, or what is written does, where it writes and remembers nothing.

    So are nodes that Inductor's passes make for what is changed in place:
    torch/_inductor/fx_passes/reinplace.py. An op that is only kept in its place is that op:
    torch/_inductor/fx_passes/control_dependencies.py.
    """
    if _name(node.target) == "control_deps" and not node.meta.get("stack_trace"):
        kept = _only_op(getattr(node.graph.owning_module, node.args[1].target, None))
        return dict((node if kept is None else kept).meta)
    written = node.args[1] if len(node.args) > 1 else None
    if node.meta.get("stack_trace") or not _WRITES.fullmatch(_name(node.target)):
        return dict(node.meta)
    return dict(getattr(written, "meta", node.meta))


def _only_op(module: Any) -> Any:
    nodes = module.graph.nodes if hasattr(module, "graph") else ()
    return next((n for n in nodes if n.op == "call_function"), None)


def _name(target: Any) -> str:
    """``mul`` for aten.mul.Tensor, for its overloads and for a function of this name."""
    written = target.name() if is_op(target) else str(getattr(target, "__name__", target))
    return written.partition("::")[2].partition(".")[0] or written


def frames_of(trace: str) -> tuple[Place, ...]:
    """The lines of a traceback as text, innermost first.

    What Dynamo goes on with after a break bears the name of the function that it is a part of.
    """
    found = _FRAME.findall(trace)
    return tuple(Place(file, int(line), plain(name)) for file, line, name in reversed(found))


def path_of(stack: Sequence[str]) -> str | None:
    """The path of the innermost module, in the outermost, of a stack as Dynamo notes it.

    ``L['self'].layers.0.norm`` is ``layers.0.norm``; None for the outermost itself.
    """
    if not stack:
        return None
    outer, inner = (_plain_path(path) for path in (stack[0], stack[-1]))
    if stack[0].startswith("G[") and inner.startswith(outer):
        inner = inner[len(outer) :]
    return inner.strip(".") or None


def _plain_path(path: str) -> str:
    path = _SLICE.sub("", _MODULES.sub(r"\1", path))
    return _INDEX.sub(lambda m: f".{m[1] or m[2]}", _ROOT.sub("", path))


def graph_nodes(module: Any) -> Iterator[Any]:
    """The nodes of a graph that call something."""
    return (node for node in module.graph.nodes if node.op == "call_function")


def order_of(nodes: Sequence[Any]) -> Callable[[Any], int]:
    """Where each node stands in its graph."""
    graphs = {id(node.graph): node.graph for node in nodes}
    places = {node: i for graph in graphs.values() for i, node in enumerate(graph.nodes)}
    return lambda node: places.get(node, -1)
