"""Modelled bytes beside those that an H200's counters saw go to and from its memory.

``tests/gpu/counted_bytes.py`` recorded the figures, for arrays far larger than the L2 cache.
"""

import json
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
RECORDED = json.loads((TESTS / "data" / "h200" / "dram.json").read_text())["read and written"]
NEAR = 0.02  # of the bytes that are modelled

# Where more is read than the op must read, and why.
_AGAIN = "rows that do not stay in the cache are read again, of which a note tells"
_TILES = "each tile of a product reads its operands again"
_SECTORS = "memory is read in sectors of 32 bytes, of which not all is used"
_PASSES = "it goes over its input several times, or makes another of it, inside of one call"
_DRAWN = "rows that are drawn at random are drawn again when they have left the cache"
_FOUND = "rows that are drawn twice may be found in the cache the second time"
MORE = {
    "every_other_scaled": _SECTORS,
    "gathered": _SECTORS,
    "looked_up": _DRAWN,
    "product": _TILES,
    "convolved": _PASSES,
    "eight_largest": _PASSES,
    "sorted_rows": _PASSES,
}
LESS = {"some_rows": _FOUND}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.replace(" ", "-"))
def test_the_bytes_read_are_those_that_the_counters_saw(case, count):
    name, *inputs = case.split()
    spec = f"{TESTS / 'gpu' / 'moving.py'}:{name}"
    (outcome,) = count(spec, device="paper", inputs=tuple(inputs), no_grad=True).values()
    works = [outcome.records.works[i] for i in outcome.records.work]
    modelled = sum(work.read or 0 for work in works if work.activity == "kernel")
    read, _ = RECORDED[case]
    if name in LESS:
        assert read < modelled
    elif name in MORE or any(note.code == "read-again" for note in outcome.notes):
        assert read > (1 - NEAR) * modelled
    else:
        assert read == pytest.approx(modelled, rel=NEAR)
