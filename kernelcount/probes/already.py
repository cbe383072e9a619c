"""Adapter to Dynamo: functions compiled by their owner that a call runs. Private names stand here.

Every compiled function asks, each time that it is called, what the stance of torch.compile makes of
it: `_callback_from_stance` in torch/_dynamo/eval_frame.py. So they are found wherever they lie. One
that Dynamo takes into the graph of another is not called, and has no options of its own any more.
Where a torch lacks that name, `AlreadyWatch.untold` says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial, wraps
from types import FrameType
from typing import Any

from kernelcount.probes.breaks import hooked

_PLAIN = (None, False)  # callbacks of what is disabled, or only runs what was compiled before
_OPS = "torch._higher_order_ops."  # ops of torch's, such as cond, that compile what they are given

# What modes of torch.compile set: list_mode_options in torch/_inductor/__init__.py.
_MODES = {"cudagraphs": "triton.cudagraphs", "autotuning": "max_autotune"}


class AlreadyWatch:
    """Takes down which functions that are compiled already are called while it is open.

    `uncompiled`: those that the stance had run as they are written. `by_own_options`: those that
    ran compiled by other options than the first one called, which is the variant's own. `modes`:
    what Inductor was asked for by options of any that ran compiled, ``cudagraphs`` and
    ``autotuning``.
    """

    def __init__(self) -> None:
        self.untold: list[str] = []
        self.uncompiled: list[str] = []
        self.by_own_options: list[str] = []
        self.modes: set[str] = set()
        self._first: tuple[object, ...] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> AlreadyWatch:
        place = ("torch._dynamo.eval_frame", "_callback_from_stance")
        if not hooked(self._stack, *place, partial(_asked, self)):
            self.untold.append("what is compiled already")
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def note(self, wrapper: FrameType, callback: Any, answer: Any) -> None:
        """Take down a call. `wrapper`: the frame of Dynamo's that calls the function."""
        function = wrapper.f_locals.get("fn")
        if function is None or _is_torchs_own(function, wrapper.f_back):
            return
        if answer is None:
            _add(self.uncompiled, name_of(function))
            return
        compiler = _compiler(callback)
        config = getattr(compiler, "config", None) or {}  # of Inductor's alone
        self.modes |= {mode for mode, name in _MODES.items() if config.get(name)}
        options = (compiler, getattr(wrapper.f_locals.get("self"), "fullgraph", None))
        self._first = self._first or options
        if options != self._first:
            _add(self.by_own_options, name_of(function))


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _asked(watch: AlreadyWatch, real: Callable[..., Any]) -> Callable[..., Any]:
    """What a compiled function asks before it runs."""

    @wraps(real)
    def answered(callback: Any) -> Any:
        answer = real(callback)
        if callback not in _PLAIN:
            watch.note(sys._getframe(1), callback, answer)
        return answer

    return answered


def _compiler(callback: Any) -> Any:
    """What compiles the graphs, which compares equal where its options are."""
    while (inner := getattr(callback, "_torchdynamo_orig_backend", None)) is not None:
        callback = inner
    return callback


def _is_torchs_own(function: Any, caller: FrameType | None) -> bool:
    """Whether an op of torch's compiles a part of itself, as cond and flex_attention do."""
    if getattr(function, "__self__", None) is not None:
        return False  # a method of somebody's module, which torch's own code calls
    home = str(getattr(function, "__module__", ""))
    calls = str(caller.f_globals.get("__name__", "")) if caller is not None else ""
    return home.startswith("torch.") and (home == calls or calls.startswith(_OPS))


def name_of(function: Any) -> str:
    """A function by its name, a method by its class too, a module by that of its class alone."""
    import torch

    while inner := getattr(function, "__wrapped__", None) or getattr(function, "func", None):
        function = inner
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return type(owner).__name__
    # What is written in C belongs to classes that nobody knows.
    given = "__qualname__" if hasattr(function, "__code__") or owner is not None else "__name__"
    name = getattr(function, given, None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]
