"""What is shown of remedies: what each gained and cost, what was not tried, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcount.model import Numerics, Remedy, Row
from kernelcount.render import paper
from kernelcount.render.figures import Figures, compared
from kernelcount.render.wording import caption, clean

_COMPILES = "compile"
_ERROR = "error"
_NO_HELP = "No remedy helped."
_NOT_KNOWN = "Whether any remedy helps is not known."
_NONE_KNOWN = "No remedy is known to help."
_NONE_TRIED = "No remedy could be tried."

_PLAIN = (
    "A setting, a dtype and a CUDA graph are plain PyTorch: take them before torch.compile, and "
    "both before a kernel of your own."
)
_COMPILED = "torch.compile comes before a kernel of your own, in Triton or, last, in CUDA."
_NEITHER = (
    "Next is plain PyTorch: fewer ops, fewer bytes, no waiting for the GPU. A kernel of your own, "
    "in Triton or, last, in CUDA, comes after that."
)


@dataclass(frozen=True, slots=True)
class Tried:
    """What was tried on one variant: `rows` of name, gain and cost, by gain; `rest` in words.

    `why_not`: what was not tried, and why, and what the function itself lacks: alike at all sizes.
    """

    title: str
    rows: tuple[tuple[str, str, str], ...]
    rest: tuple[str, ...]
    why_not: tuple[str, ...] = ()


def tried(entries: Sequence[Figures]) -> list[Tried]:
    """The remedies of every variant that some were tried on."""
    return [_of(entry) for entry in entries if entry.capture and entry.capture.remedies]


def closing(entries: Sequence[Figures]) -> str:
    """What comes next, and where to stop, as far as it applies here; empty on the CPU."""
    every = [r for e in entries if e.capture for r in e.capture.remedies]
    if not every or any(e.on_cpu for e in entries):
        return ""
    helped = [r.name for r in every if r.helped]
    if not helped and any(r.status == "tried" and r.speed is None for r in every):
        return ""  # what comes next depends on it
    plain = [name for name in helped if not name.startswith(_COMPILES)]
    said = [_PLAIN if plain else _COMPILED if helped else _NEITHER]
    known = [(e, m) for e in entries if (m := e.modelled) and m.bytes_known and not m.at_least]
    least = ((e.name, m.read + m.written, paper.proven_floor(e, entries)) for e, m in known)
    if done := next((name for name, moved, floor in least if floor and moved == floor), None):
        said.append(f"{clean(done)} moves no byte too many: only smaller arrays would move fewer.")
    return " ".join(said)


def _of(entry: Figures) -> Tried:
    remedies = entry.capture.remedies if entry.capture else ()
    done = sorted((r for r in remedies if r.status == "tried"), key=_gain, reverse=True)
    rest = [] if any(r.helped for r in done) else [_without_help(done)]
    rows = tuple((clean(r.name), compared(r.speed) or "unknown", _cost(r.numerics)) for r in done)
    if any(cost.startswith(_ERROR) for *_, cost in rows):
        rest.append("Errors are relative to the largest result, against float64.")
    rest += [f"{clean(r.name)}: {clean(r.reason)}." for r in done if r.reason]
    rest += _grouped([r for r in remedies if r.status == "failed"], "failed")
    why_not = _grouped([r for r in remedies if r.status == "not tried"], "not tried")
    why_not += [_off_tensor_cores(r.rows) for r in remedies if r.rows]
    return Tried(clean(entry.name), rows, tuple(rest), tuple(why_not))


def _without_help(done: Sequence[Remedy]) -> str:
    """What is to be said where none is known to help."""
    if not done:
        return _NONE_TRIED
    unknown = [r for r in done if r.speed is None]
    return _NO_HELP if not unknown else _NOT_KNOWN if len(unknown) == len(done) else _NONE_KNOWN


def _gain(remedy: Remedy) -> float:
    return remedy.speed.ratio if remedy.speed else 0.0


def _cost(found: Numerics | None) -> str:
    """What becomes of the results; errors are relative to the largest one."""
    if found is None or found.verdict == "unknown":
        return "results not compared"
    if found.verdict == "nothing":
        return "no results to compare"
    if found.verdict == "random":
        return "other random numbers"
    if found.verdict == "equal":
        return "results equal"
    if found.error is not None and found.base_error is not None:
        return f"{_ERROR} {_power(found.error)} instead of {_power(found.base_error)}"
    if found.max_abs is not None:
        return f"results differ by up to {found.max_abs:.1g}"
    return "results differ"


def _power(value: float) -> str:
    """One figure and a power of ten: ``3e-4``."""
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e+") if value else "0"


def _grouped(remedies: Sequence[Remedy], status: str) -> list[str]:
    """One line for each reason, with all that it holds for."""
    names: dict[str, list[str]] = {}
    for remedy in remedies:
        names.setdefault(clean(remedy.reason), []).append(clean(remedy.name))
    return [f"{', '.join(who)} {status}: {reason}." for reason, who in names.items()]


def _off_tensor_cores(rows: Sequence[Row]) -> str:
    """Name the products in float32 that TF32 would put on tensor cores."""
    named: dict[str, int] = {}
    for row in rows:
        label, name = caption(row)
        named[label or name] = named.get(label or name, 0) + row.count
    what = ", ".join(f"{name} ×{count}" for name, count in named.items())
    return f"In float32 on no tensor core, TF32 being off: {what}."
