"""All that a function makes in a coarser precision than float64 is made in float64 meanwhile.

Its inputs in float64 are not enough for a reference: a function may cast them to bfloat16 itself,
or make constants in it. Casts are then copies where they are copies otherwise, and the same tensor
where they are that otherwise, for which each tensor's own dtype is followed; random numbers are
those that are drawn in the own dtype. float8 stays: what computes with that knows nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kernelcount.nesting import tensors

if TYPE_CHECKING:
    import torch

_COARSE = ("float16", "bfloat16", "float32")
_COARSE_COMPLEX = ("complex32", "complex64")

_CASTS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64",
          "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32"}  # fmt: skip
"""Methods that are named after what they cast to."""

_CASTS_TO = ("to", "type", "type_as", "as_tensor", "asarray")
"""Functions that may give the very tensor that they are given, or cast it."""

_MADE_OF_NUMBERS = ("tensor", "as_tensor", "asarray", "scalar_tensor", "new_tensor")
"""Functions that round numbers of Python's before any operation of torch's sees them."""

_DRAWN_INTO = ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_",
               "random_", "uniform_")  # fmt: skip
_DRAWN_LIKE = ("rand_like", "randn_like", "bernoulli")


@contextmanager
def widened(shown: Iterable[tuple[torch.Tensor, torch.dtype]]) -> Iterator[None]:
    """Have everything made in float64 meanwhile. `shown`: what is given so, and its own dtypes."""
    import torch

    own = _Own(shown)
    default = torch.get_default_dtype()
    try:
        with _operations(own), _functions(own):
            yield
    finally:
        torch.set_default_dtype(default)


class _Own:
    """Of what dtype a tensor in float64 is where the function is not called for a reference."""

    def __init__(self, shown: Iterable[tuple[torch.Tensor, torch.dtype]]) -> None:
        import torch
        from torch.utils.weak import WeakTensorKeyDictionary

        self._known = WeakTensorKeyDictionary()
        self._places: dict[object, torch.dtype] = {}
        self._default = torch.get_default_dtype()
        for tensor, dtype in shown:
            self.note(tensor, dtype)

    @property
    def default(self) -> torch.dtype:
        """The dtype of what is made without naming one; float64 from now on."""
        import torch

        if torch.get_default_dtype() is not torch.float64:
            self._default = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
        return self._default

    def of(self, tensor: torch.Tensor) -> torch.dtype:
        """The dtype of its own."""
        known = self._known.get(tensor)
        if known is None and _is_wide(tensor):  # a parameter is another tensor than it was made of
            known = self._places.get(_place(tensor))
        return tensor.dtype if known is None else known

    def note(self, made: Any, dtype: torch.dtype | None) -> None:
        """Remember it of all that was made in float64."""
        for tensor in tensors(made):
            if dtype is not None and _is_wide(tensor) and dtype.is_complex == tensor.is_complex():
                self._known[tensor] = self._places[_place(tensor)] = dtype

    def of_made(self, given: Any, named: list[torch.dtype]) -> torch.dtype | None:
        """The dtype of what an operation makes: the one that is named, or that comes of its inputs.

        float64 counts only where there is nothing else, for what moves numbers is in it.
        """
        import torch

        if named:
            return named[-1]
        floats = [t for t in tensors(given) if t.is_floating_point() or t.is_complex()]
        sized = [t for t in floats if t.dim()] or floats  # a number in a tensor widens nothing
        dtypes = [self.of(t) for t in sized]
        dtypes = [d for d in dtypes if d is not torch.float64] or dtypes
        found = None
        for dtype in dtypes:
            found = dtype if found is None else torch.promote_types(found, dtype)
        return found


def _place(tensor: torch.Tensor) -> object:
    """Where it lies; what has no memory lies where nothing else does."""
    try:
        return tensor.data_ptr() or object()
    except RuntimeError:
        return object()


def _wider(value: Any) -> Any:
    """float64 in the place of a coarser dtype."""
    import torch

    if isinstance(value, torch.dtype):
        name = str(value).removeprefix("torch.")
        if name in _COARSE:
            return torch.float64
        if name in _COARSE_COMPLEX:
            return torch.complex128
    return value


def _is_wide(tensor: torch.Tensor) -> bool:
    import torch

    return tensor.dtype in (torch.float64, torch.complex128)


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.dtype]:
    import torch

    return [v for v in (*args, *kwargs.values()) if isinstance(v, torch.dtype)]


def _operations(own: _Own) -> Any:
    """Whatever torch computes, autocast and backward included."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _operation(own, func, args, kwargs or {})

    return Mode()


