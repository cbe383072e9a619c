"""Threads of the user's: what they launch is not followed on paper, so it is refused.

The mode that notes ops holds in the thread that makes the call and in no other: what another one
does would be counted as nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from kernelcount.origins import callers
from kernelcount.paper import adapter
from kernelcount.paper.places import is_gpu, is_on
from kernelcount.paper.scene import Scene
from kernelcount.paper.steps import leaves

REASON = "the function works in threads of its own: not followed on paper"

# torch.nn.parallel runs the user's modules in threads; what else of torch's starts some compiles.
_FOR_THE_USER = "torch.nn."

Work = Callable[..., Any]


def starting(scene: Scene) -> tuple[Work, Work]:
    """Thread.start and ThreadPoolExecutor.submit, which refuse work that is not followed.

    A thread that the user's own code starts in the call is refused at once: it may work on when the
    call is over. One that a library starts, such as for a bar of progress, only if it works on the
    GPU. Those that torch starts in order to compile are left alone.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def started(self: Any) -> None:
        """Thread.start."""
        self.run = _watched(self.run, sys._getframe(1), scene)
        start(self)

    def submitted(self: Any, fn: Work, /, *args: Any, **kwargs: Any) -> Any:
        """ThreadPoolExecutor.submit; its threads may have been there before."""
        return submit(self, _watched(fn, sys._getframe(1), scene), *args, **kwargs)

    return started, submitted


def _watched(work: Work, frame: FrameType | None, scene: Scene) -> Work:
    """`work` for another thread, so that it tells if it comes to the GPU."""
    by = callers.acting(frame)
    if by is not None:
        file, module = by.f_code.co_filename, str(by.f_globals.get("__name__", ""))
        if not callers.is_users(file) and not module.startswith(_FOR_THE_USER):
            return work
        if callers.is_users_own(file) and scene.log is not None and scene.log.is_open:
            scene.refusals.setdefault(REASON)

    def run(*args: Any, **kwargs: Any) -> Any:
        with _watch(scene):
            return work(*args, **kwargs)

    return run


def _watch(scene: Scene) -> Any:
    """A mode that notes that its thread works on the GPU, as long as a count goes on."""

    class Watch(adapter.dispatch_mode()):  # type: ignore[misc]
        """Runs each op as it is."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            asked = kwargs.get("device")
            ours = (asked is not None and is_gpu(asked)) or any(map(is_on, leaves((args, kwargs))))
            passes = adapter.tracing() or any(map(adapter.is_fake, types))
            if ours and not passes and scene.log is not None:
                scene.refusals.setdefault(REASON)
            return func(*args, **kwargs)

    return Watch()
