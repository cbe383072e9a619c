"""Adapter to Dynamo: what was compiled, when, and whether it gave up. Private names stand here."""

from __future__ import annotations

import logging
from typing import Any

_LIMIT_LOGGERS = ("torch._dynamo.convert_frame",)
_LIMIT_TEXT = "torch._dynamo hit config."


class CompilerWatch(logging.Handler):
    """Counts what torch.compile does while it is open.

    `compilations` counts starts of any compilation: a frame, a lazy backward, the recording of a
    CUDA graph. `graphs` counts graphs that were made. `limit` holds where the recompile limit was
    reached, as Dynamo words it. `blind` says what cannot be told on this torch, or is None.
    """

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.compilations = 0
        self.limit: str | None = None
        self.blind: str | None = None
        self._graphs_before = 0
        self._skips_before = 0

    def __enter__(self) -> CompilerWatch:
        import torch

        torch._dynamo.reset()
        self._graphs_before, self._skips_before = self._graphs(), self._skips()
        for name in _LIMIT_LOGGERS:
            logging.getLogger(name).addHandler(self)
        try:
            from torch._dynamo.callback import callback_handler

            callback_handler.register_start_callback(self._started)
        except (ImportError, AttributeError):
            self.blind = f"cannot tell on torch {torch.__version__} when something is compiled"
        return self

    def __exit__(self, *exc: object) -> None:
        for name in _LIMIT_LOGGERS:
            logging.getLogger(name).removeHandler(self)
        if self.blind is None:
            from torch._dynamo.callback import callback_handler

            if self._started in callback_handler.start_callbacks:
                callback_handler.remove_start_callback(self._started)

    def emit(self, record: logging.LogRecord) -> None:
        """Take the warning that Dynamo gives once for a function that it gives up on."""
        text = record.getMessage()
        if text.startswith(_LIMIT_TEXT):
            lines = [line.strip() for line in text.splitlines()]
            limit = lines[0].removeprefix(_LIMIT_TEXT)
            where = next((x.partition(":")[2].strip() for x in lines if x[:9] == "function:"), "")
            self.limit = f"{limit} at {where}" if where else limit

    @property
    def graphs(self) -> int:
        """Graphs made since the watch was opened."""
        return self._graphs() - self._graphs_before

    @property
    def cudagraph_skips(self) -> int:
        """How often Inductor passed over CUDA graphs since the watch was opened."""
        return self._skips() - self._skips_before

    def _started(self, _: Any) -> None:
        self.compilations += 1

    @staticmethod
    def _graphs() -> int:
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"])

    @staticmethod
    def _skips() -> int:
        from torch._dynamo.utils import counters

        return int(counters["inductor"]["cudagraph_skips"])