def _operation(own: _Own, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch

    default = own.default
    name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
    if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
        return _drawn(own, name, func, args, kwargs)
    named = _named(args, kwargs)
    if name == "view" and named:  # the bits of a number, read otherwise
        if _is_wide(args[0]):
            raise RuntimeError("the bits of a float have no like in float64")
        return func(*args, **kwargs)
    made = func(*map(_wider, args), **{key: _wider(value) for key, value in kwargs.items()})
    own.note(made, own.of_made((args, kwargs), named) or default)
    return made


def _drawn(own: _Own, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Random numbers as they are drawn in the dtype of their own: others are drawn in float64."""
    import torch

    first = args[0] if args and isinstance(args[0], torch.Tensor) else None
    if name in _DRAWN_INTO and first is not None and _is_wide(first):
        twin = first.to(own.of(first))
        func(twin, *args[1:], **kwargs)
        first.copy_(twin)
        return first
    named = _named(args, kwargs)
    if name in _DRAWN_LIKE and first is not None and _is_wide(first):
        args = (first.to(own.of(first)), *args[1:])
    elif first is None and not named and name in ("rand", "randn", "normal"):
        kwargs = {**kwargs, "dtype": own.default}
    made = func(*args, **kwargs)
    if not isinstance(made, torch.Tensor) or _wider(made.dtype) is made.dtype:
        own.note(made, own.of_made((args, kwargs), named))
        return made
    dtype, made = made.dtype, made.to(_wider(made.dtype))
    own.note(made, dtype)
    return made


def _functions(own: _Own) -> Any:
    """What is decided before an operation is called: whether a cast copies; constants."""
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _function(own, func, args, kwargs or {})

    return Mode()


def _function(own: _Own, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch

    default = own.default
    name = getattr(func, "__name__", "")
    first = args[0] if args and isinstance(args[0], torch.Tensor) else None
    named = _named(args, kwargs)
    if first is not None and _is_wide(first) and (name in _CASTS or name in _CASTS_TO):
        return _cast(own, name, func, args, kwargs)
    if name in _MADE_OF_NUMBERS:
        made = func(*map(_wider, args), **{key: _wider(value) for key, value in kwargs.items()})
        own.note(
            made,
            (own.of(first) if name == "new_tensor" and first is not None else default)
            if not named
            else named[-1],
        )
        return made
    return func(*args, **kwargs)


def _cast(own: _Own, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A copy where the cast makes one, else the same: of a tensor in float64."""
    import torch

    first = args[0]
    others = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.Tensor)]
    named = [getattr(torch, _CASTS[name])] if name in _CASTS else _named(args, kwargs)
    named = named or [own.of(t) for t in others]
    if not named or not (named[-1].is_floating_point or named[-1].is_complex):
        return func(*args, **kwargs)
    copies = named[-1] is not own.of(first)
    if _wider(named[-1]) not in (torch.float64, torch.complex128):
        return func(*args, **kwargs)  # float8
    bare = [a for a in args[1:] if not isinstance(a, torch.Tensor | torch.dtype)]
    places = [a for a in bare if isinstance(a, str | torch.device)] if name == "to" else []
    device = kwargs.get("device") or next(iter((*places, *(t.device for t in others))), None)
    wanted = kwargs.get("copy") or [a for a in bare if isinstance(a, bool)][1:2] == [True]
    form = kwargs.get("memory_format") or torch.preserve_format
    made = first.to(
        device=first.device if device is None else device,
        dtype=_wider(named[-1]),
        copy=bool(copies or wanted),
        memory_format=form,
    )
    own.note(made, named[-1])
    return made
