"""Random numbers: the same ones for each variant, and whether any are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def fixed(seed: int) -> Iterator[Callable[[], bool]]:
    """Begin with the same random numbers whenever it is entered; the user's own go on afterwards.

    Gives a function that tells whether any were drawn since.
    """
    import torch

    before = _states()
    torch.manual_seed(seed)
    started = _states()
    try:
        yield lambda: any(
            not torch.equal(now, then) for now, then in zip(_states(), started, strict=False)
        )
    finally:
        _put(before)


def _states() -> list[Any]:
    """Of torch's default generators: the CPU's, and those of the GPUs that are in use."""
    import torch

    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


def _put(states: list[Any]) -> None:
    import torch

    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])
