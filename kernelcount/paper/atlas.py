"""Kernels inside library calls, as recorded on a card: what no rule can know.

An entry holds for one op with its dtype, shapes and parameters on one card, and bears the versions
that it was recorded with. Whoever uses it says so.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelcount.errors import UnreadableError
from kernelcount.paper import rules

FILE = Path(os.environ.get("KERNELCOUNT_ATLAS") or Path(__file__).parent / "atlas.json")
"""The atlas that comes with the package, or that of your own card."""

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """How many kernels and copies one call launched.

    `shapes`: of its tensors, in order. `parameters`: as in `rules.Op`. `source` ends a sentence.
    """

    op: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    parameters: str
    kernels: int
    copies: int
    card: str
    torch: str
    source: str


def load(path: Path) -> tuple[Entry, ...]:
    """The entries of an atlas. Raises UnreadableError where it is none of ours."""
    try:
        document = json.loads(path.read_text())
        if document["kernelcount_atlas"] != VERSION:
            raise UnreadableError(f"{path}: an atlas of another version; this one reads {VERSION}")
        return tuple(
            Entry(**{**e, "shapes": tuple(map(tuple, e["shapes"]))}) for e in document["entries"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{path}: no atlas of library calls: {error}") from None


def dump(entries: tuple[Entry, ...]) -> str:
    """The entries as `load` reads them, one a line."""
    lines = ",\n  ".join(
        json.dumps(
            {name: getattr(e, name) for name in Entry.__dataclass_fields__}, ensure_ascii=False
        )
        for e in entries
    )
    return f'{{"kernelcount_atlas": {VERSION}, "entries": [\n  {lines}\n]}}\n'


@lru_cache(maxsize=1)
def _shipped() -> tuple[Entry, ...]:
    return load(FILE)


def refined(op: rules.Op, cost: rules.Cost, card: str) -> tuple[rules.Cost, str | None]:
    """The cost of an op that no rule knows, as far as the atlas does, and where that is from.

    What was recorded on another card than `card`, or with another torch than this, says nothing.
    """
    if cost.exact or not op.read:
        return cost, None
    found = recorded(_shipped(), op, card, _this_torch())
    if found is None or found.kernels < cost.kernels:
        return cost, None
    said = f"{op.name}: {found.kernels} kernels, as {found.source}"
    return rules.Cost(found.kernels, max(cost.copies, found.copies)), said


def recorded(entries: tuple[Entry, ...], op: rules.Op, card: str, torch: str) -> Entry | None:
    """The entry for this op, dtype, shapes and parameters on this card with this torch, or None.

    Another shape may take another path, with fewer kernels too, so nothing is carried over to it.
    """
    dtype, shapes = dtype_of(op), shapes_of(op)
    same = (
        e
        for e in entries
        if (e.op, e.dtype, e.shapes, e.parameters) == (op.name, dtype, shapes, op.parameters)
        and (e.card, _series(e.torch)) == (card, _series(torch))
    )
    return next(same, None)


def _series(version: str) -> str:
    """2.13 of 2.13.0+cpu: between series, kernels inside library calls change."""
    return ".".join(version.split(".")[:2])


def _this_torch() -> str:
    import torch

    return str(torch.__version__)


def dtype_of(op: rules.Op) -> str:
    """The dtype of the op's first tensor, as torch names it."""
    return str(op.read[0].dtype).removeprefix("torch.") if op.read else ""


def shapes_of(op: rules.Op) -> tuple[tuple[int, ...], ...]:
    """The shapes of the op's tensors, in order."""
    return tuple(tuple(int(n) for n in t.shape) for t in op.read)
