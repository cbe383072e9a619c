"""Adapter to torch's private names: all that counting on paper takes from inside of torch.

Each name stands in `NAMES` and has a contract test. Where this torch lacks one, `check` says so and
nothing is counted: a wrong count would be worse than none.

A GPU tensor is played by a ``meta`` tensor, which has a shape and no memory, while the user's code
and Dynamo are at work; by a fake CPU tensor from AOTAutograd to Inductor's joint passes, which fold
constants on real memory; and by a fake CUDA tensor where Inductor schedules and writes its code.
Host tensors are meta in the middle stage. Autograd never sees a CUDA tensor: on a CPU build of
torch that ends the process.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from types import FrameType, SimpleNamespace
from typing import Any
from unittest import mock

from kernelcount.errors import NotMeasuredError
from kernelcount.origins.callers import innermost
from kernelcount.paper import accesses, cards

NAMES = (
    "torch._TorchCompileInductorWrapper",
    "torch.Tensor._is_zerotensor",
    "torch._C._conv_determine_backend_memory_format",
    "torch._C._current_autograd_node",
    "torch._C._dispatch_has_kernel_for_dispatch_key",
    "torch._C._ExcludeDispatchKeyGuard",
    "torch._C._IncludeDispatchKeyGuard",
    "torch._C._get_dispatch_mode",
    "torch._C._set_grad_enabled",
    "torch._C._TorchDispatchModeKey.FAKE",
    "torch._C.DispatchKey.AutocastCUDA",
    "torch._C.DispatchKey.CompositeImplicitAutograd",
    "torch._dynamo.callback.callback_handler.register_end_callback",
    "torch._dynamo.callback.callback_handler.register_start_callback",
    "torch._dynamo.callback.callback_handler.end_callbacks",
    "torch._dynamo.callback.callback_handler.start_callbacks",
    "torch._dynamo.config.capture_dynamic_output_shape_ops",
    "torch._dynamo.config.capture_scalar_outputs",
    "torch._dynamo.config.reorderable_logging_functions",
    "torch._dynamo.device_interface.CudaInterface.get_device_properties",
    "torch._dynamo.device_interface.CudaInterface.is_bf16_supported",
    "torch._dynamo.eval_frame.skip_code",
    "torch._dynamo.exc.BackendCompilerFailed",
    "torch._dynamo.exc.InternalTorchDynamoError",
    "torch._dynamo.exc.TorchRuntimeError",
    "torch._dynamo.trace_rules.get_torch_obj_rule_map",
    "torch._dynamo.utils.run_node",
    "torch._dynamo.variables.optimizer.OptimizerVariable._set_capturable",
    "torch._dynamo.variables.SkipFunctionVariable",
    "torch._dynamo.variables.tensor.TensorVariable.specialize",
    "torch._dynamo.variables.torch.TorchInGraphFunctionVariable._get_handlers",
    "torch._functorch.aot_autograd.make_boxed_func",
    "torch._functorch.config.enable_autograd_cache",
    "torch._guards.detect_fake_mode",
    "torch._inductor.compile_fx.compile_fx",
    "torch._inductor.compile_fx.compile_fx_inner",
    "torch._inductor.config.compile_threads",
    "torch._inductor.config.fx_graph_cache",
    "torch._inductor.config.fx_graph_remote_cache",
    "torch._inductor.config.joint_custom_pre_pass",
    "torch._inductor.dependencies.index_vars_squeeze",
    "torch._inductor.fx_passes.reinplace._generalized_scatter",
    "torch._inductor.fx_passes.reinplace._inplace_generalized_scatter",
    "torch._inductor.fx_passes.reinplace.inplaceable_ops",
    "torch._inductor.graph.GraphLowering.can_inline_constant",
    "torch._inductor.graph.GraphLowering.codegen",
    "torch._inductor.graph.GraphLowering.compile_to_module",
    "torch._inductor.inductor_prims.lookup_seed.prim_meta_impl",
    "torch._inductor.ops_handler.DefaultHandler",
    "torch._inductor.runtime.hints.DeviceProperties.create.cache_clear",
    "torch._inductor.scheduler.BaseSchedulerNode.get_read_write_buffer_accesses",
    "torch._inductor.scheduler.has_triton",
    "torch._inductor.virtualized.V.set_ops_handler",
    "torch._neg_view",
    "torch._ops.HigherOrderOperator",
    "torch._ops.OpOverload.py_impl",
    "torch._prims.TensorMeta",
    "torch._subclasses.fake_tensor.FakeTensor.device",
    "torch._subclasses.fake_tensor.FakeTensorMode.dispatch",
    "torch.accelerator.synchronize",
    "torch.autograd.forward_ad._current_level",
    "torch.cuda._lazy_init",
    "torch.fx.experimental.symbolic_shapes.free_unbacked_symbols",
    "torch.fx.experimental.symbolic_shapes.has_free_symbols",
    "torch.optim.optimizer._get_fused_kernels_supported_devices",
    "torch.ops.aten.relu.default._dispatch_cache",
    "torch.ops.higher_order.cond.py_kernels",
    "torch.ops.aten.relu.default._op_dk",
    "torch.ops.aten.relu.default._schema.is_mutable",
    "torch.ops.aten.relu.default._schema.returns",
    "torch.ops.aten.relu.default.py_kernels",
    "torch.library.Library._destroy",
    "torch.overrides._get_current_function_mode_stack",
    "torch.utils._device.DeviceContext",
    "torch.utils._foreach_utils._get_foreach_kernels_supported_devices",
    "torch.utils._python_dispatch.TorchDispatchMode",
    "torch.utils._sympy.value_ranges.bound_sympy",
    "torch.utils._triton.triton_hash_with_backend",
)

# What asks a tensor for its device in order to decompose or replace an op: on paper it is CUDA.
_DECOMPOSING = (
    "torch._decomp",
    "torch._inductor.decomposition",
    "torch._inductor.fx_passes.decompose_mem_bound_mm",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._prims_common",
    "torch._refs",
)

# Leaves out the work behind a result on meta, since nobody could read it: here it is the host's.
_EMPTIES_META = ("torch._inductor.fx_passes.joint_graph", "visit")


def resolve(name: str) -> Any:
    """The object of a dotted name. Raises AttributeError or ImportError where there is none."""
    parts = name.split(".")
    for i in range(len(parts) - 1, 0, -1):
        try:
            value: Any = import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            value = getattr(value, part)
        return value
    raise ImportError(name)


OLDEST = (2, 11)
"""The oldest torch that counts on paper were held against: tests/paper passes on it."""


def check() -> None:
    """Raises NotMeasuredError where this torch lacks a name that the count depends on, or is old.

    An old one may have every name and mean another thing by it.
    """
    import torch

    version = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
    if version < OLDEST:
        raise NotMeasuredError(
            f"cannot count on paper with torch {torch.__version__}: it is older than "
            f"{'.'.join(map(str, OLDEST))}; --device cpu counts operations"
        )
    lacking: list[str] = []
    for name in NAMES:
        try:
            resolve(name)
        except (AttributeError, ImportError):
            lacking.append(name)
    if lacking:
        raise NotMeasuredError(
            f"cannot count on paper with torch {torch.__version__}: it lacks {', '.join(lacking)}; "
            "torch 2.11 to 2.14 are known to have all that is needed"
        )


def tracing() -> bool:
    """Whether torch is tracing just now, so that ops do not run for the user."""
    import torch

    key = torch._C._TorchDispatchModeKey.FAKE
    return torch._C._get_dispatch_mode(key) is not None


def is_fake(kind: type) -> bool:
    """Whether a tensor of this class belongs to a trace."""
    from torch._subclasses.fake_tensor import FakeTensor

    return issubclass(kind, FakeTensor)


def is_composite(op: Any) -> bool:
    """Whether eager code has an overload made of other ops, on every device.

    Decompositions in Python are for traces; they take ops apart that eager code runs whole.
    """
    import torch

    key = "CompositeImplicitAutograd"
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))


def decomposed(op: Any, args: Any, kwargs: Any) -> Any:
    """What an op that `is_composite` gives, by the ops that eager code has it made of."""
    import torch

    return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def is_higher_order(op: Any) -> bool:
    """Whether it is no op on tensors, but takes functions, as torch.cond does."""
    import torch

    return isinstance(op, torch._ops.HigherOrderOperator)


def in_eager(op: Any, args: Any, kwargs: Any) -> Any:
    """What an op that `is_higher_order` gives in eager code, where a mode sees what it runs.

    Raises NotMeasuredError for one that runs something else than ops.
    """
    import torch

    kernel = op.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
    name = op.name()
    if kernel is None or name.startswith("triton_"):
        raise NotMeasuredError(f"on paper it is not known what {name} runs")
    # Some refuse to run under a mode: elsewhere none would be left when they are reached.
    module, asked = import_module(kernel.__module__), "_get_current_dispatch_mode"
    unseen = mock.patch.object(module, asked, return_value=None) if hasattr(module, asked) else None
    with unseen or nullcontext():
        return kernel(*args, **kwargs)


def goes_forward() -> bool:
    """Whether tangents are worked out beside values just now."""
    from torch.autograd import forward_ad

    return bool(forward_ad._current_level >= 0)


def is_zero_tangent(tensor: Any) -> bool:
    """Whether it stands for zeros of its shape, and has no memory, as a tangent may in torch."""
    return bool(tensor._is_zerotensor())


def backward_node() -> str | None:
    """The name of the gradient that is worked out just now, such as ``MulBackward0``, or None."""
    import torch

    node = torch._C._current_autograd_node()
    return None if node is None else str(node.name())


def dispatch_mode() -> Any:
    """The class of modes that see every op below autograd."""
    from torch.utils._python_dispatch import TorchDispatchMode

    return TorchDispatchMode


def parameters_of(op: Any) -> list[Any]:
    """The parameters of an overload's schema: name, default_value, alias_info, is_out of each."""
    return list(op._schema.arguments)


