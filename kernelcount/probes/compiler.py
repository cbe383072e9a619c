"""Adapter to Dynamo: what was compiled, when, and whether it gave up. Private names stand here.

Where a torch lacks one of them, `CompilerWatch.blind` says what cannot be told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from kernelcount.probes.already import AlreadyWatch
from kernelcount.probes.breaks import BreakWatch

_LIMIT_LOGGER = "torch._dynamo.convert_frame"
_LIMIT_TEXT = "torch._dynamo hit config."
# The second is torch 2.11's, which is silent unless TORCH_LOGS asks for perf_hints.
_SKIP_LOGGERS = (
    "torch._inductor.cudagraph_utils.__cudagraphs",
    "torch._inductor.cudagraph_utils.__perf_hints",
)
_TRACE_LOGGER = "torch.__trace"  # what TORCH_TRACE writes to files, hundreds of lines a compilation
_SKIP_TEXT = "skipping cudagraphs due to "
_ITEM_LOGGER = "torch._dynamo.variables.tensor"
_ITEM_TEXT = "Graph break from `Tensor.item()`"


MODULES = ("torch", "torch._dynamo", "torch._inductor.compile_fx")
"""What compiling needs, and takes seconds to import. None of them starts a GPU."""


def load() -> None:
    """Import what compiling needs: seconds that belong to no call of the user's code."""
    import torch

    torch.compiler.reset()


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a warning of Dynamo's is more than that of a graph break, which is told by us."""
    return not record.getMessage().startswith(_ITEM_TEXT)


class CompilerWatch(logging.Handler):
    """Counts what torch.compile does while it is open.

    `compilations` counts starts of any compilation: a frame, a lazy backward, the recording of a
    CUDA graph. `limit` holds where the recompile limit was reached, as Dynamo words it.
    `skip_reasons` are Inductor's for doing without CUDA graphs. `broken` takes down where graphs
    break and why functions are compiled again, `already` what its owner has compiled. `blind`
    says what cannot be told on this torch, or is None.
    """

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.compilations = 0
        self._open = self._spent = self._since = 0
        self._timed = True
        self.limit: str | None = None
        self.skip_reasons: list[str] = []
        self.broken = BreakWatch()
        self.already = AlreadyWatch()
        self._untold: list[str] = []
        self._graphs_before: int | None = None
        self._skips_before: int | None = None
        self._final: tuple[int | None, int | None] | None = None

    def __enter__(self) -> CompilerWatch:
        import torch

        torch.compiler.reset()
        self._graphs_before = _counted("stats", "unique_graphs")
        self._skips_before = _counted("inductor", "cudagraph_skips")
        if self._graphs_before is None:
            self._untold.append("how many graphs were compiled")
        if not logging.getLogger(_LIMIT_LOGGER).isEnabledFor(logging.WARNING):
            self._untold.append("whether the recompile limit was reached (its log is off)")
        for name in (_LIMIT_LOGGER, *_SKIP_LOGGERS):
            logging.getLogger(name).addHandler(self)
        logging.getLogger(_ITEM_LOGGER).addFilter(_is_news)
        try:
            from torch._dynamo.callback import callback_handler

            callback_handler.register_start_callback(self._started)
            callback_handler.register_end_callback(self._ended)
        except (ImportError, AttributeError):
            self._timed = False
            self._untold.append("when something is compiled")
        self._untold += self.broken.__enter__().untold + self.already.__enter__().untold
        return self

    def close(self) -> None:
        """Look no further: what was seen so far stays."""
        if self._final is None:
            self._final = (self.graphs, self.cudagraph_skips)
            self.__exit__()

    def __exit__(self, *exc: object) -> None:
        self.already.__exit__(*exc)
        self.broken.__exit__(*exc)
        for name in (_LIMIT_LOGGER, *_SKIP_LOGGERS):
            logging.getLogger(name).removeHandler(self)
        logging.getLogger(_ITEM_LOGGER).removeFilter(_is_news)
        try:
            from torch._dynamo.callback import callback_handler

            if self._started in callback_handler.start_callbacks:
                callback_handler.remove_start_callback(self._started)
                callback_handler.remove_end_callback(self._ended)
        except (ImportError, AttributeError):
            pass

    def emit(self, record: logging.LogRecord) -> None:
        """Take the warning that Dynamo gives once for a function that it gives up on."""
        text = record.getMessage()
        if text.startswith(_LIMIT_TEXT):
            lines = [line.strip() for line in text.splitlines()]
            limit = lines[0].removeprefix(_LIMIT_TEXT)
            where = next((x.partition(":")[2].strip() for x in lines if x[:9] == "function:"), "")
            self.limit = f"{limit} at {where}" if where else limit
            self.broken.gave_up()
        elif text.startswith(_SKIP_TEXT):
            reason = text.removeprefix(_SKIP_TEXT).splitlines()[0].partition(". Found from")[0]
            if reason not in self.skip_reasons:
                self.skip_reasons.append(reason.strip())

    @property
    def blind(self) -> str | None:
        """What cannot be told here, in one sentence."""
        return _cannot_tell(self._untold)

    @property
    def blind_to_compiled(self) -> str | None:
        """The same of what was compiled already, for a variant that compiles nothing."""
        return _cannot_tell(self.already.untold)

    @property
    def graphs(self) -> int | None:
        """Graphs made since the watch was opened; None where that cannot be told."""
        if self._final is not None:
            return self._final[0]
        return _since(self._graphs_before, _counted("stats", "unique_graphs"))

    @property
    def cudagraph_skips(self) -> int | None:
        """How often Inductor passed over CUDA graphs since; None where that cannot be told."""
        if self._final is not None:
            return self._final[1]
        return _since(self._skips_before, _counted("inductor", "cudagraph_skips"))

    @property
    def compile_ns(self) -> int | None:
        """Nanoseconds spent compiling since the watch was opened; None where that is not told."""
        return self._spent if self._timed else None

    def _started(self, _: Any) -> None:
        self.compilations += 1
        if self._open == 0:
            self._since = perf_counter_ns()
        self._open += 1

    def _ended(self, _: Any) -> None:
        self._open = max(0, self._open - 1)
        if self._open == 0:
            self._spent += perf_counter_ns() - self._since


def _cannot_tell(what: list[str]) -> str | None:
    import torch

    return f"cannot tell on torch {torch.__version__} {' or '.join(what)}" if what else None


def _since(before: int | None, now: int | None) -> int | None:
    # The user's code may clear the counters.
    return None if before is None or now is None else now - before if now >= before else now


def _counted(group: str, name: str) -> int | None:
    try:
        from torch._dynamo.utils import counters

        return int(counters[group][name])
    except (ImportError, AttributeError, KeyError, TypeError):
        return None


@contextmanager
def trace_unheard() -> Iterator[None]:
    """Keep the compiler's trace from those who listen to all logs; it is made for files of its own.

    pytest (from 9.2) is one: it shows of a test that fails what was logged, that trace too, which
    torch keeps from the root logger. Nobody else's handlers are touched, nor torch's.
    """
    log = logging.getLogger(_TRACE_LOGGER)
    of_all = [handler for handler in log.handlers if handler in logging.getLogger().handlers]
    for handler in of_all:
        log.removeHandler(handler)
    try:
        yield
    finally:
        for handler in of_all:
            log.addHandler(handler)
