"""Adapter to torch's operator registry: which op does work, which only passes it on.

An op's row in a CPU profile holds its name without the overload, so the answer is for all
overloads together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

Effect = Literal["work", "nothing", "composite"]

# They allocate or describe; no element is read or written. From native_functions.yaml.
_ALLOCATIONS = frozenset(
    {
        "_has_compatible_shallow_copy_type", "_local_scalar_dense", "_reshape_alias",
        "_resize_output_", "_unsafe_view", "empty", "empty_like", "empty_permuted",
        "empty_strided", "is_same_size", "lift_fresh", "new_empty", "new_empty_strided",
        "record_stream", "resize_", "resize_as_", "resolve_conj", "resolve_neg", "set_",
    }
)  # fmt: skip


@lru_cache(maxsize=4096)
def effect(name: str) -> Effect:
    """What the op ``namespace::op`` does.

    `composite`: it is made of other ops (CompositeImplicitAutograd), which are looked at instead;
    `nothing`: a view or an allocation; `work` for all else, an unknown op included.
    """
    import torch

    namespace, _, op = name.partition("::")
    if namespace == "aten" and op in _ALLOCATIONS:
        return "nothing"
    try:
        packet = getattr(getattr(torch.ops, namespace), op)
        overloads = [getattr(packet, o) for o in packet.overloads()]
    except AttributeError:
        return "work"
    if any(_is_composite(o) for o in overloads):
        return "composite"
    # aten::slice has overloads for lists and strings, which say nothing of tensors.
    of_tensors = [o for o in overloads if _takes_tensor(o)]
    if of_tensors and all(o.is_view or torch.Tag.inplace_view in o.tags for o in of_tensors):
        return "nothing"
    return "work"


def _takes_tensor(overload: Any) -> bool:
    arguments = overload._schema.arguments
    return bool(arguments) and str(arguments[0].type) == "Tensor"


def _is_composite(overload: Any) -> bool:
    import torch

    try:
        return bool(
            torch._C._dispatch_has_kernel_for_dispatch_key(
                overload.name(), "CompositeImplicitAutograd"
            )
        )
    except (AttributeError, RuntimeError):
        return False
