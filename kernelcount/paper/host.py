"""What compiled code computes on the host by itself, taken out of a graph and done there.

Between Dynamo and Inductor a host tensor without dimensions cannot be told from one of the GPU (see
`compiled`). An optimizer's step counts are such tensors. Inductor makes C++ of the work on them, so
it adds no kernel; kernels take the results as arguments, whoever worked them out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelcount.errors import NotMeasuredError
from kernelcount.paper import adapter
from kernelcount.paper.places import device_of
from kernelcount.paper.steps import leaves

_CALLS = ("call_function", "call_method")
_SOURCES = ("placeholder", "get_attr")
_MOVES = ("to", "cuda")
_RANDOM = ("rand", "normal", "bernoulli")
# They have no name of a method: operator.iadd and others change what stands on their left.
_IN_PLACE = frozenset(
    {"iadd", "iand", "ifloordiv", "imod", "imul", "ior", "ipow", "isub", "itruediv", "setitem"}
)


@dataclass
class HostPart:
    """A module that gives what was taken out, for the arguments of the whole graph.

    `examples`: the results as the trace has them, in the order in which the rest takes them after
    all other arguments.
    """

    module: Any
    examples: list[Any]

    def results(self, args: Any) -> list[Any]:
        """Do the host's work. Changes the arguments that it changes."""
        import torch

        with torch.no_grad():
            return list(self.module(*args))


def take_out(graph: Any) -> HostPart | None:
    """Take the host's own work out of one of Dynamo's graphs, in place; None where there is none.

    Raises NotMeasuredError where it cannot be parted from the GPU's.
    """
    _convert_before_leaving(graph)
    nodes = list(graph.graph.nodes)
    own = _own(nodes)
    work: set[Any] = set()
    for node in own:  # numbers, too, that come of the host's tensors
        if node.op in _CALLS and any(n in work or _is_on_host(n) for n in node.all_input_nodes):
            work.add(node)
    work |= {n for n in nodes if _is_sent(n, own)}
    _refuse_what_mixes(nodes, own)
    outside = [n for n in nodes if any(_takes(u, n, own, work) for u in n.users)]
    for node in own:
        if _is_made(node):  # what is left of it is a constant of the GPU's work
            node.kwargs = {k: v for k, v in node.kwargs.items() if k != "device"}
    if not work and not outside:
        return None
    _check_order(nodes, work)
    part = HostPart(_module(graph, nodes, work, outside), [_value(n) for n in outside])
    _replace_by_inputs(graph, outside, own, work)
    for node in reversed(nodes):
        if node in work or (node in own and node.op != "placeholder" and not node.users):
            graph.graph.erase_node(node)
    return part


def unused(graph: Any) -> list[Any]:
    """The nodes of one of Dynamo's graphs that make tensors which nobody uses, nor changes."""
    return [
        node
        for node in graph.nodes
        if node.op in _CALLS
        and not node.users
        and any(True for _ in _tensors(_value(node)))
        and not _changed_by(node)
    ]


def keep_unused(graph: Any) -> None:
    """Have a graph give what it makes and nobody uses, behind its own results, in place."""
    (output,) = graph.find_nodes(op="output")
    kept = []
    for node in unused(graph):
        with graph.inserting_before(output):
            made, value = node, _value(node)
            if isinstance(value, tuple | list):
                made, value = graph.call_function(operator.getitem, (node, 0)), value[0]
                made.meta["example_value"] = value
            made = graph.call_method("detach", (made,))  # a value that is read has no gradient
            made.meta["example_value"] = value.detach()
            kept.append(made)
    output.args = ((*output.args[0], *kept),)


def _takes(user: Any, node: Any, own: dict[Any, None], work: set[Any]) -> bool:
    """Whether a user that is left in the graph takes the node's result as an input of its own.

    Work is done outside for all of them. What is only made there, such as zeros, stays a constant
    for the GPU's work, into which Inductor folds it.
    """
    if user in work:
        return False
    if node in work:
        return True
    if node not in own or not _is_made(node):
        return False
    on_gpu = user.op in _CALLS and not _is_on_host(user)
    folded = on_gpu and (_is_scalar(node) or user.target in _MOVES)
    return not folded or _name(node).startswith(_RANDOM)


def _is_made(node: Any) -> bool:
    """Whether a host tensor is made of none, but perhaps of numbers."""
    of_none = not any(any(True for _ in _tensors(_value(n))) for n in node.all_input_nodes)
    return node.op in _CALLS and of_none and _is_on_host(node)


def _value(node: Any) -> Any:
    return node.meta.get("example_value")


def _tensors(value: Any) -> Iterator[Any]:
    return (t for t in leaves(value) if hasattr(t, "layout"))


def _is_on_host(node: Any) -> bool:
    found = list(_tensors(_value(node)))
    return bool(found) and all(device_of(t).type == "cpu" for t in found)


