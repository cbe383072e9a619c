"""The cards that a count on paper can be for: one row each, every figure with its source."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kernelcount.errors import UsageError

_MB = 1_000_000
_GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a compute capability fixes. Shared memory in bytes for each block, by opt-in.

    Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
    """

    threads_per_multiprocessor: int
    shared_memory: int


LIMITS = {
    (7, 5): Limits(1024, 64 << 10),
    (8, 0): Limits(2048, 163 << 10),
    (8, 6): Limits(1536, 99 << 10),
    (8, 9): Limits(1536, 99 << 10),
    (9, 0): Limits(2048, 227 << 10),
    (10, 0): Limits(2048, 227 << 10),
}

WARP = 32
REGISTERS_PER_MULTIPROCESSOR = 1 << 16
THREADS_PER_BLOCK = 1024
"""The same for every compute capability above; source as for `Limits`."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU that need not be there.

    `memory` and `l2` are in bytes, `bandwidth` in bytes a second, as `source` has them. `l2` is
    what decides whether an array comes from memory at all.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    l2: int
    bandwidth: int
    source: str

    @property
    def limits(self) -> Limits:
        """What the card's compute capability fixes."""
        return LIMITS[self.capability]


_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture white paper (multiprocessors)"
_ADA = "NVIDIA Ada GPU Architecture white paper (multiprocessors, L2)"

_ROWS = (
    Card("H200", (9, 0), 132, 141 * _GB, 60 * _MB, 4800 * _GB,
         f"NVIDIA H200 data sheet (memory, bandwidth); {_HOPPER}; L2 as torch reports it there"),
    Card("H100", (9, 0), 132, 80 * _GB, 50 * _MB, 3350 * _GB,
         f"NVIDIA H100 data sheet, SXM (memory, bandwidth); {_HOPPER}, L2 too"),
    Card("A100", (8, 0), 108, 80 * _GB, 40 * _MB, 2039 * _GB,
         "NVIDIA A100 data sheet, 80 GB SXM (memory, bandwidth); NVIDIA A100 Tensor Core GPU "
         "Architecture white paper (multiprocessors, L2)"),
    Card("A10", (8, 6), 72, 24 * _GB, 6 * _MB, 600 * _GB,
         "NVIDIA A10 data sheet (memory, bandwidth); NVIDIA Ampere GA102 GPU Architecture white "
         "paper (multiprocessors, L2)"),
    Card("L40S", (8, 9), 142, 48 * _GB, 96 * _MB, 864 * _GB,
         f"NVIDIA L40S data sheet (memory, bandwidth); {_ADA}"),
    Card("L4", (8, 9), 58, 24 * _GB, 48 * _MB, 300 * _GB,
         f"NVIDIA L4 data sheet (memory, bandwidth); {_ADA}"),
    Card("T4", (7, 5), 40, 16 * _GB, 4 * _MB, 320 * _GB,
         "NVIDIA T4 data sheet (memory, bandwidth); NVIDIA Turing GPU Architecture white paper "
         "(multiprocessors, L2)"),
    Card("B200", (10, 0), 148, 178 * _GB, 126 * _MB, 7672 * _GB,
         "CUDA device query and memory clock on a B200: github.com/pytorch/ao/pull/4002 (all)"),
)  # fmt: skip

CARDS: dict[str, Card] = {card.name: card for card in _ROWS}

DEFAULT = "H200"
"""The card whose library calls the atlas that comes with the package holds."""


def find(name: str | None) -> Card:
    """The card of this name, whatever its case, or the default for None.

    Raises UsageError, with the names that there are, for another.
    """
    known = {n.lower(): card for n, card in CARDS.items()}
    card = known.get((name or DEFAULT).lower().removeprefix("nvidia").strip())
    if card is not None:
        return card
    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    hint = f"; did you mean {known[near[0]].name}?" if near else ""
    raise UsageError(f"--gpu {name!r} is not one of {', '.join(CARDS)}{hint}")


def of_device(device: str) -> Card | None:
    """The card that torch calls `device`, such as ``NVIDIA H100 80GB HBM3``, or None.

    A name of several words must stand there whole; of several that do, the longest.
    """
    words = device.replace("-", " ").lower().split()
    fitting = [c for c in _ROWS if set(c.name.lower().split()) <= set(words)]
    return max(fitting, key=lambda card: len(card.name), default=None)


def device_properties(card: Card) -> Any:
    """What torch.cuda.get_device_properties would say of the card."""
    return SimpleNamespace(
        name=f"NVIDIA {card.name}",
        gcnArchName=f"NVIDIA {card.name}",  # on NVIDIA's cards torch has the name here, too
        major=card.capability[0],
        minor=card.capability[1],
        multi_processor_count=card.multiprocessors,
        warp_size=WARP,
        regs_per_multiprocessor=REGISTERS_PER_MULTIPROCESSOR,
        max_threads_per_multi_processor=card.limits.threads_per_multiprocessor,
        max_threads_per_block=THREADS_PER_BLOCK,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=card.limits.shared_memory,
        total_memory=card.memory,
        L2_cache_size=card.l2,
    )
