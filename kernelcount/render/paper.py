"""What is said and shown of a count on paper: nothing ran, so nothing is called measured."""

from __future__ import annotations

from collections.abc import Sequence

from kernelcount.model import Capture, Environment, Paper, Unmeasured
from kernelcount.render.figures import Figures, Line
from kernelcount.render.wording import clean, duration, plural, transfers

TRANSFER = "A transfer is the largest array, read or written once."
"""The word, explained."""

NO_KERNEL = "No kernel"

_NAMED = 4  # differences named before the rest is left out


def compared(base: Figures, other: Figures) -> str:
    """One sentence on what `other` would launch and move, beside `base`."""
    first, name = clean(base.name), clean(other.name)
    before, after = base.kernels or 0, other.kernels or 0
    moved = moves(base, other, "make")
    if _open(base) or _open(other):
        said = f"{name} would launch {_kernels(other)}, {first} {_number(base)}"
        return f"{said}; it would {moved}." if moved else f"{said}."
    if before == after == 0:
        return f"{NO_KERNEL}: neither {first} nor {name} would launch any."
    if before == after:
        said = f"{name} would launch as many kernels as {first}, {after}"
    elif after < before:
        said = f"{name} would launch {_kernels(other)} instead of {before}"
    else:
        said = f"{name} would launch {_kernels(other)}, {first} {before or 'none'}"
    return f"{said}{',' if after >= before else ''} and {moved}." if moved else f"{said}."


def alone(entry: Figures) -> str:
    """What one variant would launch."""
    return f"{clean(entry.name)} would launch {_kernels(entry)}."


def lines(entries: Sequence[Figures]) -> list[Line]:
    """The figures that are worked out: parts of the count, transfers, the least time."""
    shown: list[Line] = []
    papers = [e.paper for e in entries]
    if any(p and p.generated and p.library for p in papers):
        for label, key in (("generated", "generated"), ("library calls", "library")):
            cells = tuple("unknown" if p is None else str(getattr(p, key)) for p in papers)
            shown.append(Line(label, cells))
    shown += _transfer_lines(entries)
    if any(p and p.bound_ns for p in papers):
        rate = next(p.bandwidth for p in papers if p) / 1e12
        cells = tuple(duration(p.bound_ns) if p and p.bound_ns else "n/a" for p in papers)
        shown.append(Line("at least", cells, f"bytes over {rate:.3g} TB/s, modelled"))
    return shown


def beside(entries: Sequence[Figures]) -> list[Line]:
    """What paper says of variants that were measured: its count where it differs, and transfers."""
    shown: list[Line] = []
    asked = [e.beside for e in entries if e.beside is not None]
    if any(b.differences for b in asked):
        shown.append(Line("on paper", tuple(_expected(e) for e in entries)))
    modelled = _transfer_lines(entries)
    return shown + [Line(m.label, m.cells, f"{m.remark}, modelled") for m in modelled]


def difference(entry: Figures) -> str:
    """How a measured variant differs from what paper counts; empty where it does not."""
    if entry.beside is None:
        return ""
    if isinstance(entry.beside.outcome, Unmeasured):
        return f"not counted on paper: {entry.beside.outcome.reason}"
    named = [d.detail for d in entry.beside.differences[:_NAMED]]
    more = len(entry.beside.differences) - len(named)
    if not named:
        return ""
    rest = f", and {more} more" if more else ""
    return f"not as on paper: {', '.join(named)}{rest}"


def closing(environment: Environment | None) -> str:
    """What stands at the end: that nothing ran, and what the count follows."""
    torch = f"torch {environment.torch}" if environment and environment.torch else "torch"
    return (
        f"Nothing ran on a GPU: counts follow {torch}'s own code generation, and bytes and times "
        f"are modelled from shapes. {TRANSFER}"
    )


def floor(entries: Sequence[Figures]) -> int | None:
    """Bytes that must be moved: no more than the best variant moves, be it on paper alone.

    Of the first entry's function; of any, where nothing is known of that.
    """
    own = [e for e in entries if _function(e) == _function(entries[0])]
    return min((_least_of(p) for p in _papers(own) or _papers(entries)), default=None)


def proven_floor(entry: Figures, entries: Sequence[Figures]) -> int | None:
    """The same for the function of `entry`; None where a variant of it moves less than is reckoned.

    And where nothing on the GPU goes in or comes out: then nothing is known to be needed. Another
    function may have other ends, and its least is its own.
    """
    own = _papers([e for e in entries if _function(e) == _function(entry)])
    if not own or any(_least_of(p) < p.floor for p in own):
        return None
    return min(p.floor for p in own) or None