def _is_scalar(node: Any) -> bool:
    return _is_on_host(node) and all(t.dim() == 0 for t in _tensors(_value(node)))


def _own(nodes: list[Any]) -> dict[Any, None]:
    """What the host has without the GPU: tensors that are given, sizes, and what comes of them."""
    own: dict[Any, None] = {}
    for node in nodes:
        value = _value(node)
        number = hasattr(value, "node") or isinstance(value, int | float)
        number = number and not hasattr(value, "layout")
        if (
            node.op in (*_SOURCES, *_CALLS)
            and (_is_on_host(node) or number)
            and all(n in own for n in node.all_input_nodes)
        ):
            own[node] = None
    return own


def _is_sent(node: Any, own: dict[Any, None]) -> bool:
    """Whether a scalar goes from the host to the GPU, which would be no change of place."""
    given = node.all_input_nodes
    found = list(_tensors(_value(node)))
    return (
        node.op == "call_method"
        and bool(found)
        and all(device_of(t).type != "cpu" and t.dim() == 0 for t in found)
        and bool(given)
        and all(n in own and _is_scalar(n) for n in given)
    )


def _convert_before_leaving(graph: Any) -> None:
    """What goes to the host as another dtype is converted on the GPU first, as a GPU's graph is.

    After `_to_copy` in torch/_decomp/decompositions.py, which looks for a CPU as the target.
    """
    for node in graph.graph.find_nodes(op="call_method", target="to"):
        source, made = _value(node.args[0]), _value(node)
        if not hasattr(source, "layout") or not hasattr(made, "layout"):
            continue
        leaves_gpu = device_of(source).type != "cpu" and device_of(made).type == "cpu"
        if leaves_gpu and source.dtype != made.dtype:
            with graph.graph.inserting_before(node):
                converted = graph.graph.call_method("to", (node.args[0], made.dtype))
            converted.meta["example_value"] = source.to(made.dtype)
            node.replace_input_with(node.args[0], converted)


def _refuse_what_mixes(nodes: list[Any], own: dict[Any, None]) -> None:
    for node in nodes:
        if node.op not in _CALLS:
            continue
        if node in own and any(t.requires_grad for t in _tensors(_value(node))):
            raise _refusal(node, "needs its gradient")
        if not _is_on_host(node) and any(_is_late_scalar(n, own) for n in node.all_input_nodes):
            raise _refusal(node, "takes one that depends on the GPU")


def _is_late_scalar(node: Any, own: dict[Any, None]) -> bool:
    return node not in own and node.op in _CALLS and _is_scalar(node)


def _refusal(node: Any, why: str) -> NotMeasuredError:
    return NotMeasuredError(
        f"the compiled code works on a CPU tensor without dimensions ({node.name} {why}), and on "
        "paper that cannot be told from work on the GPU"
    )


def _name(node: Any) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _changed_by(node: Any) -> list[Any]:
    """The nodes that this one changes in place."""
    name = _name(node)
    by_name = name.endswith("_") and not name.endswith("__")
    if by_name or name in _IN_PLACE:
        return [n for n in leaves(node.args[0]) if hasattr(n, "users")]
    return [n for n in leaves(node.kwargs.get("out")) if hasattr(n, "users")]


def _check_order(nodes: list[Any], work: set[Any]) -> None:
    """All of the host's work comes first: nothing may need what was there before it."""
    place = {node: index for index, node in enumerate(nodes)}
    for node in nodes:
        for changed in _changed_by(node) if node in work else ():
            others = (u for u in changed.users if u not in work)
            if any(place[u] < place[node] for u in others):
                raise _refusal(node, "changes what was needed before")


def _module(graph: Any, nodes: list[Any], work: set[Any], outside: list[Any]) -> Any:
    """A module of the work and of what it takes, with all the graph's inputs."""
    import torch

    needed = set(outside) | work
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    part = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in nodes:
        if node.op == "placeholder" or node in needed:
            copies[node] = part.node_copy(node, copies.__getitem__)
    part.output(tuple(copies[n] for n in outside))
    return torch.fx.GraphModule(graph, part)


def _replace_by_inputs(
    graph: Any, outside: list[Any], own: dict[Any, None], work: set[Any]
) -> None:
    last = [n for n in graph.graph.nodes if n.op == "placeholder"]
    first = next(iter(graph.graph.nodes))
    for index, node in enumerate(outside):
        where = (
            graph.graph.inserting_after(last[-1]) if last else graph.graph.inserting_before(first)
        )
        with where:
            taken = graph.graph.placeholder(f"host_{index}")
        taken.meta["example_value"] = _value(node)
        adapter.as_intermediate(taken)
        last.append(taken)
        node.replace_all_uses_with(taken, lambda u, n=node: _takes(u, n, own, work))
