"""What compiled code computes on the host by itself, taken out of a graph and done there.

Between Dynamo and Inductor a host tensor without dimensions cannot be told from one of the GPU (see
`compiled`). An optimizer's step counts are such tensors. Inductor makes C++ of the work on them, so
it adds no kernel; kernels take the results as arguments, whoever worked them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelcount.errors import NotMeasuredError
from kernelcount.paper import adapter
from kernelcount.paper.places import device_of
from kernelcount.paper.steps import leaves

_CALLS = ("call_function", "call_method")
_SOURCES = ("placeholder", "get_attr")
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
    nodes = list(graph.graph.nodes)
    own = _own(nodes)
    work = {n for n in own if n.op in _CALLS and _is_host_work(n)}
    _refuse_what_mixes(nodes, own)
    for node in own:
        if node.op in _CALLS and not node.all_input_nodes:
            _part_constant(graph, node, work)
    outside = [n for n in nodes if _is_wanted(n, own, work)]
    if not work and not outside:
        return None
    _check_order(nodes, work)
    part = HostPart(_module(graph, nodes, work, outside), [_value(n) for n in outside])
    _replace_by_inputs(graph, outside, work)
    for node in reversed(nodes):
        if node in work or (node in own and node.op != "placeholder" and not node.users):
            graph.graph.erase_node(node)
    return part


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
        number = not hasattr(_value(node), "layout") and hasattr(_value(node), "node")
        if (
            node.op in (*_SOURCES, *_CALLS)
            and (_is_on_host(node) or number)
            and all(n in own for n in node.all_input_nodes)
        ):
            own[node] = None
    return own


def _is_host_work(node: Any) -> bool:
    """Whether it is work on a tensor without dimensions, or with one."""
    given = [n for n in node.all_input_nodes if _is_on_host(n)]
    return bool(given) and (_is_scalar(node) or any(map(_is_scalar, given)))


def _is_wanted(node: Any, own: dict[Any, None], work: set[Any]) -> bool:
    """Whether the rest takes it: work for whatever is left, a constant where it is given back."""
    if node in work:
        return any(user not in work for user in node.users)
    constant = node in own and node.op in _CALLS and not node.all_input_nodes
    return constant and _is_scalar(node) and any(u.op == "output" for u in node.users)


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


def _part_constant(graph: Any, node: Any, work: set[Any]) -> None:
    """Have what is made on the host say so, but for a scalar that the GPU's work takes."""
    if "device" in node.kwargs or not _is_on_host(node):
        return
    late = [u for u in node.users if u not in work and u.op in _CALLS and _is_on_host(u)]
    if not _is_scalar(node):
        # What goes on to the GPU is made there: torch's folding of constants cannot copy it.
        if not _reaches_gpu(node):
            node.kwargs = {**node.kwargs, "device": "cpu"}
    elif late:
        with graph.graph.inserting_after(node):
            twin = graph.graph.node_copy(node)
        twin.kwargs = {**node.kwargs, "device": "cpu"}
        for user in late:
            user.replace_input_with(node, twin)


def _reaches_gpu(node: Any) -> bool:
    """Whether something on the GPU comes of it."""
    waiting, seen = [node], {node}
    while waiting:
        users = [u for u in waiting.pop().users if u not in seen and u.op in _CALLS]
        if any(list(_tensors(_value(u))) and not _is_on_host(u) for u in users):
            return True
        seen.update(users)
        waiting += users
    return False


def _changed_by(node: Any) -> list[Any]:
    """The nodes that this one changes in place."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
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
            if not _is_scalar(changed) or any(place[u] < place[node] for u in others):
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


def _replace_by_inputs(graph: Any, outside: list[Any], work: set[Any]) -> None:
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
        node.replace_all_uses_with(taken, lambda u, n=node: n in work or u.op == "output")
