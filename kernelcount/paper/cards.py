"""The cards that a count on paper can be for: one row each, every figure with its source."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from kernelcount.errors import UsageError
from kernelcount.model import Rates

_MIB = 1 << 20
_GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a compute capability fixes. Shared memory in bytes for each block, by opt-in.

    Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", and
    libcudacxx/include/cuda/__device/arch_traits.h in github.com/NVIDIA/cccl, which has the same
    figures for all of these; 9.0 also by a device query on an H200.

    `tensor_cores`: the precisions whose products they make, by the white papers of the
    architectures (Turing, A100, GA102, Ada, H100, Blackwell).
    """

    threads_per_multiprocessor: int
    shared_memory: int
    tensor_cores: tuple[str, ...] = ()


LIMITS = {
    (7, 5): Limits(1024, 64 << 10, ("f16",)),
    (8, 0): Limits(2048, 163 << 10, ("f16", "bf16", "tf32", "f64")),
    (8, 6): Limits(1536, 99 << 10, ("f16", "bf16", "tf32")),
    (8, 9): Limits(1536, 99 << 10, ("f16", "bf16", "tf32", "fp8")),
    (9, 0): Limits(2048, 227 << 10, ("f16", "bf16", "tf32", "f64", "fp8")),
    (10, 0): Limits(2048, 227 << 10, ("f16", "bf16", "tf32", "f64", "fp8")),
}

WARP = 32
REGISTERS_PER_MULTIPROCESSOR = 1 << 16
THREADS_PER_BLOCK = 1024
"""The same for every compute capability above; source as for `Limits`."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU that need not be there.

    `memory` and `l2` are in bytes, `bandwidth` in bytes a second, as `source` has them. `matmul`:
    operations a second by precision (see `_CITED`). `l2` is
    what decides whether an array comes from memory at all. `memory` is what a device query tells,
    or, where nobody has published one, what the data sheet does, which is a little more.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    l2: int
    bandwidth: int
    source: str

    @property
    def matmul(self) -> tuple[tuple[str, float], ...]:
        """Operations a second of dense matrix products, by precision, as cited in `_CITED`."""
        return tuple((p, n * 1e12) for p, n in _CITED[self.name].items())

    @property
    def limits(self) -> Limits:
        """What the card's compute capability fixes."""
        return LIMITS[self.capability]


_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture white paper (multiprocessors, L2)"
_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture white paper (multiprocessors, L2)"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper"
_ADA = "NVIDIA Ada GPU Architecture white paper"

# A device query tells memory and L2 in units of 2**20 bytes, though torch prints them as MB.
_ROWS = (
    Card("H200", (9, 0), 132, 150_109_880_320, 60 * _MIB, 4800 * _GB,
         "device query on an H200 (memory, multiprocessors, L2; its clock and bus come to 4815 GB "
         "a second); NVIDIA H200 data sheet (bandwidth)"),
    Card("H100", (9, 0), 132, 81_089 * _MIB, 50 * _MIB, 3350 * _GB,
         "torch's device properties in network/comms.md of github.com/stas00/ml-engineering "
         f"(memory, multiprocessors, L2); {_HOPPER}; NVIDIA H100 data sheet, SXM (bandwidth)"),
    Card("H100 PCIe", (9, 0), 114, 80 * _GB, 50 * _MIB, 2000 * _GB,
         f"{_HOPPER}; NVIDIA H100 data sheet, PCIe (memory, bandwidth)"),
    Card("A100", (8, 0), 108, 80 * _GB, 40 * _MIB, 2039 * _GB,
         f"{_AMPERE}; NVIDIA A100 data sheet, 80 GB SXM (memory, bandwidth)"),
    Card("A100 40GB", (8, 0), 108, 40_536 * _MIB, 40 * _MIB, 1555 * _GB,
         "device properties in the documentation of paddle.device.cuda.get_device_properties "
         f"(memory, multiprocessors); {_AMPERE}; NVIDIA A100 data sheet, 40 GB (bandwidth)"),
    Card("A10", (8, 6), 72, 24 * _GB, 6 * _MIB, 600 * _GB,
         f"NVIDIA A10 data sheet (memory, bandwidth); {_GA102} (multiprocessors, L2)"),
    Card("L40S", (8, 9), 142, 48 * _GB, 96 * _MIB, 864 * _GB,
         f"NVIDIA L40S data sheet (memory, bandwidth, multiprocessors by cores); {_ADA} (L2)"),
    Card("L4", (8, 9), 58, 24 * _GB, 48 * _MIB, 300 * _GB,
         f"NVIDIA L4 data sheet (memory, bandwidth); {_ADA} (multiprocessors, L2)"),
    Card("T4", (7, 5), 40, 15_843_721_216, 4 * _MIB, 320 * _GB,
         "deviceQuery at chiemon.github.io/2024/12/25 (memory, multiprocessors, L2; its clock and "
         "bus come to 320 GB a second); NVIDIA T4 data sheet (bandwidth)"),
    Card("RTX 4090", (8, 9), 128, 24 * _GB, 72 * _MIB, 1008 * _GB,
         f"{_ADA} (all)"),
    Card("RTX 3090", (8, 6), 82, 24 * _GB, 6 * _MIB, 936 * _GB,
         f"{_GA102} (all)"),
    Card("B200", (10, 0), 148, int(178.35 * 1024 * _MIB), int(126.5 * _MIB), 7672 * _GB,
         "device query and memory clock on a B200: github.com/pytorch/ao/pull/4002 (all)"),
)  # fmt: skip

