"""Where graphs broke, what was compiled again, and which CUDA graphs were skipped, in words.

`line` is what a screen has room for; `section` has every one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from kernelcount.model import Break, Capture, Cost, Recompilation, note_codes
from kernelcount.render.explain import Listing
from kernelcount.render.figures import Figures
from kernelcount.render.wording import clean, plural, prose

_LIMIT = frozenset({"recompile-limit", "recompile-limit-in-part"})


def line(entry: Figures) -> str:
    """All in one line; empty where there is none.

    What a note says stays there: that the recompile limit was reached, and skipped CUDA graphs.
    """
    capture = entry.capture
    if capture is None:
        return ""
    again = () if note_codes(entry.notes) & _LIMIT else capture.recompilations or ()
    return "; ".join(filter(None, (_broke(capture), _recompiled(again))))


def _broke(capture: Capture) -> str:
    breaks = capture.breaks or ()
    if not breaks:
        return ""
    first = f"{_place(breaks[0])} ({clean(breaks[0].reason)})"
    many = len(breaks) > 1
    said = (
        f"{len(breaks)} graph breaks, the first at {first}" if many else f"graph break at {first}"
    )
    if capture.on_cpu:
        return said
    cost = _together(capture)
    known = [b.cost.kernels for b in breaks if b.cost.kernels is not None]
    if cost.kernels is None and known:
        some = _costs(Cost(sum(known)), many=True).replace("together they", "some of them")
        return f"{said}: {some}{_where(capture)}, and of the others it cannot be told"
    return f"{said}: {_costs(cost, many=many)}{_where(capture) if cost.kernels is not None else ''}"


def _where(capture: Capture) -> str:
    """What has to be said of kernels that were counted on paper beside those that were measured."""
    return "" if capture.basis == "paper" else " on paper"


def _together(capture: Capture) -> Cost:
    """What all breaks cost."""
    one = capture.breaks[0].cost if capture.breaks and len(capture.breaks) == 1 else None
    return capture.breaks_cost or one or Cost()


def _costs(cost: Cost, *, many: bool = False) -> str:
    """In words: ``costs 1 kernel``; ``saves`` one where there would be more without the break."""
    if cost.kernels is None:
        return f"cannot tell how many kernels {'they cost together' if many else 'it costs'}"
    verb = "cost" if cost.kernels >= 0 else "save"
    amount = plural(abs(cost.kernels), "kernel") if cost.kernels else "no kernel"
    return f"together they {verb} {amount}" if many else f"{verb}s {amount}"


def _recompiled(again: tuple[Recompilation, ...]) -> str:
    if not again:
        return ""
    last = again[-1]
    often = "once" if len(again) == 1 else f"{len(again)} times, the last time"
    return (
        f"recompiled {often} since {clean(last.guard)} failed for {clean(last.function)} at "
        f"{_file(last.file)}:{last.line}"
    )


def _place(at: Break) -> str:
    return _file(at.file) if at.line is None else f"{_file(at.file)}:{at.line}"


def _file(path: str) -> str:
    return clean(PurePath(path).name)


def section(entries: Sequence[Figures]) -> Iterator[Listing]:
    """Every break with its cost and Dynamo's words on it, every recompilation with its guard."""
    for entry in entries:
        if (capture := entry.capture) is None:
            continue
        if capture.breaks:
            yield _breaks(f"{entry.title}: graph breaks", capture, capture.breaks)
        if capture.recompilations:
            rows = [
                (str(n), f"{_file(r.file)}:{r.line}", clean(r.function), clean(r.guard))
                for n, r in enumerate(capture.recompilations, 1)
            ]
            head = ("", "line", "in", "guard that failed")
            yield Listing(f"{entry.title}: compiled again", (head, *rows), "rlll", whole=1)
        if capture.skipped_graphs:
            why = tuple(prose(reason) for reason in capture.skipped_graphs)
            yield Listing(f"{entry.title}: CUDA graphs skipped", closing=why)


_EACH_TOO = "any of them costs, or all together"


def _breaks(title: str, capture: Capture, breaks: Sequence[Break]) -> Listing:
    rows = [("", "line", "in", "what", "kernels")]
    closing: list[str] = []
    together = _together(capture)
    alike = len(breaks) > 1 and all(b.cost == together and b.cost.kernels is None for b in breaks)
    for n, at in enumerate(breaks, 1):
        cost = at.cost if len(breaks) > 1 else _together(capture)
        kernels = "?" if cost.kernels is None else f"{cost.kernels:+}"
        rows.append((str(n), _place(at), clean(at.function), clean(at.reason), kernels))
        said = () if alike else (_told(cost),)
        closing.append(" ".join(filter(None, (str(n), *said, prose(at.explanation)))))
    if len(breaks) > 1:
        told = _told(together, many=True)
        told = told.replace("they cost together", _EACH_TOO, 1) if alike else told
        closing.append(told[0].upper() + told[1:])
    return Listing(title, tuple(rows), "rlllr", tuple(closing), whole=1)


def _told(cost: Cost, *, many: bool = False) -> str:
    return prose(": ".join(filter(None, (_costs(cost, many=many), cost.why))))


def document(capture: Capture | None) -> dict[str, Any]:
    """For JSON; null where nothing was compiled, or where this torch does not tell."""
    breaks = capture.breaks if capture else None
    again = capture.recompilations if capture else None
    skipped = capture.skipped_graphs if capture else None
    cost = _together(capture) if capture and breaks else None
    return {
        "graph_breaks": None if breaks is None else len(breaks),
        "breaks": None if breaks is None else [
            _document(b, b.cost if len(breaks) > 1 else cost) for b in breaks
        ],
        "breaks_cost": cost and {"kernels": cost.kernels, "why": cost.why or None},
        "recompiles": None if again is None else len(again),
        "recompilations": None if again is None else [
            {"file": r.file, "line": r.line, "function": r.function, "guard": r.guard}
            for r in again
        ],
        "skipped_cudagraphs": None if skipped is None else list(skipped),
    }  # fmt: skip


def _document(at: Break, cost: Cost | None) -> dict[str, Any]:
    return {
        "file": at.file,
        "line": at.line,
        "function": at.function,
        "reason": at.reason,
        "explanation": at.explanation or None,
        "costs_kernels": cost.kernels if cost else None,
        "why": (cost.why if cost else "") or None,
    }
