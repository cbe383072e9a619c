"""What stands in for the call of a function of TorchScript's: nobody counts what it launches.

On a GPU its fuser joins ops into kernels of its own after a few calls (torch/csrc/jit/passes/
tensorexpr_fuser.cpp), and on tensors without memory it does not, so that a count of its ops would
be too high.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelcount.paper.scene import Scene


def calls(scene: Scene) -> dict[Any, Callable[..., Any]]:
    """By class, what stands in for calling one of it."""
    import torch

    return {kind: _calling(kind, scene) for kind in (torch.jit.ScriptFunction, torch.ScriptMethod)}


def _calling(kind: Any, scene: Scene) -> Callable[..., Any]:
    call = kind.__call__

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Do it, and note that it launches what is not counted."""
        if scene.log is None:
            return call(self, *args, **kwargs)
        scene.note_open(f"{self.name} of TorchScript")
        with scene.log.opened(to=False):
            return call(self, *args, **kwargs)

    return called
