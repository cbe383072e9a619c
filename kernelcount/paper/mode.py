"""The mode under which the user's code runs on paper.

It lies below autograd, so that gradients are worked out as ever, and it lets torch's tracing pass.
Ops on GPU tensors run on shapes, and on values where there are any; each is noted in the log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import FrameType
from typing import Any

from kernelcount.devices.aten import effect
from kernelcount.paper import adapter, operands, rules
from kernelcount.paper.log import Log
from kernelcount.paper.places import STAND_IN, is_on, redirected, refuse_layouts
from kernelcount.paper.steps import leaves, mapped
from kernelcount.paper.values import Values

# Gradients that depend on values, or go another way for tensors without memory
# (FunctionsManual.cpp, areAnyTensorSubclassLike): what they run here is not what a GPU runs. That
# of the number which a mask is filled with selects by the mask (masked_fill_backward).
_BY_VALUES = frozenset(
    {"ProdBackward0", "ProdBackward1", "CumprodBackward0", "MaskedFillBackward1"}
)

# What a gradient changes in place on a GPU, and not where tensors have no memory, for which
# areAnyTensorSubclassLike is true (FunctionsManual.cpp, TensorAdvancedIndexing.cpp).
_SELECTED = ("Max", "Min", "Median", "Nanmedian", "Kthvalue", "Mode", "Topk", "Sort")
_IN_PLACE = {
    "scatter": tuple(f"{name}Backward" for name in _SELECTED),
    "scatter_add": ("GatherBackward", "CummaxBackward", "CumminBackward"),
    "index_put": ("IndexBackward",),
    "index_add": ("IndexSelectBackward",),
    "masked_fill": ("Atan2Backward",),
    "masked_scatter": ("MaskedSelectBackward",),
    "put": ("TakeBackward",),
}

# Their shapes are worked out by what refuses a number that is a tensor of the host's, but on "cuda"
# (torch/_refs/__init__.py); cuda/IndexKernel.cpp, masked_fill__cuda, takes it as a number is taken.
_TAKES_NUMBERS_OF_HOST = frozenset(
    ("aten", name) for name in ("copysign", "copysign_", "masked_fill", "masked_fill_")
)

Composites = Mapping[Any, Callable[..., Any]]


def make(log: Log, values: Values, composites: Composites) -> Any:
    """The mode that notes ops in `log`. `composites`: ops that a GPU has made of other ops."""

    class OnPaper(adapter.dispatch_mode()):  # type: ignore[misc]
        """Runs each op on shapes and values, and notes it."""

        supports_higher_order_operators = True  # torch.cond and its like come here, too

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """So that Dynamo compiles while it is active."""
            return True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if adapter.tracing() or any(map(adapter.is_fake, types)):
                return func(*args, **(kwargs or {}))
            if adapter.is_higher_order(func):
                with self:
                    return adapter.in_eager(func, args, kwargs or {})
            args = tuple(map(redirected, args))
            kwargs = {name: redirected(value) for name, value in (kwargs or {}).items()}
            if _is_of_shapes(func, args):
                return func(*args, **kwargs)
            if wanted := kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False  # without a driver no memory can be pinned
            if func in composites:
                with self:
                    return composites[func](*args, **kwargs)
            if is_composite(func):  # such an op comes whole under inference mode only
                with self:
                    return adapter.decomposed(func, args, kwargs)
            result = _Run(func, args, kwargs, log, values).result()
            if wanted and is_on(result, "cpu"):
                log.pinned.note(result)
            return result

    return OnPaper()


@lru_cache(maxsize=4096)
def is_composite(func: Any) -> bool:
    """Whether an op is made of others on every device."""
    name = func.name().partition(".")[0]
    return effect(name) == "composite" and adapter.is_composite(func)


def _is_of_shapes(func: Any, args: Any) -> bool:
    """Whether an op only works out the shape of a tangent that is zero, on "meta" on a GPU too.

    BinaryOps.cpp, mul_zerotensor and add_zerotensor: both operands are sent to "meta", where
    torch/_refs does the op. Zeros in the place of one are filled on the GPU (ZeroTensorFallback).
    """
    namespace, name = adapter.name_of(func)
    if not adapter.goes_forward() or name == "zeros":
        return False
    sent = (namespace, name) == ("aten", "to") and is_on(args[0], "cpu")
    return (sent and adapter.is_zero_tangent(args[0])) or _is_called_by_refs()


_BETWEEN = ("torch.", "kernelcount.paper.pretend")
"""Where frames between torch/_refs and an op are of: torch, and what stands in for Tensor.to."""


def _is_called_by_refs() -> bool:
    """Whether torch's Python code for shapes calls the op, with nobody's code in between."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module in ("torch._refs", "torch._prims_common.wrappers"):
            return True
        if not module.startswith(_BETWEEN):
            return False
        frame = frame.f_back
    return False


