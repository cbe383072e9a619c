"""Kernels inside library calls, as recorded on a card: what no rule can know.

An atlas is of one card and one torch. An entry holds for one op with its dtypes and parameters, and
either for the calls it lists, by their shapes and layouts, or for a whole class of shape (see
`classes`) of which the calls listed are what was recorded. Whoever uses it says so.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelcount.errors import UnreadableError
from kernelcount.paper import cards, classes, copying, rules

if TYPE_CHECKING:
    from torch import Tensor

FILE = Path(os.environ.get("KERNELCOUNT_ATLAS") or Path(__file__).parent / "atlas.json")
"""The atlas that comes with the package, or that of your own card."""

VERSION = 2

ALIGNMENT = 16
"""Bytes: cuBLAS chooses otherwise for operands that begin elsewhere (its documentation, "Tensor
Core Usage"), and torch's vectorised kernels do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How many kernels and copies one call launches.

    `dtype`: of its tensors, one for all, or each one's. `calls`: signatures as `signature` gives
    them. `parameters`: as in `rules.Op`. `klass`: the class of shape that it holds for, or None
    where it holds for `calls` alone.
    """

    op: str
    dtype: str
    kernels: int
    copies: int
    calls: tuple[str, ...]
    parameters: str = ""
    klass: str | None = None


@dataclass(frozen=True, slots=True)
class Atlas:
    """What was recorded on one card with one torch. `cuda` is the one torch was built with."""

    card: str
    torch: str
    cuda: str | None
    entries: tuple[Entry, ...]
    _by_call: dict[tuple[str, ...], Entry] = field(default_factory=dict, compare=False, repr=False)
    _by_class: dict[tuple[str, ...], Entry] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for entry in self.entries:
            if entry.klass is not None:
                self._by_class[entry.op, entry.dtype, entry.klass] = entry
                continue
            for call in entry.calls:
                self._by_call[entry.op, entry.dtype, entry.parameters, call] = entry

    @property
    def source(self) -> str:
        """Where its counts are from, as the end of a sentence."""
        cuda = f" (CUDA {self.cuda})" if self.cuda else ""
        return f"recorded on an {self.card} with torch {self.torch}{cuda}"

    def applies(self, card: str, torch: str, cuda: str | None = None) -> bool:
        """Whether it says anything of this card under this torch.

        `cuda`: what that torch is built for, None where for none: which cuBLAS and cuDNN it would
        come with on the card is open then.
        """
        same = cuda is None or self.cuda is None or cuda == self.cuda
        return same and (self.card, series(self.torch)) == (card, series(torch))

    def find(self, op: rules.Op) -> Entry | None:
        """The entry for this call, or for its class of shape, or None.

        Another shape may take another path, with fewer kernels too, so nothing is carried over to
        it but within a class.
        """
        if not all(map(_is_aligned, op.read)):
            return None
        dtype = dtypes_of(op)
        found = self._by_call.get((op.name, dtype, op.parameters, signature(op)))
        if found is None and (klass := classes.of(op)) is not None:
            found = self._by_class.get((op.name, dtype, klass.name))
        return found


def load(path: Path) -> Atlas:
    """An atlas from its file. Raises UnreadableError where it is none of ours."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["kernelcount_atlas"] != VERSION:
            raise UnreadableError(
                f"{path}: an atlas of another version; this one reads {VERSION}: record it again "
                f"with kernelcount doctor --record-atlas {path}"
            )
        return Atlas(
            str(document["card"]),
            str(document["torch"]),
            document["cuda"],
            tuple(map(_entry, document["entries"])),
        )
    except OSError as error:
        raise UnreadableError(f"{path}: no atlas of library calls: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UnreadableError(f"{path}: this is no atlas of library calls") from None


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        str(row["op"]),
        str(row["dtype"]),
        int(row["kernels"]),
        int(row["copies"]),
        tuple(map(str, row["calls"])),
        str(row.get("parameters", "")),
        row.get("class"),
    )


def dump(atlas: Atlas) -> str:
    """The atlas as `load` reads it, an entry a line."""
    head = {"kernelcount_atlas": VERSION, "card": atlas.card, "torch": atlas.torch}
    first = json.dumps({**head, "cuda": atlas.cuda}, ensure_ascii=False)[:-1]
    lines = ",\n  ".join(json.dumps(_row(entry), ensure_ascii=False) for entry in atlas.entries)
    return f'{first}, "entries": [\n  {lines}\n]}}\n'


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"op": entry.op, "dtype": entry.dtype}
    row |= {"parameters": entry.parameters} if entry.parameters else {}
    row |= {"kernels": entry.kernels, "copies": entry.copies}
    row |= {"class": entry.klass} if entry.klass is not None else {}
    return {**row, "calls": list(entry.calls)}


