"""The backends of scaled_dot_product_attention, by the ops that they are called through.

Source: aten/src/ATen/native/native_functions.yaml, the ops with ``attention`` in their names.
"""

from __future__ import annotations

_BACKENDS = ("flash", "efficient", "cudnn")
_WHOLE = "scaled_dot_product_attention"
_OF_MATH = frozenset({"baddbmm", "bmm", "mm", "_safe_softmax", "_softmax"})


def backend(*ops: str) -> str | None:
    """``flash``, ``efficient``, ``cudnn`` or ``math``, or None where the op is no attention.

    `ops` are those that are known, from the innermost to the outermost: attention that is made of
    other ops, products and a softmax, is the math backend.
    """
    for name in ops:
        if "attention" in name:
            found = next((b for b in _BACKENDS if f"_{b}_attention" in name), None)
            if found or "math" in name:
                return found or "math"
    return "math" if _WHOLE in ops[1:] and ops[0] in _OF_MATH else None
