"""Diffs to render: what two files come to, in words of real and of hostile traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernelcount.differences.allowances import parse
from kernelcount.differences.differing import between
from kernelcount.model import (
    Break,
    Capture,
    Diff,
    Note,
    Origin,
    Place,
    Provenance,
    Side,
    Source,
    Timing,
    Unmeasured,
)

from .samples import ADD, EVIL, FUSED, RELU, capture, compiled, eager

STEADY = (280_000.0, 280_100.0, 279_900.0, 280_200.0, 279_800.0) * 2
GELU = "triton_poi_fused_gelu_1"


def _sides(*captures: Capture) -> list[Side]:
    return [Side(c.name, "captures", c) for c in captures]


def _diff(before: list[Side], after: list[Side], **limits: str) -> Diff:
    return between(Path("base.json"), Path("head.json"), before, after, parse(limits))


def regression() -> Diff:
    """compile launches a kernel more, and a call of it takes longer."""
    first = replace(compiled(), timing=Timing(STEADY), peak_memory=400_000_000)
    now = capture(
        "compile",
        (FUSED, "kernel", None, 273_000),
        (GELU, "kernel", None, 90_000),
        timing=Timing(tuple(1.3 * t for t in STEADY)),
        peak_memory=800_000_000,
    )
    limits = {"kernels": "+0", "slowdown": "5%", "launches": "+1"}
    return _diff(_sides(eager(), first), _sides(eager(), now), **limits)


def nothing_changed() -> Diff:
    return _diff(_sides(eager(), compiled()), _sides(eager(), compiled()), kernels="+0")


def unknown() -> Diff:
    lost = Unmeasured("compile", "1 of 2 launches has no device record", compiled())
    before = _sides(eager(), compiled())
    return _diff(before, [*_sides(eager()), Side("compile", "captures", lost)], kernels="+0")


def renamed() -> Diff:
    """Another kernel does what one did, one is faster, one runs less often."""
    before = capture(
        "eager",
        ("nvjet_tst_192x176", "kernel", "mm", 10_000),
        (ADD, "kernel", "add", 9_000),
        (RELU, "kernel", "relu", 8_000),
        (RELU, "kernel", "relu", 8_000),
    )
    after = capture(
        "eager",
        ("nvjet_tst_128x256", "kernel", "mm", 10_100),
        (ADD, "kernel", "add", 4_000),
        (RELU, "kernel", "relu", 8_000),
        notes=(Note("not-compiled", "0 graphs were compiled"),),
    )
    return _diff(_sides(before), _sides(after))


def traces() -> Diff:
    sides = [[Side(f"{n}.json", "trace", c)] for n, c in (("base", eager()), ("head", compiled()))]
    return _diff(*sides, memory="+0")


def many() -> Diff:
    """More changes than are shown: the heaviest of them are."""
    names = [f"kernel_{i:02}" for i in range(20)]
    before = capture("eager", *[(n, "kernel", None, 1_000 * i) for i, n in enumerate(names)])
    return _diff(_sides(before), _sides(capture("eager", ("other", "kernel", None, 5))))


def evil() -> Diff:
    """Names that would be markup, commands or formulas anywhere they are not escaped."""
    before = capture("eager", *[(n, "kernel", n[::-1], 1_000) for n in EVIL])
    ran = [(n, "kernel", n[::-1], 1_000) for n in EVIL] * 2
    after = capture("eager", *ran, ("100%,a:b", "kernel", "x\ufffe\uffff", 5))
    pairs = [(before, after), (replace(before, name=EVIL[3]), replace(after, name=EVIL[3]))]
    hung = Side("\x1b[2J|<b>", "captures", Unmeasured("x", "\n::error::pwned ##[error] `x`|%0A"))
    sides = [_sides(*side) for side in zip(*pairs, strict=True)]
    return _diff([*sides[0], hung], [*sides[1], hung], kernels="+0", memory="+0")


def sourced() -> Diff:
    """What is new is of a line of the user's code."""
    places = [Place("model.py", 8, "step"), Place("layers/norm.py", 30, "forward")]
    origins = [Source(tuple(Origin("add", p) for p in own)) for own in (places[:1], places)]
    ran = ((FUSED, "kernel", None, 273_000), (GELU, "kernel", None, 90_000))
    before = replace(compiled(), provenance=Provenance(tuple(origins[:1])))
    after = capture("compile", *ran, provenance=Provenance(tuple(origins)))
    return _diff(_sides(before), _sides(after), kernels="+0")


def replaced() -> Diff:
    """In a fused kernel, which is two now, one op was put in the place of another."""
    lines = [(5, "add"), (6, "mul"), (7, "relu"), (8, "mul")]
    now = [(5, "add"), (6, "mul"), (7, "gelu"), (8, "mul")]
    was, new = (
        Source(tuple(Origin(op, Place(str(Path.cwd() / "src/net.py"), n, "step")) for n, op in ops))
        for ops in (lines, now)
    )
    first = replace(compiled(), provenance=Provenance((was,)))
    ran = ((GELU, "kernel", None, 90_000), (GELU, "kernel", None, 90_000))
    after = capture("compile", *ran, provenance=Provenance((new, new)))
    return _diff(_sides(first), _sides(after), kernels="+0")


def broken_graph() -> Diff:
    """A print breaks the graph, and a kernel is two."""
    before = replace(compiled(), breaks=())
    ran = (
        ("triton_poi_fused_add_0", "kernel", None, 9),
        ("triton_poi_fused_relu_0", "kernel", None, 9),
    )
    at = Break("src/model.py", 6, "step", "print")
    return _diff(_sides(before), _sides(capture("compile", *ran, breaks=(at,))), breaks="+0")
