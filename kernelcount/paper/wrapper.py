"""The code that Inductor writes round its kernels -> every call in it, in order, classified.

The code is parsed and never run. A call that is none of those known here is kept as `unknown`, so
that a new torch shows up as a note and not as a wrong count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from kernelcount.model import SyncKind

Kind = Literal["generated", "library", "copy", "sync", "wait", "branch", "unknown"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that puts something on the GPU, or may. `name` is as the code has it.

    `sync`: a value is read; `wait`: the CPU waits, and nothing runs on the GPU.
    `branch`: it is made in some cases only, or many times. `wait`: how the CPU waits in it for the
    GPU; None where it does not, or the code does not say. `line`: where in the code it stands.
    """

    kind: Kind
    name: str
    wait: SyncKind | None = None
    line: int = field(default=0, compare=False)


def op_of(written: str) -> str:
    """The op of a library call, without namespace and overload: mm, of ``extern_kernels.mm``."""
    return written.split(".")[1] if "." in written else written


# They check, slice, allocate, free, or talk to the host: nothing runs on a GPU. From
# torch/_inductor/codegen/wrapper.py (2.11 to 2.14).
_HOST = frozenset(
    {
        "AsyncCompile", "CompiledFxGraph", "DeviceGuard", "Generator", "Runner",
        "SimpleNamespace", "Stream", "_DeviceGuard", "_empty_strided", "_reinterpret_tensor",
        "_set_device", "alloc_from_pool", "append", "as_strided", "bool", "clear",
        "copy_if_misaligned", "copy_misaligned", "current_stream", "device", "empty_strided",
        "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda",
        "empty_strided_mps", "empty_strided_mtia", "empty_strided_xpu", "float",
        "get_raw_stream", "int", "isinstance", "len", "list", "max", "min", "nullcontext",
        "numel", "partition", "print", "range", "record_stream", "recursively_apply_fns",
        "reinterpret_tensor", "set_device", "size", "str", "stride", "synchronize", "tuple",
        "type", "view", "wait_stream",
    }
)  # fmt: skip
_HOST_PREFIXES = ("assert_", "check_memory_step", "track_tensor")
_NOT_THE_CALL = frozenset({"get_args", "benchmark_compiled_module"})

# Host-side kernels: Inductor's C++ for CPU tensors in the same graph.
_CPU_KERNELS = ("cpp_", "graph_")


def calls(code: str) -> list[Call]:
    """The calls of the functions that run when the compiled graph is called, in source order."""
    tree = ast.parse(code)
    names = {**dict(_made(tree)), **dict(_aliases(tree))}
    found: list[tuple[int, int, Call]] = []
    functions = {f.name: f for f in _functions(tree)}
    branches = {name for name in functions if not _RUNS.match(name)}
    for name, function in functions.items():
        for node, certain in _parts(function) if name not in branches else ():
            called = ast.unparse(node.func).removeprefix("self.")
            call = Call("branch", called) if called in branches else _classified(node, names)
            if call is not None and not certain:
                call = Call("branch", call.name)
            if call is not None:
                found.append((node.lineno, node.col_offset, call))
    ordered = sorted(found, key=lambda item: item[:2])
    return [replace(call, line=line) for line, _, call in ordered]


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that the module gives to others, such as ``aten = torch.ops.aten``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, ast.unparse(node.value)


def _made(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Buffers, with the function that makes each: ``buf0 = empty_strided_cpu(...)``.

    One that takes the place of another (``buf3 = buf1``) is made by what made that.
    """
    made: dict[str, str] = {}
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    for node in sorted(assigned, key=lambda a: a.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id.startswith("buf"):
                if isinstance(node.value, ast.Call):
                    made[target.id] = ast.unparse(node.value.func)
                elif isinstance(node.value, ast.Name):
                    made[target.id] = made.get(node.value.id, "")
    yield from made.items()


def _parts(node: ast.AST, certain: bool = True) -> Iterator[tuple[ast.Call, bool]]:
    """The calls inside, and whether each is made once and in any case."""
    if isinstance(node, ast.Raise):  # of a check on the host, as Dynamo puts in for a value
        return
    branches = isinstance(node, ast.If | ast.While | ast.For)
    for name, value in ast.iter_fields(node):
        inside = certain and not (branches and name in ("body", "orelse"))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Call):
                yield child, inside
            if isinstance(child, ast.AST):
                yield from _parts(child, inside)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """``call``, the partitions that it calls, and branches, as functions or methods of Runner."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name not in _NOT_THE_CALL:
            yield node
        elif isinstance(node, ast.ClassDef):
            inner = (m for m in node.body if isinstance(m, ast.FunctionDef))
            yield from (m for m in inner if not m.name.startswith("__") and m.name not in _PLUMBING)


# The rest are branches and bodies of loops: whether and how often they run is not in the code.
_RUNS = re.compile(r"call|partition_\d+")
_PLUMBING = frozenset({"recursively_apply_fns"})


def _copying(node: ast.Call, target: str, names: dict[str, str]) -> SyncKind | None:
    """How a copy is waited for, which Inductor writes as ``target.copy_(source, non_blocking)``."""
    at_once = node.args[1] if len(node.args) > 1 else None
    if isinstance(at_once, ast.Constant) and at_once.value is True:
        return None
    made = names.get(target, "")
    if "empty_strided_cpu" in made:
        return "copy to host"
    return "pageable copy" if "empty_strided" in made else None


def _of_library(name: str) -> Call:
    """A call of an op; those that wait for a stream, an event or all of a device do no more."""
    waits = name.startswith("streams.synchronize_")
    return Call("wait", name, wait="explicit") if waits else Call("library", name)


def _classified(node: ast.Call, names: dict[str, str]) -> Call | None:
    """What a call is, or None where it puts nothing on the GPU."""
    written = ast.unparse(node.func)
    root, _, rest = written.partition(".")
    named = root in names and not root.startswith("buf")  # what a buffer is asked is no call of it
    full = (f"{names[root]}.{rest}" if rest else names[root]) if named else written
    last = written.rpartition(".")[2]
    if last == "run" and rest:
        return None if root.startswith(_CPU_KERNELS) else Call("generated", root)
    if full.startswith("torch.ops.inductor.") and "empty_strided" in full:
        return None
    if full.startswith(("torch.ops.", "extern_kernels.")):
        return _of_library(full.removeprefix("torch.ops."))
    if last == "copy_":
        return Call("copy", "copy_", wait=_copying(node, root, names))
    if last == "item":
        return Call("sync", written, wait="item")
    if last in _HOST or last.startswith(_HOST_PREFIXES) or root.startswith(_CPU_KERNELS):
        return None
    if full.startswith(("torch.empty", "torch.cuda.", "torch._C.")) or root in ("self", "triton"):
        return None
    return Call("unknown", written)