# Peaks for dense operands, in 1e12 operations a second, two for a multiplication with its addition:
# the data sheets of the cards (H200, H100, A100, A10, L40S, L4, T4 and, for each GPU, HGX B200),
# where they give sparse figures half of them; of the RTX cards the white papers, with sums in
# float32. Where tensor cores make a precision, theirs.
_HOPPER_SXM = {"f64": 67.0, "f32": 67.0, "tf32": 494.5, "bf16": 989.5, "f16": 989.5, "fp8": 1979.0}
_A100 = {"f64": 19.5, "f32": 19.5, "tf32": 156.0, "bf16": 312.0, "f16": 312.0}
_CITED: dict[str, dict[str, float]] = {
    "H200": _HOPPER_SXM,
    "H100": _HOPPER_SXM,
    "H100 PCIe": {"f64": 51.0, "f32": 51.0, "tf32": 378.0, "bf16": 756.5, "f16": 756.5,
                  "fp8": 1513.0},
    "A100": _A100,
    "A100 40GB": _A100,
    "A10": {"f32": 31.2, "tf32": 62.5, "bf16": 125.0, "f16": 125.0},
    "L40S": {"f32": 91.6, "tf32": 183.0, "bf16": 362.0, "f16": 362.0, "fp8": 733.0},
    "L4": {"f32": 30.3, "tf32": 60.0, "bf16": 121.0, "f16": 121.0, "fp8": 242.5},
    "T4": {"f32": 8.1, "f16": 65.0},
    "RTX 4090": {"f32": 82.6, "tf32": 82.6, "bf16": 165.2, "f16": 165.2, "fp8": 330.3},
    "RTX 3090": {"f32": 35.6, "tf32": 35.6, "bf16": 71.0, "f16": 71.0},
    "B200": {"f64": 37.0, "f32": 75.0, "tf32": 1100.0, "bf16": 2250.0, "f16": 2250.0,
             "fp8": 4500.0},
}  # fmt: skip

CARDS: dict[str, Card] = {card.name: card for card in _ROWS}

DEFAULT = "H200"
"""The card whose library calls the atlas that comes with the package holds."""


def find(name: str | None) -> Card:
    """The card of this name, whatever its case, or the default for None.

    Raises UsageError, with the names that there are, for another.
    """
    known = {n.lower(): card for n, card in CARDS.items()}
    asked = (DEFAULT if name is None else name).lower().removeprefix("nvidia").strip()
    card = known.get(asked.removeprefix("geforce").strip())
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


def full_name(card: Card) -> str:
    """What the card calls itself."""
    return f"NVIDIA {'GeForce ' if card.name.startswith('RTX') else ''}{card.name}"


def cited(card: Card) -> Rates:
    """What the card reaches at the most, by those who make it; launches nobody gives."""
    rates = Rates(full_name(card), "", card.multiprocessors)
    return replace(rates, copy=float(card.bandwidth), matmul=card.matmul)


def device_properties(card: Card) -> Any:
    """What torch.cuda.get_device_properties would say of the card."""
    return SimpleNamespace(
        name=full_name(card),
        gcnArchName=full_name(card),  # on NVIDIA's cards torch has the name here, too
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
