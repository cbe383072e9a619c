"""Adapter to torch's operator registry: which op does work, which only passes it on.

An op's row in a CPU profile holds its name without the overload, so the answer is for all
overloads together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

Effect = Literal["work", "nothing", "composite"]

# They allocate or describe; no element is read or written. From native_functions.yaml.
_ALLOCATIONS = frozenset(
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ set_"
    " resize_as_ _resize_output_ _local_scalar_dense is_same_size record_stream lift_fresh"
    " _unsafe_view _reshape_alias resolve_conj resolve_neg _has_compatible_shallow_copy_type".split()
)


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
    if overloads and all(o.is_view or torch.Tag.inplace_view in o.tags for o in overloads):
        return "nothing"
    return "work"


def _is_composite(overload: object) -> bool:
    import torch

    try:
        return bool(
            torch._C._dispatch_has_kernel_for_dispatch_key(
                overload.name(),  # type: ignore[attr-defined]
                "CompositeImplicitAutograd",
            )
        )
    except (AttributeError, RuntimeError):
        return False