def is_mutable(op: Any) -> bool:
    """Whether an overload changes any of its arguments."""
    return bool(op._schema.is_mutable)


def gives_something(op: Any) -> bool:
    """Whether an overload returns anything; the node of a graph may bear values all the same."""
    return bool(op._schema.returns)


def negated(tensor: Any) -> Any:
    """A view that gives the elements of `tensor` with the other sign, as ``x.conj().imag`` has."""
    import torch

    return torch._neg_view(tensor)


def name_of(op: Any) -> tuple[str, str]:
    """The namespace of an op, and its name without overload."""
    namespace, _, name = op.name().partition(".")[0].partition("::")
    return namespace, name


def is_op(value: Any) -> bool:
    """Whether a graph's node calls an overload of an op."""
    import torch

    return isinstance(value, torch._ops.OpOverload)


def unregister(library: Any) -> None:
    """Take back what a torch.library.Library has registered."""
    library._destroy()


def is_pointwise(op: Any) -> bool:
    """Whether torch tags an overload as working on each element by itself."""
    import torch

    return torch.Tag.pointwise in op.tags


def fake_like(tensor: Any, device: str, mode: Any) -> Any:
    """A fake tensor on `device`, even one that is not there, shaped and strided like `tensor`."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    # A tensor made under inference mode could not be traced.
    with torch.inference_mode(False), torch.no_grad():
        meta = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return FakeTensor(mode, meta, torch.device(device))


def hangs_on_values(value: Any) -> bool:
    """Whether a traced tensor's shape, or a traced number, is told by values alone."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return (hasattr(value, "dtype") or is_traced_number(value)) and bool(
        free_unbacked_symbols(value)
    )