class _Run:
    """One op, run on shapes and values, and noted."""

    def __init__(
        self, func: Any, args: Any, kwargs: dict[str, Any], log: Log, values: Values
    ) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.log, self.values = log, values
        self.given = [t for t in leaves((args, kwargs)) if _is_tensor(t)]

    def result(self) -> Any:
        """What the op gives."""
        self.log.saw()
        if not self._is_ours():
            if adapter.is_mutable(self.func):
                self.values.keep(self._changed())
            self._note_host()
            return self.func(*self.args, **self.kwargs)
        refuse_layouts(self.given)
        self._refuse_what_cannot_run()
        read = False
        try:
            # What torch reads in it is its own: of an overload that does not fit it makes an error
            # that shows the arguments, and then takes the next.
            with self.log.opened(to=False):
                result = self._on_shapes()
        except (NotImplementedError, RuntimeError) as error:
            # Only what needs values says that it cannot do without them; the rest is the user's.
            if not isinstance(error, NotImplementedError) and "meta" not in str(error).lower():
                raise
            if self._only_changes(error):
                result = None
                self.values.follow(self.func, self.args, self.kwargs, None, self._changed())
            else:
                if self.log.recorder is not None:
                    self.log.recorder.read()
                read = True
                result = self.values.ask(self.func, self.args, self.kwargs, self._changed())
        else:
            refuse_layouts(leaves(result))
            if not self.func.is_view:
                self.values.follow(self.func, self.args, self.kwargs, result, self._changed())
        if self.log.recorder is not None:
            counted = self.log.is_open
            self.log.recorder.op(self.func, self.args, self.kwargs, result, counted=counted)
        if (gradient := adapter.backward_node()) in _BY_VALUES:
            self.log.note_open(str(gradient), beside=self.op(result))
        else:
            self.log.note_op(_as_on_gpu(self.op(result), gradient), read=read)
        self.log.note_held(self.values)
        return result

    def _on_shapes(self) -> Any:
        if adapter.name_of(self.func) not in _TAKES_NUMBERS_OF_HOST:
            return self.func(*self.args, **self.kwargs)
        args, kwargs = mapped((self.args, self.kwargs), _number_on_gpu)
        return self.func(*args, **kwargs)

    def _note_host(self) -> None:
        """An op on the host's tensors; not one on numbers alone, which have no dimensions."""
        name = self.func.name().partition(".")[0]
        if any(t.dim() and t.numel() for t in self.given) and effect(name) != "nothing":
            self.log.note_host(name)

    def _only_changes(self, error: Exception) -> bool:
        """Whether all that an op lacks here is shapes to work out, for it gives nothing."""
        lacks = isinstance(error, NotImplementedError)
        return lacks and adapter.is_mutable(self.func) and not adapter.gives_something(self.func)

    def _refuse_what_cannot_run(self) -> None:
        """Tensors without memory do not mind what a GPU's kernels refuse."""
        namespace, name = adapter.name_of(self.func)
        if namespace in rules.TORCHS_OWN:
            operands.check_devices(name, self.given)
            given = {a.name: v for a, v in _bound(self.func, self.args, self.kwargs)}
            operands.check_dtypes(name, given)

    def _is_ours(self) -> bool:
        # Only prims::device_put takes a device by its place: a graph has it for Tensor.to.
        devices = (self.kwargs.get("device"), *self.args[1:2])
        asked = any(_is_stand_in(device) for device in devices)
        return asked or any(is_on(t) for t in self.given)

    def op(self, result: Any) -> rules.Op:
        """The call as the rules see it: what it wrote is what it gave and what it changed."""
        written = [t for t in leaves(result) if _is_tensor(t)]
        return op_of(self.func, self.args, self.kwargs, written)

    def _changed(self) -> list[Any]:
        return _changed(self.func, self.args, self.kwargs)


