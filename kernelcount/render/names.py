"""Kernel names as a person says them: no namespaces, no arguments, the telling template argument.

    void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,
        std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)

becomes ``vectorized_elementwise_kernel<CUDAFunctor_add<float>>``. A name that is not demangled C++,
such as ``nvjet_tst_192x176`` or ``triton_poi_fused_add_relu_0``, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_OPEN, _CLOSE = "<({[", ">)}]"

# Below this depth nothing is left that a reader could use, and a hostile name could nest for ever.
_DEPTH = 3

# Sizes, unrolling factors and flags, casts to an enumeration included.
_LITERAL = re.compile(r"(\([\w: ]+\))?(-?\d\w*|true|false)")

# Launch plumbing: the same for every operation, so it tells nothing about this one.
_PLUMBING = re.compile(r"std::array<|.*ListMetadata<|.*::Params$|.*\*$|unsigned (int|long)$|int$")

# A lambda and its call operator, as the demanglers of GCC, Clang and NVCC write them.
_LAMBDA = re.compile(r"\{lambda|\[lambda|'lambda|\$_|operator\W")

# What names of functions and types are made of outside of brackets, of which the closing ones are
# left. What holds anything else, as ``step 1::add-kernel``, is no name of C++ but somebody's own.
_OUTSIDE = re.compile(r"(?:[a-zA-Z_~$][\w$]*|[\s*&.'>)}\]])*")

# PyTorch wraps the functor that matters in these before it reaches the kernel.
_WRAPPERS = ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "func_wrapper_t")

# Says so little that the namespace has to help: internal::gemvx::kernel.
_NAMELESS = "kernel"


def short_name(name: str) -> str:
    """Name the function with its telling template arguments; `name` itself where in doubt."""
    if not any(mark in name for mark in ("::", "<", "(")) or not _balanced(name):
        return name
    if not _is_cpp(name):
        return name
    return _shorten(name, _DEPTH) or name


def short_label(label: str) -> str:
    """Name an op without the namespace that every op of PyTorch itself has."""
    return label.removeprefix("aten::")


def _is_cpp(name: str) -> bool:
    """Whether all that stands outside of brackets may be in the name of a function of C++.

    With the type that it gives before it, its parameters are there as well.
    """
    for part in _split(name, "::"):
        if _LAMBDA.match(part):
            return True
        outside = "".join(
            c for c, (_, depth) in zip(part, _depths(part), strict=True) if depth == 0
        )
        if not part or not _OUTSIDE.fullmatch(outside):
            return False
        if " " in outside.strip() and "(" not in name:
            return False
    return True


def _shorten(text: str, depth: int) -> str:
    """`text`, a type or a function, by its last name, as long as that is no lambda's."""
    parts: list[str] = []
    for part in _split(text, "::"):
        if _LAMBDA.match(part):
            break
        parts.append(part)
    head, arguments = _opened(parts[-1]) if parts else ("", "")
    if not head:
        return ""
    if head == _NAMELESS and len(parts) > 1:
        head = f"{_opened(parts[-2])[0]}::{head}"
    kept = _telling(arguments, depth - 1) if depth else []
    if head in _WRAPPERS and kept:
        return kept[-1]
    return f"{head}<{', '.join(kept)}>" if kept else head


def _telling(arguments: str, depth: int) -> list[str]:
    """Pick the template arguments that tell something, each once where it is repeated."""
    kept: list[str] = []
    for argument in _split(arguments, ","):
        text = argument.strip()
        if not text or _LITERAL.fullmatch(text) or _PLUMBING.match(text):
            continue
        short = _shorten(text, depth)
        if short and short not in kept[-1:]:
            kept.append(short)
    return kept


def _opened(part: str) -> tuple[str, str]:
    """Find in ``void name<arguments>(...)`` the name and what stands in angle brackets."""
    start = next((i for i, c in enumerate(part) if c in _OPEN), len(part))
    head = part[:start].rstrip()
    if start < len(part) or not head.startswith("unsigned "):
        head = head.rsplit(" ", 1)[-1]
    if part[start : start + 1] != "<":
        return head, ""
    end = next((i for i, depth in _depths(part) if i > start and depth == 0), len(part))
    return head, part[start + 1 : end]


def _split(text: str, separator: str) -> Iterator[str]:
    """Pieces of `text` between separators that stand outside all brackets."""
    start = 0
    for i, depth in _depths(text):
        if depth == 0 and i >= start and text.startswith(separator, i):
            yield text[start:i]
            start = i + len(separator)
    yield text[start:]


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Each position with the number of brackets open after it."""
    depth = 0
    for i, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        yield i, depth


def _balanced(text: str) -> bool:
    depth = 0
    for _, depth in _depths(text):
        if depth < 0:
            return False
    return depth == 0
