"""Which ops of the user's code each call in a graph's code computes, and why it stayed apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kernelcount.devices.aten import effect
from kernelcount.model import Apart, Phase, Place, Source
from kernelcount.origins import attention
from kernelcount.origins.callers import first_of_user, is_users
from kernelcount.origins.fusion import code_of
from kernelcount.paper import origins, wrapper
from kernelcount.paper.origins import Facts, Part, Watch
from kernelcount.paper.traced import Traced

_TAG = "kernelcount_op"
_ATTENTION = "scaled_dot_product_attention"

Found = tuple[tuple[Traced, ...], Source | None]


class Parts:
    """The ops of one graph, to be made out before it is lowered; `found` tells of it afterwards.

    `backward`: whether it is the graph of a backward pass.
    """

    def __init__(self, module: Any, *, backward: bool) -> None:
        self._backward = backward
        self._alike: dict[Traced, list[Traced]] = {}
        self._whole: set[Traced] = set()
        self._composed: set[Traced] = set()
        self._lost: dict[int, tuple[Traced, ...]] = {}
        for node in origins.graph_nodes(module):
            node.meta[_TAG] = self._ops_of(node)

    def found(self, watch: Watch, code: str, calls: Sequence[wrapper.Call]) -> list[Found]:
        """For each call its ops, and what is known of it; nothing where it is of no part."""
        lines = code.splitlines()
        marks = [i for i, line in enumerate(lines, 1) if origins.MARK in line]
        numbers = [int(lines[i - 1].partition(origins.MARK)[2]) for i in marks]
        before = [bisect_right(marks, call.line) - 1 for call in calls]
        parts = [numbers[i] if i >= 0 else None for i in before]
        by_part: dict[int, list[wrapper.Call]] = {}
        for call, part in zip(calls, parts, strict=True):
            if part is not None:
                by_part.setdefault(part, []).append(call)
        neighbours = _Neighbours(watch, by_part)
        return [
            ((), None) if part is None else self._made(call, watch.parts[part], neighbours.of(part))
            for call, part in zip(calls, parts, strict=True)
        ]

    def _made(self, call: wrapper.Call, part: Part, beside: tuple[Apart, ...]) -> Found:
        library = call.kind != "generated"
        ops = self._ops(part, library=library)
        composed = any(op in self._composed for op in ops)
        backend = attention.backend(wrapper.op_of(call.name)) if library else None
        phases = {op.phase for op in ops}
        phase: Phase = "forward"
        if self._backward:
            phase = "backward"
        elif phases == {"optimizer"}:
            phase = "optimizer"
        apart = (Apart("library-call"),) if library else beside
        return ops, Source(
            (), phase, None, library, apart, backend or ("math" if composed else None)
        )

    def _ops(self, part: Part, *, library: bool) -> tuple[Traced, ...]:
        """The ops of a part in the order of the graph, each once, but for those that only view.

        Of a library call it is the last: the others are what its arguments are made of.
        """
        nodes = sorted(part.nodes, key=origins.order_of(part.nodes))
        each = [self._now(node) for node in nodes if node.op.startswith("call")]
        each = [work for ops in each if (work := tuple(filter(_works, ops)))] or each
        return tuple(dict.fromkeys(op for ops in (each[-1:] if library else each) for op in ops))

    def _now(self, node: Any) -> tuple[Traced, ...]:
        """The ops of a node of the graph as it was lowered."""
        if origins.INSTEAD in node.meta and _TAG not in node.meta:
            return self._ops_of(node)
        return node.meta.get(_TAG) or (self._again(node),)

    def _ops_of(self, node: Any) -> tuple[Traced, ...]:
        """The op that a node is, or those that it stands for."""
        lost = node.meta.get(origins.INSTEAD)
        if not lost:
            return (self._op_of(node),)
        if id(lost) not in self._lost:
            found = [op for n in lost for op in n.meta.get(_TAG) or (self._op_of(n),)]
            self._lost[id(lost)] = tuple(dict.fromkeys(found))
        return self._lost[id(lost)]

    def _op_of(self, node: Any) -> Traced:
        """The op that a node of the graph is, or is a part of.

        A call may be made of several ops that are alike, each of which is one node.
        """
        known = origins.facts(node, backward=self._backward)
        alike = self._alike.setdefault(self._traced(known), [])
        if not alike or (known.whole and alike[-1] in self._whole):
            alike.append(replace(self._traced(known), call=f"{known.call} {len(alike)}"))
        if known.whole:
            self._whole.add(alike[-1])
        if known.function == _ATTENTION and attention.backend(known.op, _ATTENTION) == "math":
            self._composed.add(alike[-1])
        return alike[-1]

    def _again(self, node: Any) -> Traced:
        """The op of a node that Inductor's passes have made since, in the place of others."""
        made = self._traced(origins.facts(node, backward=self._backward))
        if made in self._alike:
            return self._alike[made][0]
        same = (op for op in self._alike if replace(op, call="") == replace(made, call=""))
        op = next(same, None)
        return self._alike[op][0] if op else replace(made, call=f"{made.call} 0")

    def _traced(self, known: Facts) -> Traced:
        phase: Phase = "forward"
        if known.backward:
            phase = "backward"
        elif any(_is_optimizers(frame.file) for frame in known.frames):
            phase = "optimizer"
        place = first_of_user(known.frames)
        return Traced(known.op, place, known.module, phase, known.call, root=known.root)