def _as_on_gpu(op: rules.Op, gradient: str | None) -> rules.Op:
    """An op of a gradient that a GPU has in place. `gradient`: the node that runs it."""
    nodes = _IN_PLACE.get(op.name, ())
    in_place = gradient is not None and gradient.rstrip("0123456789") in nodes
    return replace(op, name=f"{op.name}_") if in_place else op


def op_of(func: Any, args: Any, kwargs: dict[str, Any], written: list[Any]) -> rules.Op:
    """A call of an op, as the rules see it. `written`: the tensors that it returned.

    An op of torch's own that changes an argument returns it; somebody's may return another beside.
    """
    namespace, name = adapter.name_of(func)
    if not written or namespace not in rules.TORCHS_OWN:
        given = written if adapter.gives_something(func) else []
        written = [*given, *_changed(func, args, kwargs)]
    return rules.Op(
        name,
        namespace,
        args,
        kwargs,
        [t for t in leaves((args, kwargs)) if _is_tensor(t)],
        written,
        adapter.is_pointwise(func),
        _parameters(func, args, kwargs),
        [
            t
            for argument, value in _bound(func, args, kwargs)
            if argument.is_out
            for t in leaves(value)
            if _is_tensor(t)
        ],
    )


def _changed(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the op writes: its schema says which, and more than that at times."""
    # An optimizer's op writes gradients where it takes them back to their scale: grad_scale_ptr in
    # ATen/native/cuda/fused_adam_utils.cuh, FusedSgdKernel.cu and FusedAdagradKernel.cu there.
    fused = func.name().startswith("aten::_fused_ada") or "_fused_sgd" in func.name()
    unscaled = fused and kwargs.get("grad_scale") is None
    return [
        t
        for argument, value in _bound(func, args, kwargs)
        if argument.alias_info is not None and argument.alias_info.is_write
        if not (unscaled and argument.name == "grads")
        for t in leaves(value)
        if _is_tensor(t)
    ]


def _parameters(func: Any, args: Any, kwargs: dict[str, Any]) -> str:
    # A stable sort is the only one that CUDA has (cuda/Sort.cpp): asking for it changes nothing.
    # The scale of attention is a number that its kernels are given.
    told = [
        f"{argument.name}={value}"
        for argument, value in _bound(func, args, kwargs)
        if not any(_is_tensor(t) for t in leaves(value))
        and value is not None
        and argument.name not in ("stable", "scale")
        and not (argument.has_default_value() and argument.default_value == value)
    ]
    return ", ".join(told)


def _bound(func: Any, args: Any, kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The arguments of the op's schema with what they are given."""
    arguments = adapter.parameters_of(func)
    by_name = [(a, kwargs[a.name]) for a in arguments if a.name in kwargs]
    return [*zip(arguments, args, strict=False), *by_name]


def _number_on_gpu(value: Any) -> Any:
    import torch

    number = is_on(value, "cpu") and value.dim() == 0
    return torch.empty_like(value, device=STAND_IN) if number else value


def _is_stand_in(device: Any) -> bool:
    import torch

    return isinstance(device, str | torch.device) and str(device).startswith(STAND_IN)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
