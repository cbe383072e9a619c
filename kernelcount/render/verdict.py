"""What holds each variant back, in a sentence; figures that are cited say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from kernelcount.model import Evidence, Verdict
from kernelcount.render import syncs
from kernelcount.render.figures import Figures
from kernelcount.render.wording import clean, percent

AS_FAST = 0.9
"""From this share on it is said to be as fast. A choice: no more than a tenth is left to win."""

_PERCENT = re.compile(r"(\d+) %")
_NEAR = 5  # percent by which shares may differ and be told in one sentence

_MOVING = "{it moves}"  # or they do, which depends on how many are spoken of

_EAGER_TF32 = "torch.set_float32_matmul_precision('high')"


def sentences(entries: Sequence[Figures]) -> Iterator[str]:
    """A sentence for each variant, the same for several said once; none where nothing is known."""
    about: dict[tuple[bool, str, str], list[tuple[str, str]]] = {}
    for entry in entries:
        found = entry.verdict
        if found is not None and found.verdict is not None:
            why = _WHY[found.verdict](found, entry)
            groups = (g for g in about if g[:2] == (found.of_call, found.verdict))
            key = next((g for g in groups if _alike(g[2], why)), None)
            key = key or (found.of_call, found.verdict, why)
            about.setdefault(key, []).append((entry.name, why))
    everyone = {e.name for e in entries}
    for (of_call, held, _), said in about.items():
        names, why = [name for name, _ in said], _together([why for _, why in said])
        whose = "" if set(names) == everyone else " and ".join(map(clean, names))
        several = len(names) > 1
        moving = "they move" if not of_call or (whose and several) else "it moves"
        subject = _subject(whose, of_call=of_call, several=several, held=held)
        yield f"{subject}: {why.replace(_MOVING, moving)}"
    yield from _untold(entries)


def _untold(entries: Sequence[Figures]) -> Iterator[str]:
    """Why it is not told what holds a call back in which the GPU is idle: that can be helped."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        found = entry.verdict
        if found is not None and found.verdict is None and found.of_call and found.reason:
            names.setdefault(found.reason, []).append(clean(entry.name))
    for reason, who in names.items():
        yield f"What holds {' and '.join(who)} back is not known: {reason}."


def _alike(one: str, other: str) -> bool:
    """Whether two sentences differ in no more than a few percent."""
    first, second = _PERCENT.split(one), _PERCENT.split(other)
    if first[::2] != second[::2]:
        return False
    pairs = zip(first[1::2], second[1::2], strict=True)
    return all(abs(int(a) - int(b)) <= _NEAR for a, b in pairs)


def _together(said: Sequence[str]) -> str:
    """Sentences that are alike as one: ``90 to 91 %`` where they differ."""
    parts = [_PERCENT.split(text) for text in said]
    merged = list(parts[0])
    for i in range(1, len(merged), 2):
        low, *_, high = sorted([int(p[i]) for p in parts] * 2)
        merged[i] = f"{low} %" if low == high else f"{low} to {high} %"
    return "".join(merged)


def _subject(whose: str, *, of_call: bool, several: bool, held: str) -> str:
    """Whose time it is, and what holds it back: ``Memory-bound``, ``eager is memory-bound``."""
    if held == "none of these":
        held = "bound by none of memory, arithmetic or size"
    if not of_call:
        return f"{f'The kernels of {whose}' if whose else 'The kernels'} are {held}"
    if not whose:
        return held[0].upper() + held[1:]
    return f"{whose} {'are' if several else 'is'} {held}"


def _evidence(found: Verdict, what: str) -> Evidence:
    return next((e for e in found.evidence if e.what == what), Evidence(what))


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else percent(share)


def _range(found: Verdict) -> str:
    """What launching takes of the call: as an op of the plainest, and as a call of a module."""
    least, most = (found.share(w) for w in ("launching", "launching at most"))
    if most is None or least is None:
        return _percent(least)
    return f"{least * 100:.0f} to {_percent(most)}"


def _launch_bound(found: Verdict, entry: Figures) -> str:
    launches = f"{entry.launches} launches" if entry.launches != 1 else "1 launch"
    return (
        f"the GPU is busy for {_percent(found.share('busy'))} of the call, and the CPU needs "
        f"{_range(found)} of it for {launches}. Fewer would help, or a CUDA graph."
    )


_LOOK = "Look for .item(), copies to the host, and Python between the kernels."


def _waiting(found: Verdict, entry: Figures) -> str:
    return (
        f"the GPU is busy for {_percent(found.share('busy'))} of the call, and launches explain "
        f"only {_range(found)} of it. {syncs.said(entry) or _LOOK}"
    )


def _memory_bound(found: Verdict, _: Figures) -> str:
    kinds = (_evidence(found, "memory"), _evidence(found, "L2 cache"))
    evidence = max(kinds, key=lambda e: e.share or 0.0)
    share = sum(e.share or 0.0 for e in kinds)
    if evidence.basis == "cited":
        how = f"at {_percent(share)} of what the data sheet gives this GPU"
    elif evidence.what == "L2 cache":
        how = f"at {_percent(share)} of the rate at which the L2 cache copies"
    elif share >= AS_FAST:
        how = "as fast as this GPU copies"
    else:
        how = f"at {_percent(share)} of the rate at which this GPU copies"
    return f"{_MOVING} data {how}. Only fewer bytes would help."


def _compute_bound(found: Verdict, _: Figures) -> str:
    evidence = _evidence(found, "arithmetic")
    share, kind = _percent(evidence.share), found.precision or "its precision"
    of = "the data sheet gives this GPU" if evidence.basis == "cited" else "this GPU reaches"
    said = f"matrix products run at {share} of what {of} in {kind}."
    if kind == "f32":
        return f"{said} TF32 would run them on tensor cores: {_EAGER_TF32}."
    return f"{said} Only fewer operations would help, or fewer bits."


def _too_small(found: Verdict, _: Figures) -> str:
    blocks = _evidence(found, "blocks")
    return (
        f"{_percent(blocks.share)} of the kernel time goes to kernels of fewer blocks than the "
        f"GPU has multiprocessors ({blocks.of or 0:.0f}). Larger inputs would use the rest."
    )


def _none(found: Verdict, _: Figures) -> str:
    parts = [
        f"{e.what} explains {_percent(e.share)}"
        for e in found.evidence
        if e.what in ("memory", "L2 cache", "arithmetic", "copies") and e.share
    ]
    return f"{', '.join(parts)} of the time." if parts else "nothing explains most of the time."


_WHY: dict[str, Callable[[Verdict, Figures], str]] = {
    "launch-bound": _launch_bound,
    "waiting for the CPU": _waiting,
    "memory-bound": _memory_bound,
    "compute-bound": _compute_bound,
    "too small to fill the GPU": _too_small,
    "none of these": _none,
}
