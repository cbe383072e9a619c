"""Adapter to Dynamo: where graphs broke, and which guards failed. Private names stand here.

Both are taken down in the compilation that takes place anyway, from what Dynamo tells its own logs,
whether these are on or off. Where a torch lacks a name, `BreakWatch.untold` says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import PurePath
from traceback import FrameSummary
from typing import Any
from unittest import mock

from kernelcount.model import Break, Recompilation
from kernelcount.origins.callers import innermost, is_users, plain

# A guard's text begins with the compilation that it belongs to and ends with the code it is from:
# get_guard_fail_reason_helper in torch/_dynamo/guards.py.
_GUARD = re.compile(r"^(?:\d+/\d+(?:_\d+)?: )?(.*?)(?:\s+# .*)?$")

# What a break is about, in Dynamo's words (torch/_dynamo/graph_break_registry.json), and in ours.
_ABOUT = (
    (re.compile(r"^Data-dependent branching"), "branch on a tensor's value"),
    (re.compile(r"^Data-dependent assertion"), "assert on a tensor's value"),
    (re.compile(r"^(?:Unsupported )?(Tensor\.\w+\(\))"), r"\1"),
    (re.compile(r"^Call to `(torch\._dynamo\.graph_break\(\))`"), r"\1"),
    (re.compile(r"builtin operator `([^`]+)`"), r"\1"),
    (re.compile(r"trace the (?:Python )?builtin `_?([^`]+?)\.?`"), r"\1"),
    (re.compile(r"Skip calling function `<function (\S+) at"), r"\1 is disabled for the compiler"),
    (re.compile(r"Operator `(?:aten\.)?(\w+)[^`]*`'s output shape depends"),
     r"\1: its size depends on values"),
    (re.compile(r"method: <Logger .*?>\.(\w+)"), r"logging: \1"),
    (re.compile(r"qualname: (\S+?),"), r"\1"),
)  # fmt: skip
_ASKED = "torch._dynamo.graph_break()"
_LONGEST = 100  # characters of a reason


class BreakWatch:
    """Takes down graph breaks and recompilations while it is open.

    `untold` says what this torch does not tell.
    """

    def __init__(self) -> None:
        self.untold: list[str] = []
        self._breaks: dict[tuple[object, ...], Break] = {}
        self._recompilations: list[Recompilation] = []
        self._told_breaks = self._told_guards = False
        self._stack = ExitStack()

    def __enter__(self) -> BreakWatch:
        for_breaks = ("torch._dynamo.symbolic_convert", "InstructionTranslatorBase.log_graph_break")
        for_guards = ("torch._dynamo.convert_frame", "get_and_maybe_log_recompilation_reasons")
        self._told_breaks = hooked(self._stack, *for_breaks, partial(_broke, self))
        self._told_guards = hooked(self._stack, *for_guards, partial(_failed, self))
        if not self._told_breaks:
            self.untold.append("where graphs break")
        if not self._told_guards:
            self.untold.append("which guards fail")
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def breaks(self) -> tuple[Break, ...] | None:
        """Each place once, in the order of the first time; None where that cannot be told."""
        return tuple(self._breaks.values()) if self._told_breaks else None

    @property
    def recompilations(self) -> tuple[Recompilation, ...] | None:
        """In order; None where that cannot be told."""
        return tuple(self._recompilations) if self._told_guards else None

    def gave_up(self) -> None:
        """Say that the last recompilation did not take place: the limit was reached."""
        if self._recompilations:
            self._recompilations.pop()

    def note_break(self, message: str, stack: Iterable[FrameSummary]) -> None:
        """Take down a break. `stack`: the user's frames, the innermost one last."""
        frames = list(stack)
        if not frames:
            return
        reason, explanation = about(message)
        if reason == _ASKED and not is_users(frames[-1].filename):
            reason, explanation = _asked_by_torch(frames)
        # A call that Dynamo inlined breaks once for each function above, and once for itself.
        key = (frames[-1].filename, frames[-1].lineno, reason)
        at = innermost(frames)
        self._breaks.setdefault(
            key, Break(at.filename, at.lineno, plain(at.name), reason, explanation)
        )

    def note_recompilation(self, code: Any, guard: str) -> None:
        """Take down a recompilation of the function with this code."""
        match = _GUARD.match(guard.partition("\n")[0].strip())
        said = " ".join((match[1] if match else guard).split())
        self._recompilations.append(
            Recompilation(code.co_filename, code.co_firstlineno, plain(code.co_name), said)
        )


def _asked_by_torch(frames: Sequence[FrameSummary]) -> tuple[str, str]:
    """What a break is about that no user asked for: torch keeps a call in a graph of its own.

    So it does with the step of an optimizer (_use_grad_for_differentiable in torch/optim).
    """
    at = frames[-1]
    file = PurePath(at.filename)
    is_step = file.parts[-3:] == ("torch", "optim", "optimizer.py")
    what = "Optimizer.step" if is_step else f"{at.name} of torch"
    where = "/".join(file.parts[-3:])
    return what, f"torch itself breaks the graph there, in {at.name} of {where}."


def hooked(
    stack: ExitStack, module: str, name: str, hook: Callable[[Callable[..., Any]], Any]
) -> bool:
    """Have `hook` wrap a function of torch's until `stack` is closed; whether there is one."""
    from importlib import import_module

    *owners, attribute = name.split(".")
    try:
        owner: Any = import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        real = getattr(owner, attribute)
    except (ImportError, AttributeError):
        return False
    stack.enter_context(mock.patch.object(owner, attribute, hook(real)))
    return True


def _broke(watch: BreakWatch, real: Callable[..., Any]) -> Callable[..., Any]:
    """log_graph_break of the symbolic interpreter, which is called for every break."""

    @wraps(real)
    def logged(self: Any, code_options: Any, reason: str, exc: Any) -> Any:
        if not getattr(exc, "logged", False):
            # Of a break in a loop `msg` begins with what broke the loop.
            watch.note_break(str(getattr(exc, "msg", "") or reason), _frames(self, exc))
        return real(self, code_options, reason, exc)

    return logged


def _frames(interpreter: Any, exc: Any) -> list[FrameSummary]:
    if stack := list(getattr(exc, "real_stack", None) or ()):
        return stack
    code = interpreter.f_code
    return [FrameSummary(code.co_filename, interpreter.lineno, code.co_name, lookup_line=False)]


def _failed(watch: BreakWatch, real: Callable[..., Any]) -> Callable[..., Any]:
    """What looks up which guard has failed, called before a function is compiled again."""

    @wraps(real)
    def looked_up(cache_entries: Any, frame: Any, *rest: Any, **options: Any) -> Any:
        reasons = real(cache_entries, frame, *rest, **options)
        # torch 2.11 looks twice, the second time for its own statistics.
        if not options.get("skip_logging"):
            watch.note_recompilation(frame.f_code, reasons[0] if reasons else "unknown")
        return reasons

    return looked_up


def about(message: str) -> tuple[str, str]:
    """What Dynamo's message is about, in a few words, and its explanation on one line."""
    first, _, rest = message.strip().partition("\n")
    found = re.search(r"Explanation: (.*)", rest)
    explanation = " ".join(found[1].split()) if found else ""
    for pattern, words in _ABOUT:
        if (match := pattern.search(message)) is not None:
            return match.expand(words), explanation
    return first.strip()[:_LONGEST], explanation
