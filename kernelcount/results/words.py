"""A count in a few words, and why a figure is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelcount.render.figures import Figures
    from kernelcount.results.counts import Count

_SHORT = 80  # characters of a reason in a repr


def on_cpu(figures: Figures) -> str:
    """Why there are no kernels where CPU operations were counted."""
    return f"no GPU was involved: cpu_ops has the operations ({figures.total})"


def unmodelled(figures: Figures) -> str:
    """Why bytes were not worked out."""
    beside = figures.beside
    if beside is None:
        return "bytes are worked out on paper: device='paper', or a target named by a string"
    return getattr(beside.outcome, "reason", "paper does not know what ran")


def briefly(count: Count) -> str:
    """A count in a few words."""
    f = count.figures
    if f.reason is not None:
        reason = f.reason if len(f.reason) <= _SHORT else f"{f.reason[:_SHORT]}..."
        return f"unmeasured: {reason}"
    if f.on_cpu:
        return f"{'1 operation' if f.total == 1 else f'{f.total} operations'} on the CPU"
    at_least = f.paper is not None and f.paper.at_least
    bound = "at least " if at_least else ""
    unsure = " seen" if f.in_part or count.stable is False else ""
    kernels = "1 kernel" if f.kernels == 1 else f"{f.kernels} kernels"
    return f"{bound}{kernels}{unsure}{' on paper' if f.on_paper else ''}"