def is_traced_number(value: Any) -> bool:
    """Whether it stands for a whole number in a trace."""
    import torch

    return isinstance(value, torch.SymInt)


def value_symbol(value: Any) -> Any:
    """The symbol that a traced number is, where it hangs on values; None for anything else."""
    if not is_traced_number(value) or not hangs_on_values(value):
        return None
    expression = value.node.expr
    return expression if expression.is_Symbol else None


def as_number(size: Any, symbols: dict[Any, int]) -> int:
    """A traced number with `symbols` put in. Raises LookupError where one is not among them."""
    if not is_traced_number(size):
        return int(size)
    shapes = size.node.shape_env
    number = shapes.replace(size.node.expr).xreplace({**shapes.backed_var_to_val, **symbols})
    if not number.is_Integer:
        raise LookupError(str(size))
    return int(number)


def resized(tensor: Any, shape: Sequence[int], stride: Sequence[int]) -> Any:
    """A fake tensor like this one, of another shape."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    meta = torch.empty_strided(shape, stride, dtype=tensor.dtype, device="meta")
    return FakeTensor(tensor.fake_mode, meta, tensor.device)


def fake_mode_of(values: Sequence[Any]) -> Any:
    """The fake mode that these tensors, or the trace that is going on, belong to."""
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    return detect_fake_mode(list(values)) or FakeTensorMode(allow_non_fake_inputs=True)


def new_fake_mode(values: Sequence[Any]) -> Any:
    """A fake mode of its own, in which the symbols of these tensors' shapes go on."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(shape_env=fake_mode_of(values).shape_env)


def unique_id(tensor: Any) -> int:
    """What is the same for tensors that share their memory, as long as one of them lives."""
    return storage_id(tensor.untyped_storage())


def storage_id(storage: Any) -> int:
    """The address of the object that C++ has for a storage, not of its memory."""
    return int(storage._cdata)


def default_device() -> Any:
    """The device on which torch makes tensors by default, or None where nobody has said.

    torch.get_default_device makes a tensor to tell.
    """
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._device import DeviceContext

    modes = reversed(_get_current_function_mode_stack())
    return next((mode.device for mode in modes if isinstance(mode, DeviceContext)), None)


def overload_of(name: str) -> Any:
    """The overload of an aten op, such as ``sum.dim_IntList``; None where there is none."""
    import torch

    op, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, op, None)
    return getattr(packet, overload or "default", None)


def is_cast(op: Any) -> bool:
    """Whether CUDA's autocast acts on an overload."""
    import torch

    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "AutocastCUDA"))


