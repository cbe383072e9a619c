"""Which parameters may take a tensor, by their annotations."""

from __future__ import annotations

import inspect
import re
import types
import typing
from typing import Any


def takes_tensor(annotation: Any) -> bool:
    """Whether a parameter with this annotation may be given a tensor."""
    return any(_is_tensor(part) for part in alternatives(annotation))


def alternatives(annotation: Any) -> list[Any]:
    """Take an annotation apart where it stands for others: a union, an alias of a type."""
    origin = typing.get_origin(annotation)
    parts = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return [one for part in parts for one in alternatives(part)]
    if origin is typing.Annotated:
        return alternatives(parts[0])
    if isinstance(annotation, typing.TypeVar):
        return alternatives(Any if annotation.__bound__ is None else annotation.__bound__)
    if hasattr(annotation, "__supertype__"):
        return alternatives(annotation.__supertype__)
    return [annotation]


def _is_tensor(annotation: Any) -> bool:
    import torch

    if isinstance(annotation, typing.ForwardRef):
        return _text_takes_tensor(annotation.__forward_arg__)
    if isinstance(annotation, str):
        return _text_takes_tensor(annotation)
    if typing.get_origin(annotation) is not None:
        return False
    if annotation in (inspect.Parameter.empty, Any, object):
        return True
    if isinstance(annotation, type) and issubclass(annotation, torch.Tensor):
        return True
    # Shape annotations, such as jaxtyping's, are classes of their own: Float[Tensor, "n"].
    return _text_takes_tensor(getattr(annotation, "__name__", ""))


def _text_takes_tensor(text: str) -> bool:
    """Whether an annotation that could not be evaluated looks like a tensor's."""
    for part in text.split("|"):
        head, bracket, inside = part.strip().partition("[")
        word = head.strip("'\" ").rpartition(".")[2]
        if word in ("Any", "object") or re.fullmatch(r"\w*Tensor", word):
            return True
        # Float[Tensor, "n"] and Optional[Tensor], but not list[Tensor], which is no tensor.
        holds = ("list", "tuple", "dict", "sequence", "iterable", "mapping", "callable", "type")
        if bracket and word.lower() not in holds and re.search(r"\b\w*Tensor\b", inside):
            return True
    return False
