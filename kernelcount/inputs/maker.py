"""Arguments from a maker: the user's function that gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kernelcount.errors import UsageError, UserCodeError
from kernelcount.inputs.arguments import DEFAULT_SIZE, Arguments, InputOptions
from kernelcount.inputs.signatures import VARIABLE, name_of, signature_of
from kernelcount.inputs.specs import DTYPES

if TYPE_CHECKING:
    import torch


def find_maker(module: ModuleType) -> Callable[..., Any] | None:
    """Return the file's own `make_inputs`, else its `get_inputs`, else None."""
    makers = (vars(module).get(name) for name in ("make_inputs", "get_inputs"))
    return next((maker for maker in makers if callable(maker)), None)


def from_maker(maker: Callable[..., Any], options: InputOptions) -> Arguments:
    """What a maker gives, on the device that was asked for."""
    import torch

    kwargs = _maker_arguments(maker, options)
    try:
        with _seeded(options.seed):
            result = maker(**kwargs)
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise UserCodeError(f"{name_of(maker)}() called sys.exit({code})") from error
    arguments = _read_result(result, name_of(maker))
    signature = signature_of(maker)
    places_them = signature is not None and "device" in signature.parameters
    if places_them or torch.device(options.device).type == "cpu":
        return arguments
    # With its index: fake tensors cannot be moved to a "cuda" that this build of torch lacks.
    device = torch.empty(0, device=options.device).device
    moved: dict[int, torch.Tensor] = {}
    return Arguments(
        tuple(_moved(value, device, moved) for value in arguments.args),
        {name: _moved(value, device, moved) for name, value in arguments.kwargs.items()},
    )


def _maker_arguments(maker: Callable[..., Any], options: InputOptions) -> dict[str, Any]:
    """Return the arguments that a maker asks for by name, of those on offer."""
    import torch

    signature = signature_of(maker)
    if signature is None:
        return {}
    size = DEFAULT_SIZE if options.size is None else options.size
    dtype = getattr(torch, DTYPES[options.dtype]) if options.dtype else torch.get_default_dtype()
    known = {"n": size, "size": size, "device": options.device, "dtype": dtype}
    asked = {"device"}
    asked |= {"n", "size"} if options.size is not None else set()
    asked |= {"dtype"} if options.dtype is not None else set()
    named = [p for p in signature.parameters.values() if p.kind not in VARIABLE]
    required = [p for p in named if p.default is p.empty]
    lacking = [p.name for p in required if p.name not in known or p.kind is p.POSITIONAL_ONLY]
    if lacking:
        raise UsageError(
            f"{name_of(maker)} needs {', '.join(lacking)}, but is called with those of n, size, "
            f"device and dtype that it takes, by name: give {', '.join(lacking)} a default"
        )
    given = {
        p.name: known[p.name]
        for p in named
        if p.kind is not p.POSITIONAL_ONLY and (p.name in asked or p in required)
    }
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        given["device"] = options.device
    return given


def _read_result(result: Any, name: str) -> Arguments:
    import torch

    match result:
        case (list() | tuple() as args, Mapping() as kwargs) if type(result) is tuple:
            pass
        case list() | tuple() as args:
            kwargs = {}
        case Mapping() as kwargs:
            args = ()
        case torch.Tensor():
            args, kwargs = (result,), {}
        case _:
            kind = "None" if result is None else f"a {type(result).__name__}"
            raise UsageError(
                f"{name}() returned {kind}: return a tuple of arguments, a dict of them by name, "
                f"or (args, kwargs)"
            )
    odd = [key for key in kwargs if not isinstance(key, str)]
    if odd:
        raise UsageError(
            f"{name}() returned a dict with the key {odd[0]!r}: keys are parameter names"
        )
    return Arguments(tuple(args), dict(kwargs))


def _moved(value: Any, device: torch.device, done: dict[int, torch.Tensor]) -> Any:
    """`value` with its CPU tensors on `device`; a tensor that occurs twice stays one tensor."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return value
        if id(value) not in done:
            done[id(value)] = _moved_tensor(value, device)
        return done[id(value)]
    if type(value) is list:
        return [_moved(v, device, done) for v in value]
    if type(value) is dict:
        return {k: _moved(v, device, done) for k, v in value.items()}
    if isinstance(value, tuple):
        parts = [_moved(v, device, done) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _moved_tensor(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    if not value.is_leaf:
        return value.to(device)
    # A leaf has to stay one: a plain copy of it would send its gradient to the CPU.
    return value.detach().to(device).requires_grad_(value.requires_grad)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch, and leave its RNG as it was. A GPU that is not in use yet is not started."""
    import torch

    state = torch.get_rng_state()
    gpus = [gpu for gpu in (torch.cuda, torch.xpu) if gpu.is_initialized()]
    gpu_states = [gpu.get_rng_state_all() for gpu in gpus]
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)
        for gpu, states in zip(gpus, gpu_states, strict=True):
            gpu.set_rng_state_all(states)
