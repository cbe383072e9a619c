"""How often one function, timed as two, is said to differ from itself.

    python tests/gpu/equals.py [DEVICE [REPEATS]]

At each of three sizes the two take turns, again and again in this process; prints every verdict
other than "no difference", and how many there were.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial

import torch

from kernelcount import devices
from kernelcount.conclusions import comparison
from kernelcount.model import Capture, Timing
from kernelcount.probes import timing

SIZES = (100, 1_000_000, 100_000_000)
SECONDS = 1.0


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Two kernels."""
    return (a + b).relu()


def main(name: str, repeats: int) -> None:
    """Time and tell."""
    device, place = devices.choose(name)
    found = 0
    for size in SIZES:
        a, b = torch.randn(size, device=place), torch.randn(size, device=place)
        for repeat in range(repeats):
            pair = [
                timing.Candidate(name, [partial(add_relu, a, b)], nullcontext)
                for name in ("one", "other")
            ]
            timing.in_turn(pair, device, SECONDS)
            one, other = (
                Capture(c.name, timing=Timing(tuple(c.samples), c.batch, ("one", "other")))
                for c in pair
            )
            speed = comparison.speed(one, other)
            if speed is None or speed.verdict != "no difference":
                found += 1
                print(f"size {size}, repeat {repeat}: {speed}, {len(pair[0].samples)} turns")
        print(f"size {size}: {len(pair[0].samples)} turns of {pair[0].batch} calls last")
    print(f"{found} of {repeats * len(SIZES)} verdicts other than no difference")


if __name__ == "__main__":
    main(*(sys.argv[1:2] or ["cuda"]), int((sys.argv[2:3] or ["30"])[0]))
