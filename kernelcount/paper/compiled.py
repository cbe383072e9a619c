"""What torch.compile would put on a GPU: every graph that Dynamo makes, as Inductor would write it.

The function is compiled and called on paper until nothing new is compiled. A graph that is called
runs op by op, on shapes; which graphs are called, and what runs between them, is noted in the log.
Then each graph is lowered for the card, up to the code that would launch its kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kernelcount.model import Phase, Place, Sync
from kernelcount.paper import (
    adapter,
    flops,
    host,
    origins,
    parts,
    reads,
    rules,
    stages,
    waits,
    wrapper,
)
from kernelcount.paper.cards import Card
from kernelcount.paper.log import Call, Log, call_of
from kernelcount.paper.mode import op_of
from kernelcount.paper.places import STAND_IN, device_of, is_on
from kernelcount.paper.sizes import Sizes, as_it_was, hangs
from kernelcount.paper.traced import placed

GPU_IN_GRAPHS = "cpu"
HOST_IN_GRAPHS = "meta"
"""Between Dynamo and the lowering the two change places: constants of the GPU are folded there, and
that takes real memory."""

_TO_GRAPHS = {STAND_IN: GPU_IN_GRAPHS, "cuda": GPU_IN_GRAPHS, "cpu": HOST_IN_GRAPHS}
_FROM_DECOMPOSITIONS = {"cuda": GPU_IN_GRAPHS}
_TO_RUN = {GPU_IN_GRAPHS: STAND_IN, "cuda": STAND_IN, HOST_IN_GRAPHS: "cpu"}
_TO_LOWER = {GPU_IN_GRAPHS: "cuda:0", "cuda": "cuda:0", HOST_IN_GRAPHS: "cpu"}


@dataclass
class Graph:
    """A graph that Inductor is to lower, with its example inputs and options.

    `family`: the graph of Dynamo's that it is of, as its forward or its backward. `sizes`: those
    that hang on values, as they were when it was called.
    """

    module: Any
    inputs: list[Any]
    options: dict[str, Any]
    family: int = 0
    sizes: Sizes | None = None

    @property
    def is_backward(self) -> bool:
        """Whether it is that of a backward pass."""
        return bool(self.options.get("is_backward"))


Scalars = dict[int, Any]
"""Host tensors without dimensions, by their memory, which they keep from stage to stage."""


@dataclass
class Compiler:
    """Takes Dynamo's graphs, runs them on shapes, and keeps them to be lowered."""

    log: Log
    graphs: list[Graph] = field(default_factory=list)
    _stage: str = STAND_IN
    traced: dict[Place, None] = field(default_factory=dict)
    hidden: dict[Place, None] = field(default_factory=dict)
    _families: int = 0
    _originals: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _scalars: Scalars = field(default_factory=dict)
    _written: dict[int, tuple[list[Call], Counter[str]]] = field(default_factory=dict)

    @contextmanager
    def ready(self, attention: Callable[..., Any]) -> Iterator[None]:
        """Compiling inside gives the graphs of a GPU whose attention is made like this."""
        import torch

        op = torch.ops.aten.scaled_dot_product_attention.default
        with (
            adapter.inductor_settings(lambda graph: _place(graph, _FROM_DECOMPOSITIONS)),
            adapter.gpu_in_traces(lambda: self._stage),
            adapter.decomposed_as_on_cuda(lambda: self._stage),
            adapter.optimizers_on_gpu(is_on),
            adapter.composite(op, attention),
            adapter.inductor_replaced(self.backend),
            origins.replacements_noted(),
        ):
            yield

    def backend(self, graph: Any, inputs: Sequence[Any]) -> Any:
        """What torch.compile calls with each graph."""
        mode = adapter.fake_mode_of(inputs)
        original, graph = graph, adapter.copied(graph)
        (output,) = graph.graph.find_nodes(op="output")
        results = len(output.args[0])
        if self.log.keeps:
            host.keep_unused(graph.graph)
        self.traced |= dict.fromkeys(parts.traced_lines(graph))
        self._families += 1
        part = host.take_out(graph)
        self._place_attributes(graph)
        _place(graph.graph, _TO_GRAPHS)
        graph.recompile()
        examples = [*adapter.with_symbols(original, inputs), *(part.examples if part else ())]
        placed = [self._placed_input(value, mode) for value in examples]
        with self._at(GPU_IN_GRAPHS):
            compiled = adapter.compile_with(graph, placed, partial(self._take, self._families))

        def run(*args: Any) -> Any:
            return compiled(*args, *(part.results(args) if part else ()))[:results]

        def called(*args: Any) -> Any:
            recorder = self.log.recorder
            return run(*args) if recorder is None else recorder.graph(original, args, run)

        return called

    @contextmanager
    def _at(self, stage: str) -> Iterator[None]:
        """Where the GPU's tensors are in the traces made inside."""
        before, self._stage = self._stage, stage
        try:
            yield
        finally:
            self._stage = before

    def _place_attributes(self, graph: Any) -> None:
        """Put tensors that a graph holds itself, as an optimizer's parameters, where the GPU is."""
        import torch

        for node in graph.graph.find_nodes(op="get_attr"):
            original: Any = getattr(graph, node.target, None)
            if not is_on(original):
                continue
            # Its memory is never touched, so that it takes none.
            stub = torch.empty_strided(
                original.shape, original.stride(), dtype=original.dtype, device=GPU_IN_GRAPHS
            )
            if isinstance(original, torch.nn.Parameter):
                stub = torch.nn.Parameter(stub, original.requires_grad)
            self._originals[id(stub)] = (stub, original)
            setattr(graph, node.target, stub)

    def _placed_input(self, value: Any, mode: Any) -> Any:
        import torch

        if not isinstance(value, torch.Tensor):
            return value
        kind = device_of(value).type
        # A host tensor without dimensions may meet a GPU tensor in one op; of two devices only the
        # CPU's may, so it goes along to where the GPU's are.
        scalar = kind == "cpu" and value.dim() == 0
        fake = adapter.fake_like(value, GPU_IN_GRAPHS if scalar else _TO_GRAPHS[kind], mode)
        if scalar:
            self._scalars[adapter.unique_id(fake)] = fake
        return fake.requires_grad_(value.requires_grad)

    def _take(self, family: int, module: Any, inputs: list[Any], options: dict[str, Any]) -> Any:
        index = len(self.graphs)
        sizes = Sizes(module)
        self.graphs.append(Graph(module, inputs, options, family, sizes))

        def run(args: list[Any]) -> Any:
            self.log.note_graph(index)
            held = [self._originals.get(id(a), (a, a))[1] for a in args]
            with self.log.opened(to=False):
                return _play(module, held, sizes)

        return run

    def lowered(self, card: Card, noted: Sequence[Call]) -> tuple[list[Call], Counter[str]]:
        """The calls that were noted, with every graph replaced by what Inductor launches for it.

        And the operations of all by precision: those of a graph are its ops', whether Inductor
        calls a library for them or writes a kernel.
        """
        written, calls = self._written, list[Call]()
        made: Counter[int] = Counter()
        done = flops.total(call.flops for call in noted)
        for call in noted:
            if call.graph is None:
                calls.append(call)
                continue
            if call.graph not in written:
                module = self.graphs[call.graph].module
                self.hidden |= dict.fromkeys(parts.lines_of_branches(module))
                with self._at(""):
                    written[call.graph] = _lower(self.graphs[call.graph], card, self._scalars)
            family = (self.graphs[call.graph].family, made[call.graph])
            of_call = _of_one_call(written[call.graph][0], call, sum(made.values()), family)
            calls += of_call
            made[call.graph] += 1
            done += written[call.graph][1]
        return calls, done