@lru_cache(maxsize=1)
def shipped() -> Atlas:
    """The atlas in use. Raises UnreadableError where the one that was asked for is none."""
    try:
        return load(FILE)
    except UnreadableError as error:
        raise UnreadableError(
            f"{error} (KERNELCOUNT_ATLAS names it; kernelcount doctor --record-atlas makes one)"
        ) from None


def refined(op: rules.Op, cost: rules.Cost, card: str) -> tuple[rules.Cost, str | None]:
    """The cost of an op that no rule knows, as far as the atlas does, and where that is from.

    What was recorded on another card than `card`, or with another torch than this, says nothing;
    nor does it where torch was told to choose kernels in another way.
    """
    if cost.exact or not op.read:
        return cost, None
    atlas = shipped()
    if not (atlas.applies(card, *this_torch()) and as_by_default()):
        return cost, None
    found = atlas.find(op)
    if found is None or found.kernels < cost.kernels:
        return cost, None
    said = f"{op.name}: {found.kernels} kernels, as {atlas.source}"
    return rules.Cost(found.kernels, max(cost.copies, found.copies)), said


def as_by_default() -> bool:
    """Whether the switches by which torch chooses other kernels are as torch has them at first."""
    import torch

    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    try:
        return (
            torch.get_float32_matmul_precision() == "highest"
            and torch.backends.fp32_precision == "none"
            and matmul.allow_bf16_reduced_precision_reduction is True
            and matmul.allow_fp16_reduced_precision_reduction is True
            and not matmul.allow_fp16_accumulation
            and not torch.are_deterministic_algorithms_enabled()
            and bool(cudnn.enabled and cudnn.allow_tf32)
            and not (cudnn.benchmark or cudnn.deterministic)
        )
    except RuntimeError:  # a precision that was set by the newer names has no answer by the older
        return False


def card_called(name: str, multiprocessors: int | None) -> str:
    """The card of our table that torch calls `name`, or that name without its maker.

    ``NVIDIA H100 80GB HBM3`` is the H100. One with another number of multiprocessors, as a part of
    a card or its slower sister, chooses other kernels and keeps its long name.
    """
    card = cards.of_device(name)
    if card is not None and multiprocessors in (None, card.multiprocessors):
        return card.name
    return name.removeprefix("NVIDIA ")


def series(version: str) -> str:
    """2.13 of 2.13.0+cpu: between series, kernels inside library calls change."""
    return ".".join(version.split(".")[:2])


def this_torch() -> tuple[str, str | None]:
    """The version of torch, and of the CUDA that it is built for, if any."""
    import torch

    return str(torch.__version__), torch.version.cuda


def dtypes_of(op: rules.Op) -> str:
    """The dtype of the op's tensors as torch names it; of each where they differ."""
    names = [str(t.dtype).removeprefix("torch.") for t in op.read]
    return names[0] if len(set(names)) == 1 else ",".join(names)


def signature(op: rules.Op) -> str:
    """The shapes and layouts of the op's tensors in order: ``64x768 768x3072:10``.

    Several alike in a row are written once, with their number: ``2x8x512x64*3``. A layout is the
    order of dimensions in memory, left out where it is 0, 1, 2, ...; a tensor that leaves memory
    between its elements, or repeats them, has its strides instead: ``256x64/128x1``.
    """
    runs = ((text, len(list(alike))) for text, alike in groupby(map(_signed, op.read)))
    return " ".join(f"{text}*{n}" if n > 1 else text for text, n in runs)


def _signed(tensor: Tensor) -> str:
    shape, strides = list(map(int, tensor.shape)), list(map(int, tensor.stride()))
    text = "x".join(map(str, shape)) or "scalar"
    # The stride of a dimension of one element says nothing.
    real = [i for i, n in enumerate(shape) if n > 1]
    order = sorted(real, key=lambda i: -strides[i])
    if not copying.is_dense(tensor):
        return f"{text}/{'x'.join(str(strides[i]) for i in real)}"
    return text if order == real else f"{text}:{''.join(map(str, order))}"


def _is_aligned(tensor: Tensor) -> bool:
    return int(tensor.storage_offset()) * int(tensor.element_size()) % ALIGNMENT == 0