def under_autocast(library: Any, name: str, function: Any) -> None:
    """Have torch's dispatcher call `function` for an op while CUDA's autocast is on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it stands in for torch's own is the purpose
        library.impl(name, function, "AutocastCUDA", allow_override=True)


def without_autocast() -> Any:
    """A context in which CUDA's autocast does not act."""
    import torch

    key = torch._C.DispatchKey.AutocastCUDA
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key))


@contextmanager
def autocast_on_stand_in(left: Callable[[], None]) -> Iterator[None]:
    """Have CUDA's autocast act on every tensor; `left` is called when the outermost is left."""
    import torch

    leave = torch.autocast.__exit__

    def exited(self: Any, *raised: Any) -> Any:
        result = leave(self, *raised)
        if torch.autocast_increment_nesting() == 1:
            left()
        torch.autocast_decrement_nesting()
        return result

    key = torch._C.DispatchKey.AutocastCUDA
    with mock.patch.object(torch.autocast, "__exit__", exited):
        with torch._C._IncludeDispatchKeyGuard(key):
            yield


@contextmanager
def made_on_the_host() -> Iterator[None]:
    """Put the default device aside that the user's code may have set."""
    import torch

    if default_device() is None:
        yield
        return
    with torch.device("cpu"):
        yield


def quiet_lowering() -> Any:
    """Leave out what Inductor logs of a kernel that it cannot write: the error is told anyway.

    torch/_inductor/scheduler.py, _codegen: "Error in codegen for ", and the whole node.
    """
    return _unlogged("torch._inductor.scheduler", "Error in codegen for ")