def _of_one_call(
    written: Sequence[Call], call: Call, number: int, family: tuple[int, ...]
) -> Iterator[Call]:
    """What a graph launches, as one call of it does: the `number`-th of all calls of graphs.

    The waits in it are at the line of their op, or else at that which calls the graph. All of it
    is of the backward pass where that calls the graph, as it does a hook's.
    """
    site = next(iter(call.ops), None)
    phase: Phase | None = "backward" if call.where and call.where.phase == "backward" else None
    for made in written:
        where = made.where and replace(made.where, graph=number, phase=phase or made.where.phase)
        ops = placed(made.ops, site, family, phase, call.roots)
        own = next((op.place for op in ops if op.place is not None), None)
        waits = tuple(_waiting(w, g, own) for g in call.waits for w in made.waits)
        yield replace(made, ops=ops, where=where, waits=waits)


def _waiting(wait: Sync, graph: Sync, own: Place | None) -> Sync:
    """A wait in a graph that is called where `graph` says; `own`: the line of its op."""
    found = replace(graph, kind=wait.kind, op=wait.op)
    if own is None:
        return found
    return replace(found, file=own.file, line=own.line, function=own.function or found.function)


# The parameters of Tensor.cuda and Tensor.cpu: python_variable_methods.cpp.
_MOVED_BY = {"cuda": ("device", "non_blocking", "memory_format"), "cpu": ("memory_format",)}


