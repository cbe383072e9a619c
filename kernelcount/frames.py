"""Frames of a stack: whose code they are in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from traceback import FrameSummary


def innermost(frames: Sequence[FrameSummary]) -> FrameSummary:
    """The innermost frame that is not torch's own; the innermost where all are.

    `frames` are those from the outside in, one at the least.
    """
    return next((f for f in reversed(frames) if not _is_torchs(f.filename)), frames[-1])


def _is_torchs(file: str) -> bool:
    import torch

    return Path(file).is_relative_to(Path(torch.__file__).parent)
