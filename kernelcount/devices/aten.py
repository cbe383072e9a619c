"""Adapter to torch's operator registry: which op does work, which only passes it on.

An op's row in a CPU profile holds its name without the overload. Where overloads differ, the answer
is `mixed`, and what stands inside the row decides: see `becomes`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

Effect = Literal["work", "nothing", "composite", "mixed"]

# They allocate, or ask for what is known; no element is read or written (native_functions.yaml).
_NOTHING = frozenset(
    {
        "_assert_scalar", "_assert_tensor_metadata", "_coalesced_", "_dimI", "_dimV",
        "_efficientzerotensor", "_fused_sdp_choice", "_has_compatible_shallow_copy_type",
        "_has_same_storage_numel",
        "_local_scalar_dense", "_nnz", "_reshape_alias", "_resize_output_", "_unsafe_view", "empty",
        "empty_like", "empty_permuted", "empty_strided", "is_coalesced", "is_pinned",
        "is_same_size", "is_set_to", "lift_fresh", "new_empty", "new_empty_strided",
        "record_stream", "resize_", "resize_as_", "resolve_conj", "resolve_neg", "set_",
        "sym_constrain_range", "sym_constrain_range_for_size",
    }
)  # fmt: skip

# Namespaces of what is no tensor operation: attributes of tensors, and profilers' marks.
_NO_WORK = frozenset({"prim", "profiler"})

# What a composite overload calls, where another overload of the same name does the work itself.
_BECOMES = {
    "max": frozenset({"maximum"}),
    "min": frozenset({"minimum"}),
    "where": frozenset({"nonzero_numpy"}),
    "repeat_interleave": frozenset({"expand", "index_select"}),
}

_OWN_CODE = ("CPU", "CUDA", "CompositeExplicitAutograd", "Meta")


@lru_cache(maxsize=4096)
def effect(name: str) -> Effect:
    """What the op ``namespace::op`` does.

    `composite`: it is made of other ops (CompositeImplicitAutograd), which are looked at instead;
    `mixed`: some overloads are; `nothing`: a view or an allocation; `work` for all else, an unknown
    op included.
    """
    import torch

    namespace, _, op = name.partition("::")
    if namespace in _NO_WORK or (namespace == "aten" and op in _NOTHING):
        return "nothing"
    try:
        packet = getattr(getattr(torch.ops, namespace), op)
        overloads = [getattr(packet, o) for o in packet.overloads() if not o.endswith("out")]
    except AttributeError:
        return "work"
    # torch 2.11 has overloads for named dimensions, all made of others; 2.13 has none any more.
    overloads = [o for o in overloads if "name" not in o._overloadname.lower()] or overloads
    # aten::slice has overloads for lists and strings, which say nothing of tensors.
    overloads = [o for o in overloads if _takes_tensor(o)] or overloads
    composite = [o for o in overloads if _is_composite(o)]
    own = [o for o in overloads if _has_own_code(o)]
    if composite and not own:
        return "composite"
    if overloads and all(_is_view(o) for o in own or overloads):
        return "nothing"
    return "mixed" if composite else "work"


def becomes(name: str) -> frozenset[str]:
    """The ops by whose presence inside it a `mixed` op is known to be composite.

    An overload of the same name, for the most part: aten::where(condition, x, 1.0) calls the
    aten::where that takes two tensors.
    """
    namespace, _, op = name.partition("::")
    return frozenset({name}) | {f"{namespace}::{o}" for o in _BECOMES.get(op, ())}


def can_tell_composite() -> bool:
    """Whether this torch tells which ops are made of others."""
    import torch

    return hasattr(getattr(torch, "_C", None), "_dispatch_has_kernel_for_dispatch_key")


def _takes_tensor(overload: Any) -> bool:
    arguments = overload._schema.arguments
    return bool(arguments) and str(arguments[0].type) in ("Tensor", "List[Tensor]")


def _is_composite(overload: Any) -> bool:
    """Whether the overload is made of other ops, and has no code of its own for a device."""
    return _has(overload, "CompositeImplicitAutograd") and not _has_own_code(overload)


def _is_view(overload: Any) -> bool:
    import torch

    return bool(overload.is_view) or torch.Tag.inplace_view in overload.tags


def _has_own_code(overload: Any) -> bool:
    return any(_has(overload, key) for key in _OWN_CODE)


def _has(overload: Any, key: str) -> bool:
    import torch

    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key))
    except (AttributeError, RuntimeError):
        return False