def _papers(entries: Sequence[Figures]) -> list[Paper]:
    return [p for p in map(ends_of, entries) if p and p.unit]


def _least_of(paper: Paper) -> int:
    """The floor, or what is moved, where it is less and known."""
    moved = paper.read + paper.written
    return paper.floor if paper.moves_more else min(paper.floor, moved)


def bytes_basis(found: Paper) -> str:
    """What its bytes are: unknown where some are an upper bound, and some a lower."""
    if found.at_most:
        return "unknown" if found.moves_more else "at most"
    return "at least" if found.moves_more else "modelled"


def _function(entry: Figures) -> str:
    """The other function that a variant is; empty for the one that is asked about."""
    kind = entry.name.partition(":")[0]
    return "" if kind in ("eager", "compile") else entry.name


def unit(entries: Sequence[Figures]) -> int | None:
    """Bytes of the largest array that goes in or comes out; None where there is none."""
    return next((p.unit for p in map(ends_of, entries) if p and p.unit), None)


def ends_of(entry: Figures) -> Paper | None:
    """What paper knows of the arrays that go in and come out, also where others ran between."""
    outcome = entry.beside.outcome if entry.beside else None
    return outcome.paper if isinstance(outcome, Capture) else entry.paper


def _open(entry: Figures) -> bool:
    return bool(entry.paper and entry.paper.at_least)


def _number(entry: Figures) -> str:
    if _open(entry):
        return f"at least {entry.kernels or 0}"
    return str(entry.kernels or "none")


def _kernels(entry: Figures) -> str:
    if not entry.kernels and not _open(entry):
        return "no kernel"
    return f"{'at least ' if _open(entry) else ''}{plural(entry.kernels or 0, 'kernel')}"


def _transfer_lines(entries: Sequence[Figures]) -> list[Line]:
    if not any(e.modelled and e.modelled.unit for e in entries):
        return []
    return [Line("transfers", tuple(_transfers(e) for e in entries), _least(entries))]


def _expected(entry: Figures) -> str:
    """The kernels that paper counts for what was measured."""
    outcome = entry.beside.outcome if entry.beside else None
    if not isinstance(outcome, Capture) or outcome.paper is None:
        return "unknown"
    return f"{'≥ ' if outcome.paper.at_least else ''}{outcome.count('kernel')}"


def moves(base: Figures, other: Figures, verb: str) -> str:
    """How the array transfers differ, without a subject; empty where there are none.

    `verb`: ``make`` or ``makes``.
    """
    one, two = base.modelled, other.modelled
    if not (one and two and one.unit and two.unit and (one.transfers or two.transfers)):
        return ""
    noun = "transfer" if _transfers(other, ".3g") == "1" else "transfers"
    before, after = (_transfers(e, ".3g", ("at most ", "at least ")) for e in (base, other))
    if not two.bytes_known or not one.bytes_known:
        said = f"{verb} {after} array {noun}"
        return said if after == before else f"{said}, {clean(base.name)} {before}"
    is_least = two.read + two.written == proven_floor(other, [base, other])
    least = ", which is the least possible" if is_least else ""
    if _transfers(base) == _transfers(other):
        return f"{verb} as many array transfers, {after}{least}"
    return f"{verb} {after} array {noun} instead of {before}{least}"


_BOUNDS = ("≤ ", "≥ ")


def _transfers(entry: Figures, form: str = "", bounds: tuple[str, str] = _BOUNDS) -> str:
    """The array transfers, as rows have them; `bounds` stand before an upper and a lower bound."""
    found = entry.modelled
    value = found.transfers if found else None
    if found is None or value is None or (basis := bytes_basis(found)) == "unknown":
        return "unknown"
    bound = dict(zip(("at most", "at least"), bounds, strict=True)).get(basis, "")
    return bound + (format(value, form) if form else transfers(value))


def _least(entries: Sequence[Figures]) -> str:
    """The least possible, by function where it differs; empty where a variant moves less."""
    named = {_function(e): proven_floor(e, entries) for e in entries if ends_of(e)}
    whole = unit(entries)
    if not whole or not named or None in named.values():
        return ""
    shown = dict.fromkeys(transfers(least / whole) for least in named.values() if least is not None)
    return f"least possible {' or '.join(shown)}"