def _place(graph: Any, places: dict[str, str]) -> None:
    """Change the devices that a graph names, in place."""
    import torch
    from torch.fx.node import map_aggregate

    def placed(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device(places.get(value.type, str(value)))
        if isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu"):
            return places.get(value.partition(":")[0], value)
        return value

    for node in graph.nodes:
        if node.op == "call_method" and node.target in ("cuda", "cpu") and node.target in places:
            given = {
                **dict(zip(_MOVED_BY[node.target], node.args[1:], strict=False)),
                **node.kwargs,
            }
            given.pop("device", None)
            node.args = (node.args[0], torch.device(places[node.target]))
            node.target, node.kwargs = "to", given
        elif node.op in ("call_function", "call_method"):
            node.args = map_aggregate(node.args, placed)
            node.kwargs = map_aggregate(node.kwargs, placed)


def _play(module: Any, args: list[Any], sizes: Sizes) -> Any:
    """Run a graph op by op where the user's tensors are, on shapes and values.

    `sizes` is told what they come to.
    """
    import torch
    from torch.fx import Interpreter
    from torch.fx.node import map_aggregate

    def back(value: Any) -> Any:
        return (
            torch.device(_TO_RUN.get(value.type, value.type))
            if isinstance(value, torch.device)
            else value
        )

    class Player(Interpreter):  # type: ignore[misc]
        """Puts every device back to where it was."""

        def run_node(self, node: Any) -> Any:
            result = super().run_node(node)
            sizes.note(node.name, result)
            return result

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            args, kwargs = map_aggregate(args, back), map_aggregate(kwargs, back)
            return super().call_function(target, args, kwargs)

        def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
            value = super().get_attr(target, args, kwargs)
            return value.to(STAND_IN) if isinstance(value, torch.Tensor) else value

    with torch.no_grad():
        return Player(module).run(*args)


def _lower(graph: Graph, card: Card, scalars: Scalars) -> tuple[list[Call], Counter[str]]:
    """What Inductor would launch for a graph on the card, and the operations of its ops."""
    with adapter.believed_in(card), adapter.inductor_settings(_nothing):
        module, inputs = _retargeted(graph, scalars)
        symbols = graph.sizes.symbols(module) if graph.sizes else {}
        sources = parts.Parts(module, backward=graph.is_backward)
        with origins.watched() as watch:
            written = adapter.lower(module, inputs, graph.options, symbols)
    found = wrapper.calls(written.code)
    ops = _Ops(module, card.name, symbols)
    done = flops.total(flops.of(op, card) for op in ops.all())
    scalars_of_host = {n.name for n in module.graph.find_nodes(op="placeholder") if _is_host(n)}
    calls = [
        replace(made, ops=own, where=where)
        for call, (own, where) in zip(found, sources.found(watch, written.code, found), strict=True)
        if call.name.removesuffix(".item") not in scalars_of_host
        and (made := _made(call, ops)) is not None
    ]
    return _with_bytes(calls, written.traffic), done


def _with_bytes(calls: list[Call], traffic: Sequence[tuple[int, int]]) -> list[Call]:
    """The calls with the bytes of each, as far as Inductor's parts are one to one with them.

    Where they are not, those of all stand at the first, and none is known apart. A library call
    that is known moves what it does in eager code: Inductor leaves out results that nobody uses.
    """
    if sum(map(_runs, calls)) == len(traffic):
        parts = iter(traffic)
        return [_with_own_bytes(call, *next(parts)) if _runs(call) else call for call in calls]
    together = [replace(call, read=0, written=0, apart=False) for call in calls]
    if together:
        # What library calls hand on inside of them is not among Inductor's reads and writes.
        more = any(c.moves_more or c.cost.kernels + c.cost.copies > 1 for c in calls)
        total = (sum(read for read, _ in traffic), sum(written for _, written in traffic))
        together[0] = replace(together[0], read=total[0], written=total[1], moves_more=more)
    return together


def _runs(call: Call) -> bool:
    return call.cost != rules.NOTHING


def _with_own_bytes(call: Call, read: int, written: int) -> Call:
    known = call.read or call.written
    return call if known else replace(call, read=read, written=written)


def _is_host(node: Any) -> bool:
    return is_on(node.meta.get("val"), "cpu")


def _nothing(_: Any) -> None:
    """No pass of ours: the joint passes are over."""


def _made(call: wrapper.Call, ops: _Ops) -> Call | None:
    made = _launched(call, ops)
    if made is None or call.wait is None:
        return made
    *_, last = call.name.removesuffix(".default").split(".")
    return replace(made, waits=(Sync(call.wait, op="is_nonzero" if call.wait == "bool" else last),))


def _launched(call: wrapper.Call, ops: _Ops) -> Call | None:
    if call.kind == "generated":
        return Call(call.name, rules.ONE, generated=True)
    if call.kind == "copy":
        return Call(call.name, rules.Cost(0, 1))
    if call.kind == "sync":
        return Call(call.name, rules.Cost(0, 1))
    if call.kind == "wait":
        return Call(call.name)
    if call.kind == "branch":
        open_ = rules.Cost(0, exact=False)
        return Call(call.name, open_, more_waits=True, moves_more=True)
    if call.kind == "unknown":
        return Call(call.name, rules.Cost(0, exact=False), unknown=True, moves_more=True)
    known = ops.next(call.name)
    if known is None:
        return named(call.name)
    return replace(known, name=call.name) if known.cost != rules.NOTHING else None


def named(name: str) -> Call:
    """A library call of which nothing but the name is known: ``aten.nonzero.default``."""
    plain = wrapper.op_of(name)
    kind = reads.by_name(plain)
    waits = (Sync(kind, op=plain),) if kind else ()
    cost, more_waits = rules.by_name(plain), reads.is_open(plain)
    more = not stages.is_one_pass(plain, cost)
    return Call(name, cost, waits=waits, more_waits=more_waits, moves_more=more)


class _Ops:
    """The ops of a lowered graph by name, to be met in the order of the library calls."""

    def __init__(self, module: Any, card: str, symbols: dict[Any, int]) -> None:
        self._card, self._symbols = card, symbols
        self._nodes: dict[str, list[Any]] = {}
        for node in module.graph.nodes:
            if node.op == "call_function" and adapter.is_op(node.target):
                self._nodes.setdefault(adapter.name_of(node.target)[1], []).append(node)

    def all(self) -> Iterator[rules.Op]:
        """Those on the GPU that nobody has taken yet."""
        for node in (n for nodes in self._nodes.values() for n in nodes):
            op = self._op_of(node)
            if op is not None and _on_gpu(op):
                yield op

    def next(self, written: str) -> Call | None:
        """What a library call costs, by the first op of its name that is not taken yet.

        None where no op bears its name: Inductor put another in its place.
        """
        name = wrapper.op_of(written)
        waiting = self._nodes.get(name)
        # Inductor changes a copy of its own in place, where the graph has an op that makes one.
        in_place = not waiting and name.endswith("_") and not name.endswith("__")
        waiting = self._nodes.get(name.removesuffix("_")) if in_place else waiting
        if not waiting:
            return None
        node = waiting.pop(0)
        op = self._op_of(node)
        if op is None:
            return named(written)
        if in_place:
            op = replace(op, name=name, written=op.read[:1])
        if not _on_gpu(op):
            return Call(written)  # the host's own
        call = call_of(op, self._card, "cuda") or Call(written)
        inside = tuple(Sync(kind, op=name) for kind, name in waits.inside(op))
        call = replace(call, waits=inside, more_waits=reads.may_wait_more(op))
        if not may_be_padded(op):
            return call
        # With its operands padded, not even what was recorded of this shape holds.
        hanging = any(map(hangs, _values(node)))
        of = "of sizes that hang on values" if hanging else "of fixed sizes"
        return replace(call, cost=rules.AT_LEAST_ONE, source=None, padded=of, moves_more=True)

    def _op_of(self, node: Any) -> rules.Op | None:
        """The op that a node calls, with fake tensors as large as those were that it was given.

        None where a size hangs on values and was another in each call.
        """
        from torch.fx.node import map_aggregate

        def value(item: Any) -> Any:
            return as_it_was(item.meta.get("val"), self._symbols) if hasattr(item, "meta") else item

        try:
            args, kwargs = map_aggregate(node.args, value), map_aggregate(node.kwargs, value)
            result = as_it_was(node.meta.get("val"), self._symbols)
        except LookupError:
            return None
        results = list(result) if isinstance(result, tuple | list) else [result]
        return op_of(node.target, args, kwargs, [t for t in results if hasattr(t, "dtype")])


def _values(node: Any) -> list[Any]:
    return [n.meta.get("val") for n in (node, *node.all_input_nodes)]


def _on_gpu(op: rules.Op) -> bool:
    return any(is_on(t, "cuda") for t in (*op.read, *op.written))


# Elements to which Inductor may pad the sides of a product: torch/_inductor/fx_passes/pad_mm.py.
_ALIGNMENT = {"torch.float16": 8, "torch.bfloat16": 8, "torch.float32": 4}


def may_be_padded(op: rules.Op) -> bool:
    """Whether Inductor may pad the operands of a matrix product, by a kernel of its own for each.

    On a GPU it times both ways and takes the faster, so that nobody can tell beforehand: the same
    function came out with 15, 16 and 17 kernels in runs on an H200.
    """
    if op.name not in ("mm", "addmm", "bmm"):
        return False
    one, other = [t for t in op.args if hasattr(t, "dtype")][-2:]
    alignment = _ALIGNMENT.get(str(one.dtype))
    return alignment is not None and any(
        int(n) % alignment for n in (*one.shape[-2:], other.shape[-1])
    )


def _write_out_scalars(module: Any, original: Any) -> None:
    """Constants of one element as what makes them: Inductor reads their value, a fake has none."""
    import torch

    for node in module.graph.find_nodes(op="get_attr"):
        value = getattr(original, node.target)
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            with module.graph.inserting_before(node):
                device = torch.device(_TO_LOWER[device_of(value).type])
                options = {"dtype": value.dtype, "device": device, "pin_memory": False}
                made = module.graph.call_function(
                    torch.ops.aten.full.default, (list(value.shape), value.item()), options
                )
            # The line is that of what takes it: a constant itself remembers none.
            made.meta = dict(next((user.meta for user in node.users), node.meta))
            node.replace_all_uses_with(made)
            module.graph.erase_node(node)


def _retargeted(graph: Graph, scalars: Scalars) -> tuple[Any, list[Any]]:
    """A copy of a graph with fake CUDA tensors for those of the GPU, its values worked out anew."""
    import torch

    mode = adapter.new_fake_mode(graph.inputs)

    def fake(value: Any) -> Any:
        if isinstance(value, torch.fx.GraphModule):  # a branch, or the body of a loop
            return _copied(value, fake)
        if not isinstance(value, torch.Tensor):
            return value
        there = "cpu" if adapter.unique_id(value) in scalars else _TO_LOWER[device_of(value).type]
        return adapter.fake_like(value, there, mode)

    module = _copied(graph.module, fake)
    inputs = [fake(value) for value in graph.inputs]
    with torch.no_grad():
        _propagate(module, mode, inputs)
    return module, inputs


# What an op was given when it was traced: Inductor traces with it what a mutating op is made of.
_GIVEN = "eager_input_vals"


def _copied(original: Any, fake: Callable[[Any], Any]) -> Any:
    """A copy of a module of graphs whose tensors and devices are those of the lowering."""
    import torch

    copy = torch.fx.Graph()
    output = copy.graph_copy(original.graph, {})
    last = next(n for n in reversed(original.graph.nodes) if n.op == "output")
    copy.output(output).meta = dict(last.meta)
    for node in copy.nodes:
        if _GIVEN in node.meta:
            node.meta[_GIVEN] = torch.fx.node.map_aggregate(node.meta[_GIVEN], fake)
    names = {n.target for n in original.graph.nodes if n.op == "get_attr"}
    attributes = {n: fake(getattr(original, n)) for n in names}
    module = torch.fx.GraphModule(attributes or torch.nn.Module(), copy)
    _write_out_scalars(module, original)
    _place(module.graph, _TO_LOWER)
    module.recompile()
    return module


def _propagate(module: Any, mode: Any, inputs: Sequence[Any]) -> Any:
    """Work the values of a module's graph out anew, in its branches too; what it gives."""
    import torch
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    class Propagation(FakeTensorProp):  # type: ignore[misc]
        """Follows the graphs that ops take as arguments."""

        def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
            value = super().get_attr(target, args, kwargs)
            if not isinstance(value, torch.fx.GraphModule):
                return value
            return lambda *given: _propagate(value, mode, given)

    return Propagation(module, mode).propagate_dont_convert_inputs(*inputs)
