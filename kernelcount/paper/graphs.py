"""CUDA graphs that the user's code captures by hand: what is captured runs at each replay.

torch.compile's own graphs (reduce-overhead) are not made here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kernelcount.errors import NotMeasuredError
from kernelcount.paper.log import Call, Log
from kernelcount.paper.scene import Scene
from kernelcount.paper.streams import Told

# Ops that draw random numbers: a replay first fills the generator's seed and offset
# (CUDAGraph::replay in aten/src/ATen/cuda/CUDAGraph.cpp), and by how many kernels is not known.
_DRAWS = ("rand", "dropout", "bernoulli", "normal", "uniform", "exponential", "multinomial")


class CUDAGraph:
    """torch.cuda.CUDAGraph: the calls that were made while it was captured."""

    scene: ClassVar[Scene]

    def __init__(self, keep_graph: bool = False) -> None:  # noqa: ARG002
        self.captured: list[Call] = []
        self._outside: tuple[list[Call], bool] | None = None

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """From here on nothing runs."""
        log = self._log()
        self._outside = log.calls, log.is_open
        log.calls, log.is_open = [], True

    def capture_end(self) -> None:
        """Keep what was called since the beginning."""
        log = self._log()
        if self._outside is not None:
            self.captured = log.calls
            log.calls, log.is_open = self._outside
            self._outside = None

    def replay(self) -> None:
        """Run what was captured. The values that it would make are not made."""
        log = self._log()
        if self.scene.values is not None:
            self.scene.values.stale = (
                "the path depends on values, and on paper a CUDA graph's replay makes none"
            )
        if not log.is_open:
            return
        log.calls.extend(self.captured)
        if any(word in call.name for call in self.captured for word in _DRAWS):
            log.note_open("replay of random numbers")

    def reset(self) -> None:
        """Forget what was captured."""
        self.captured = []

    def pool(self) -> tuple[int, int]:
        """The memory that it shares: none."""
        return 0, 0

    def _log(self) -> Log:
        if self.scene.log is None:
            raise NotMeasuredError("a CUDA graph outlived the count on paper that it was made in")
        return self.scene.log


class Capture:
    """torch.cuda.graph: captures what runs inside."""

    refused: ClassVar[Any]

    def __init__(self, cuda_graph: Any, *_: Any, **__: Any) -> None:
        self.refused("the capture of a CUDA graph")
        self.graph = cuda_graph

    def __enter__(self) -> None:
        """Begin."""
        self.graph.capture_begin()

    def __exit__(self, *_: object) -> None:
        """End."""
        self.graph.capture_end()


def standing_in(scene: Scene, refused: Told) -> dict[str, Any]:
    """By name in torch: CUDAGraph and what captures one. `refused`: `streams.not_compiled`."""
    import torch

    def make_graphed_callables(*_: Any, **__: Any) -> Any:
        raise NotMeasuredError("torch.cuda.make_graphed_callables is not followed on paper")

    def graph_pool_handle() -> tuple[int, int]:
        return 0, 0

    apart = {
        name: torch.compiler.disable(getattr(CUDAGraph, name))
        for name in ("capture_begin", "capture_end", "replay")
    }
    return {
        "cuda.CUDAGraph": type("CUDAGraph", (CUDAGraph,), {"scene": scene, **apart}),
        "cuda.graph": type("graph", (Capture,), {"refused": staticmethod(refused)}),
        "cuda.make_graphed_callables": torch.compiler.disable(make_graphed_callables),
        "cuda.graph_pool_handle": graph_pool_handle,
    }