@contextmanager
def _unlogged(name: str, beginning: str) -> Iterator[None]:
    """Leave out what this logger says that begins like this."""
    logger = logging.getLogger(name)

    def told(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(beginning)

    logger.addFilter(told)
    try:
        yield
    finally:
        logger.removeFilter(told)


def cuda_not_started() -> Any:
    """A patch by which torch does not try to start CUDA when ``device="cuda"`` is asked for.

    torch asks once a process: afterwards it holds CUDA for started. So a process that has counted
    on paper is no place to count on a GPU; `runners.in_worker` gives each job another.
    """
    import torch

    return mock.patch.object(torch.cuda, "_lazy_init", return_value=None)


@contextmanager
def traced_like(answers: dict[str, Any]) -> Iterator[None]:
    """Have Dynamo trace each function as it does torch's own of that dotted name.

    Without a rule it would trace into the function, where torch's own may break the graph.
    """
    from torch._dynamo.trace_rules import get_torch_obj_rule_map
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    # Both are made when they are first asked for, and must not be made of what stands in.
    rules = get_torch_obj_rule_map()
    TorchInGraphFunctionVariable._get_handlers()
    added = {}
    for name, answer in answers.items():
        try:
            real = resolve(f"torch.{name}")
        except (AttributeError, ImportError):
            continue
        if real in rules and answer not in rules:
            added[answer] = rules[real]
    rules.update(added)
    try:
        yield
    finally:
        for answer in added:
            del rules[answer]


@contextmanager
def traced_as(functions: dict[Any, Any]) -> Iterator[None]:
    """Have Dynamo trace each of these functions as the one of torch's that it is given for.

    A graph then calls torch's own; guards are on the function that stands there, which must stay.
    """
    from torch._dynamo.trace_rules import get_torch_obj_rule_map
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    rules, handlers = get_torch_obj_rule_map(), TorchInGraphFunctionVariable._get_handlers()

    for function, real in functions.items():
        rules[function], handlers[function] = rules[real], _handler(real)
    try:
        yield
    finally:
        for function in functions:
            del rules[function], handlers[function]


def _handler(real: Any) -> Callable[..., Any]:
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    def handled(_: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
        return TorchInGraphFunctionVariable(real).call_function(tx, args, kwargs)

    return handled


@contextmanager
def waits_traced(functions: dict[Any, Any]) -> Iterator[None]:
    """Have Dynamo do with each of these functions as with the one of torch's that it is given for.

    These wait for a device. With a handler such a call becomes an op of the graph (torch 2.13).
    What has a rule and no handler is called while AOTAutograd traces, and is gone from the graph,
    as torch.accelerator.synchronize is in torch 2.11: no code that does nothing needs a rule. For
    all other Dynamo breaks the graph, as for torch.cuda.synchronize in torch 2.11.
    """
    from torch._dynamo.trace_rules import get_torch_obj_rule_map
    from torch._dynamo.variables import SkipFunctionVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    rules, handlers = get_torch_obj_rule_map(), TorchInGraphFunctionVariable._get_handlers()
    for function, real in functions.items():
        if real in handlers:
            rules[function], handlers[function] = rules[real], _handler(real)
        elif real not in rules:
            rules[function] = SkipFunctionVariable
            never_compiled(function)
    try:
        yield
    finally:
        for function in functions:
            rules.pop(function, None)
            handlers.pop(function, None)


def never_compiled(function: Any) -> None:
    """Have Dynamo let the function run as it is, where it is called from code not compiled."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(function.__code__)


def _with_index(value: Any) -> Any:
    """The device ``cuda`` as ``cuda:0``: without an index C++ would look for a CUDA device."""
    import torch

    bare = str(value) == "cuda" and isinstance(value, str | torch.device)
    return torch.device("cuda:0") if bare else value


@contextmanager
def gpu_in_traces(stand_in: Callable[[], str]) -> Iterator[None]:
    """Have Dynamo trace ``device="cuda"`` with `stand_in()` as the device, and call it CUDA."""
    import torch
    import torch._dynamo.utils
    from torch._dynamo.variables.tensor import TensorVariable
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.node import map_aggregate

    specialize, run_node = TensorVariable.specialize, torch._dynamo.utils.run_node

    def run(tracer: Any, node: Any, args: Any, kwargs: Any, module: Any) -> Any:
        args, kwargs = map_aggregate(args, _with_index), map_aggregate(kwargs, _with_index)
        if node.op == "call_method" and node.target == "cuda":
            return args[0].to("cuda:0")
        return run_node(tracer, node, args, kwargs, module)

    def as_cuda(value: Any) -> dict[str, Any]:
        props: dict[str, Any] = specialize(value)
        if props["device"].type == "meta":
            props["device"] = torch.device("cuda:0")
        return props

    with (
        mock.patch.object(torch._dynamo.utils, "run_node", run),
        mock.patch.object(FakeTensorMode, "dispatch", _dispatched_to(stand_in)),
        mock.patch.object(TensorVariable, "specialize", staticmethod(as_cuda)),
    ):
        yield


def _dispatched_to(stand_in: Callable[[], str]) -> Callable[..., Any]:
    """FakeTensorMode.dispatch, with `stand_in()` for the GPU."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    dispatch, aten = FakeTensorMode.dispatch, torch.ops.aten
    indexing = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default)

    def on_stand_in(value: Any) -> Any:
        cuda = isinstance(value, torch.device) and value.type == "cuda"
        return torch.device(stand_in()) if cuda and stand_in() else value

    def faked(self: Any, value: Any) -> Any:
        real = isinstance(value, torch.Tensor) and not is_fake(type(value))
        return self.from_tensor(value) if real and value.device.type == "meta" else value

    def traced(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {k: on_stand_in(v) for k, v in (kwargs or {}).items()}
        args = tuple(map(on_stand_in, args))
        if func in indexing:  # by a list, of which C++ makes a tensor where the indexed one is
            args = (args[0], [faked(self, index) for index in args[1]], *args[2:])
        return dispatch(self, func, types, args, kwargs)

    return traced


@contextmanager
def optimizers_on_gpu(on_gpu: Callable[[Any], bool]) -> Iterator[None]:
    """Have optimizers whose parameters are `on_gpu`, and what works on lists, do as on a GPU.

    Dynamo makes those that have not stepped yet `capturable`, with step counts on the GPU, and
    calls their ``_init_group`` for real, which asks whether fused steps are to be had. Clipping
    gradients asks whether ops on lists are.
    """
    from torch._dynamo.variables.optimizer import OptimizerVariable
    from torch.optim import optimizer
    from torch.utils import _foreach_utils

    capturable = OptimizerVariable._set_capturable
    fused = optimizer._get_fused_kernels_supported_devices
    listed = _foreach_utils._get_foreach_kernels_supported_devices

    def set_capturable(self: Any, tx: Any) -> Any:
        for group in self.value.param_groups:
            new = all(on_gpu(p) and p not in self.value.state for p in group["params"])
            if "capturable" in group and new:
                group["capturable"] = True
        return capturable(self, tx)

    def with_fused() -> list[str]:
        return [*fused(), "meta"]

    def with_lists() -> list[str]:
        return [*listed(), "meta"]

    swap = mock.patch.object
    with (
        swap(OptimizerVariable, "_set_capturable", set_capturable),
        swap(optimizer, "_get_fused_kernels_supported_devices", with_fused),
        swap(_foreach_utils, "_get_foreach_kernels_supported_devices", with_lists),
    ):
        yield


@contextmanager
def decomposed_as_on_cuda(stand_in: Callable[[], str]) -> Iterator[None]:
    """Have decompositions told that a tensor is on CUDA while `stand_in()` is the CPU."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    real = FakeTensor.device

    def told(tensor: Any, asking: FrameType) -> Any:
        device = real.__get__(tensor)
        name = asking.f_globals.get("__name__", "")
        if device.type == "cpu" == stand_in() and name.startswith(_DECOMPOSING):
            return torch.device("cuda:0")
        if device.type == "meta" and (name, asking.f_code.co_name) == _EMPTIES_META:
            return torch.device("cpu")
        return device

    def device(self: Any) -> Any:
        return told(self, sys._getframe(1))

    def is_cuda(self: Any) -> bool:
        return bool(told(self, sys._getframe(1)).type == "cuda")

    with (
        mock.patch.object(FakeTensor, "device", property(device, real.fset)),
        mock.patch.object(FakeTensor, "is_cuda", property(is_cuda), create=True),
    ):
        yield


@contextmanager
def told_of_compiling(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Call `begin` and `end` round whatever torch compiles, a backward graph included."""
    from torch._dynamo.callback import callback_handler

    def started(_: Any) -> None:
        begin()

    def ended(_: Any) -> None:
        end()

    callback_handler.register_start_callback(started)
    callback_handler.register_end_callback(ended)
    try:
        yield
    finally:
        callback_handler.remove_start_callback(started)
        callback_handler.remove_end_callback(ended)


def inside_compiler(error: BaseException) -> BaseException | None:
    """The exception that torch's compiler wrapped as a failure of its own; None for another."""
    from torch._dynamo import exc

    failures = (exc.BackendCompilerFailed, exc.InternalTorchDynamoError, exc.TorchRuntimeError)
    if not isinstance(error, failures):
        return None
    inner = getattr(error, "inner_exception", None) or error.__cause__
    return error if inner is None else inside_compiler(inner) or inner


@contextmanager
def inductor_settings(first: Callable[[Any], None]) -> Iterator[None]:
    """Inductor without caches of graphs: a hit would hide the graph from whoever counts.

    `first` is called with each graph before any other of the joint passes.
    """
    import torch._functorch.config
    import torch._inductor.config

    with (
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch._inductor.config.patch(
            fx_graph_cache=False,
            fx_graph_remote_cache=False,
            compile_threads=1,
            joint_custom_pre_pass=first,
        ),
    ):
        yield


def broke_at(graph: Any) -> tuple[str, int | None] | None:
    """The user's file and line at which one of Dynamo's graphs broke off; None: it did not."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break or not reason.user_stack:
        return None
    at = innermost(reason.user_stack)
    return at.filename, at.lineno


def set_grad_enabled() -> Callable[[bool], None]:
    """What stands in a graph where gradients are switched on or off."""
    import torch

    function: Callable[[bool], None] = torch._C._set_grad_enabled
    return function


@contextmanager
def values_captured(*, prints: bool = True) -> Iterator[None]:
    """Have Dynamo take into its graphs what it else breaks them for: values, sizes, prints.

    `prints` False: what is printed and logged is left out; a value cannot be printed later on.
    """
    import logging

    import torch._dynamo.config

    said = {print, warnings.warn, *(getattr(logging.Logger, n) for n in _LOGS)}
    settings = torch._dynamo.config.patch(
        capture_scalar_outputs=True,
        capture_dynamic_output_shape_ops=True,
        reorderable_logging_functions=said if prints else set(),
        ignore_logging_functions=set() if prints else said,
    )
    # torch 2.11 sorts these functions, which have no order, for a log of its own.
    with settings, _unlogged("torch._dynamo.metrics_context", "Unexpected exception logging"):
        yield


_LOGS = ("debug", "info", "warning", "error", "critical", "exception", "log")


@contextmanager
def caches_forgotten() -> Iterator[None]:
    """Begin with nothing compiled. Whoever is told of compiling goes on being told."""
    import torch
    from torch._dynamo.callback import callback_handler

    kept = [*callback_handler.start_callbacks], [*callback_handler.end_callbacks]
    torch.compiler.reset()
    callback_handler.start_callbacks[:], callback_handler.end_callbacks[:] = kept
    yield


def copied(graph: Any) -> Any:
    """A copy of one of Dynamo's graphs, to be changed; Dynamo goes on with its own."""
    import torch

    copies: dict[Any, Any] = {}
    copy = torch.fx.Graph()
    copy.output(copy.graph_copy(graph.graph, copies))
    module = torch.fx.GraphModule(graph, copy)
    module.meta = dict(graph.meta)
    if hasattr(graph, "_param_name_to_source"):
        module._param_name_to_source = graph._param_name_to_source
    for node in graph.graph.find_nodes(op="placeholder"):
        copies[node]._dynamo_source = getattr(node, "_dynamo_source", None)
    return module


def with_symbols(graph: Any, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of one of Dynamo's graphs, as it traced them where their sizes are symbols.

    What Dynamo gives a backend has the sizes of the call for which it compiles.
    """
    from torch.fx.experimental.symbolic_shapes import has_free_symbols

    traced = (n.meta.get("example_value") for n in graph.graph.find_nodes(op="placeholder"))

    def symbolic(one: Any) -> bool:
        return hasattr(one, "layout") and has_free_symbols(one)

    pairs = zip(inputs, traced, strict=True)
    return [one if symbolic(one) else value for value, one in pairs]


def as_intermediate(placeholder: Any) -> None:
    """Have AOTAutograd take an input of a graph that Dynamo has not made: no variable's value."""
    placeholder._dynamo_source = None


@contextmanager
def inductor_replaced(backend: Callable[[Any, Sequence[Any]], Any]) -> Iterator[None]:
    """Have torch.compile, wherever it is called, give its graphs to `backend`, not to Inductor."""
    import torch

    def compiled(_: Any, graph: Any, inputs: Sequence[Any]) -> Any:
        return backend(graph, inputs)

    with mock.patch.object(torch._TorchCompileInductorWrapper, "__call__", compiled):
        yield


@contextmanager
def composite(op: Any, implementation: Callable[..., Any]) -> Iterator[None]:
    """Have `op` made of other ops as `implementation` has it, while a trace is made."""
    import torch

    key = torch._C.DispatchKey.CompositeImplicitAutograd
    before = dict(op.py_kernels)
    op.py_kernels[key] = implementation
    op._dispatch_cache.clear()
    try:
        yield
    finally:
        op.py_kernels.clear()
        op.py_kernels.update(before)
        op._dispatch_cache.clear()


def compile_with(
    graph: Any, inputs: Sequence[Any], inner: Callable[..., Callable[[list[Any]], Any]]
) -> Any:
    """Compile one of Dynamo's graphs; `inner` gets what Inductor would lower, and its options.

    `inner` returns what runs in the place of compiled code: a function of a list of arguments.
    """
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._inductor.compile_fx import compile_fx

    def boxed(lowered: Any, examples: Sequence[Any], **options: Any) -> Any:
        run = inner(lowered, list(examples), options)
        return make_boxed_func(lambda *args: run(list(args)))

    return compile_fx(graph, list(inputs), inner_compile=boxed)


@dataclass(frozen=True, slots=True)
class Written:
    """What Inductor wrote for a graph: its Python code, and the bytes that its parts move.

    A part, in order, is what becomes a kernel or a library call; bytes are read and written.
    """

    code: str
    traffic: tuple[tuple[int, int], ...] = ()


# What of Inductor's options decides which kernels there are; the rest is about running them.
_OPTIONS = ("static_input_idxs", "is_backward", "is_inference", "layout_opt")


def lower(
    graph: Any, inputs: Sequence[Any], options: dict[str, Any], sizes: dict[Any, int] | None = None
) -> Written:
    """Let Inductor write the code for `graph`, a graph of fake CUDA tensors, and stop there.

    `sizes`: the numbers behind symbols that hang on values, for what is moved.
    To be called where a card is `believed_in`.
    """
    import torch._inductor.graph
    from torch._inductor.compile_fx import compile_fx_inner

    written: list[Written] = []

    def stopped(lowering: Any) -> Any:
        code, _ = lowering.codegen()
        with accesses.sizes_known(sizes or {}):
            traffic = tuple(t for t in map(_traffic, lowering.scheduler.nodes) if any(t))
        written.append(Written(str(getattr(code, "value", code)), traffic))
        return SimpleNamespace(call=lambda *_: None, recursively_apply_fns=None)

    if not any(node.op.startswith("call") for node in graph.graph.nodes):
        return Written("")  # such a graph it gives back as it is
    lowering = torch._inductor.graph.GraphLowering
    kept = {k: options[k] for k in _OPTIONS if k in options}
    with (
        mock.patch.object(lowering, "compile_to_module", stopped),
        # It would write the values of small constants into the code, and fake ones have none.
        mock.patch.object(lowering, "can_inline_constant", staticmethod(lambda *_: False)),
        fake_mode_of(inputs),
    ):
        compile_fx_inner(graph, list(inputs), **kept)
    if not written:
        if not any(node.op == "call_function" for node in graph.graph.nodes):
            return Written("")  # Inductor writes no code for what computes nothing
        raise NotMeasuredError("Inductor lowered a graph without writing code for it")
    return written[0]


def _traffic(node: Any) -> tuple[int, int]:
    """Bytes of GPU memory that a node reads and writes."""
    kind = type(getattr(node, "node", None)).__name__
    if kind == "MultiOutput":  # it only names one of several results of a library call
        return 0, 0
    on_gpu = node.get_device() is not None and node.get_device().type == "cuda"
    parts = node.get_nodes()
    if all(map(accesses.has_loops, parts)):
        return accesses.of_kernel(parts) if on_gpu else (0, 0)
    if accesses.is_view(node.node):
        return 0, 0
    read, written = _accessed(node, reads=True), _accessed(node, reads=False)
    if kind == "DeviceCopy":  # one of its sides is host memory
        return (0, written) if on_gpu else (read, 0)
    return (read, written) if on_gpu else (0, 0)


def _accessed(node: Any, *, reads: bool) -> int:
    """Bytes of all buffers that a library call reads, or writes: each element once."""
    sizes = node.get_read_write_buffer_accesses(include_reads=reads, include_writes=not reads)
    whole = ((size, accesses.rewritten(name)) for name, size in sizes.items())
    return sum(int(size if known is None else known) for size, known in whole)


def _true_elements(tensor: Any) -> Any:
    import torch

    return torch.ops.aten.nonzero.default(tensor)


@contextmanager
def believed_in(card: cards.Card) -> Iterator[None]:
    """Let Inductor believe that `card` and Triton are there."""
    from torch._inductor.runtime.hints import DeviceProperties

    with ExitStack() as stack:
        for patch in (*_told_of(card), *_without_a_guard()):
            stack.enter_context(patch)
        stack.callback(DeviceProperties.create.cache_clear)
        DeviceProperties.create.cache_clear()
        yield


def _told_of(card: cards.Card) -> Iterator[AbstractContextManager[Any]]:
    """What answers Inductor's questions for the card, Triton and cuDNN."""
    import torch
    import torch.utils._triton as triton
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor import scheduler

    properties = cards.device_properties(card)
    stock = torch._C._conv_determine_backend_memory_format

    def layout(x: Any, weight: Any, backend: Any) -> Any:
        return _cudnn_layout(x, weight) if x.device.type == "cuda" else stock(x, weight, backend)

    swap = mock.patch.object
    yield swap(torch.cuda, "get_device_properties", lambda *_: properties)
    yield swap(torch.cuda, "get_device_capability", lambda *_: card.capability)
    yield swap(CudaInterface, "get_device_properties", staticmethod(lambda *_: properties))
    yield swap(CudaInterface, "is_bf16_supported", staticmethod(lambda *_, **__: True))
    yield swap(triton, "triton_hash_with_backend", lambda: "on paper")
    yield swap(scheduler, "has_triton", lambda *_: True)
    yield swap(torch._C, "_conv_determine_backend_memory_format", layout)


def _without_a_guard() -> Iterator[AbstractContextManager[Any]]:
    """What stands for ops that would ask for a CUDA device, which a CPU build has not."""
    import torch
    import torch._inductor.inductor_prims as prims
    from torch._inductor.fx_passes import reinplace

    scatter = reinplace._generalized_scatter
    in_place = replace(reinplace.inplaceable_ops[scatter], inplace_op=_scatter_of_shapes)

    def seed(seeds: Any, _: Any) -> Any:
        return torch._prims.TensorMeta(seeds.new_empty(()))

    swap = mock.patch.object
    # Called as methods they have a device guard for CUDA.
    yield swap(torch.Tensor, "__invert__", torch.Tensor.bitwise_not)
    yield swap(torch.Tensor, "nonzero", _true_elements)
    yield swap(torch.Tensor, "__getitem__", _picked(torch.Tensor.__getitem__))
    yield swap(torch.Tensor, "copy_", _written_over)
    yield swap(prims.lookup_seed, "prim_meta_impl", seed)
    yield swap(reinplace, "_inplace_generalized_scatter", _scatter_of_shapes)
    yield mock.patch.dict(reinplace.inplaceable_ops, {scatter: in_place})


def _picked(stock: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def picked(tensor: Any, index: Any) -> Any:
        """``tensor[index]``, for a number by the op that it comes to."""
        import torch

        plain = isinstance(index, int) and not isinstance(index, bool)
        return torch.ops.aten.select.int(tensor, 0, index) if plain else stock(tensor, index)

    return picked


def _written_over(tensor: Any, source: Any, non_blocking: bool = False) -> Any:
    """Tensor.copy_."""
    import torch

    return torch.ops.aten.copy_.default(tensor, source, non_blocking)


def _scatter_of_shapes(target: Any, *_: Any) -> Any:
    """What a scatter in place gives: its own would copy on the GPU to see whether shapes fit."""
    return target


def _cudnn_layout(x: Any, weight: Any) -> Any:
    """The memory format that cuDNN gives a result: channels last if either operand has it.

    Source: cudnn_conv_suggest_memory_format in aten/src/ATen/native/ConvUtils.h.
    """
    import torch

    if torch.float64 in (x.dtype, weight.dtype):
        return torch.contiguous_format
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.ndim)
    for tensor in (x, weight):
        if last and tensor.is_contiguous(memory_format=last) and not tensor.is_contiguous():
            return last
    return torch.contiguous_format