def _works(op: Traced) -> bool:
    """Whether an op does more than to view or to allocate."""
    return effect(f"aten::{op.op}") != "nothing"


def _is_optimizers(file: str) -> bool:
    return "torch/optim/" in file.replace("\\", "/") and not is_users(file)


class _Neighbours:
    """What shares data with each part of a graph, and why they are not one kernel."""

    def __init__(self, watch: Watch, calls: dict[int, list[wrapper.Call]]) -> None:
        self._watch, self._calls = watch, calls
        self._made_by = {name: i for i, p in enumerate(watch.parts) for name in p.buffers}
        self._used_by: dict[str, list[int]] = {}
        for i, part in enumerate(watch.parts):
            for name in part.reads:
                self._used_by.setdefault(name, []).append(i)

    def of(self, part: int) -> tuple[Apart, ...]:
        """A reason for each neighbour of a generated kernel, in order; one where there is none."""
        found = [self._reason(part, other) for other in sorted(self._beside(part))]
        return tuple(dict.fromkeys(found)) or (Apart("nothing-shared"),)

    def _reason(self, part: int, other: int) -> Apart:
        calls = self._calls[other]
        name = calls[0].name
        if all(call.kind != "generated" for call in calls):
            return Apart("library-call", name)
        words = self._watch.why(part, other)
        code = code_of(words)
        # These two do share an array: what Inductor finds none of is indices that are the same.
        return Apart("reads-differently" if code == "nothing-shared" else code, name, words)

    def _beside(self, part: int) -> set[int]:
        """Parts that make what this one reads, or read what it makes, if need be through views."""
        seen, left, found = {part}, [part], set()
        while left:
            for other in self._next(left.pop()):
                if other in seen:
                    continue
                seen.add(other)
                if other in self._calls:
                    found.add(other)
                else:
                    left.append(other)
        return found

    def _next(self, part: int) -> Iterator[int]:
        for name in self._watch.parts[part].reads:
            if name in self._made_by:
                yield self._made_by[name]
        for name in self._watch.parts[part].buffers:
            yield from self._used_by.get(name, ())


def traced_lines(graph: Any) -> Iterable[Place]:
    """The user's lines that a graph of Dynamo's was traced from."""
    for node in graph.graph.nodes:
        if node.op.startswith("call"):
            frames = origins.frames_of(str(node.meta.get("stack_trace") or ""))
            if (place := first_of_user(frames)) is not None:
                yield place


def lines_of_branches(graph: Any) -> Iterator[Place]:
    """The user's lines of the graphs that one calls in some cases, as torch.cond does, or often."""
    for node in graph.graph.find_nodes(op="get_attr"):
        inner = getattr(graph, node.target, None)
        if hasattr(inner, "graph"):
            yield from traced_lines(inner)
            yield from lines_of_branches(inner)
