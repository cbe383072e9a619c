"""What became of budgets, for a person or a program.

On a screen each budget is shown as soon as it is known: `head`, then `rows` for each, then `foot`.
"""

from __future__ import annotations

import csv as spreadsheet
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from math import isfinite
from typing import Any

from kernelcount.errors import KernelcountError
from kernelcount.model import Bounds, Checked, Environment, Held
from kernelcount.render.json import SCHEMA, text_of
from kernelcount.render.layout import NARROWEST, WIDEST, Line, cells, fit, pad, paint, wrap
from kernelcount.render.wording import (
    clean,
    duration,
    plural,
    ratio,
    setting,
    size,
    target_name,
    transfers,
)

_STYLES = {"kept": "green", "broken": "bold red", "undecided": "bold yellow"}
_STATUS = max(map(len, _STYLES))
_WIDEST_NAME = 24
_LEAST_ROOM = 24  # cells for what was found; in less it would be hard to read
_MARGIN = "  "


# ── in words ─────────────────────────────────────────────────────────────────────────────────────


def figure(held: Held, value: float) -> str:
    """A value in the unit of the limit: ``2``, ``5.0``, ``12 MB``, ``1.68x``, ``31.2 µs``.

    It has as many digits as it takes to tell what was found from what is allowed.
    """
    ends = (held.bounds.low, held.bounds.high) if held.bounds else ()
    others = [end for end in ends if end is not None and end != held.actual]
    alike = held.actual is not None and any(
        _rounded(held, end) == _rounded(held, held.actual) for end in others
    )
    return _precise(held, value) if alike else _rounded(held, value)


def _rounded(held: Held, value: float) -> str:
    if held.unit == "ns":
        return duration(value)
    if held.unit == "x":
        return ratio(value)
    if held.unit == "bytes":
        return size(int(value))
    if held.limit == "transfers":
        return transfers(value)
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _precise(held: Held, value: float) -> str:
    if held.unit in ("bytes", "ns"):
        return f"{value:,.0f} {'B' if held.unit == 'bytes' else 'ns'}"
    return f"{value:.12g}{held.unit}"


def allowed(held: Held) -> str:
    """What a limit allows: ``1``, ``at most 1``, ``at least 1.30x over eager``, or "" for none."""
    bounds = held.bounds or Bounds()
    if bounds.exact is not None:
        said = figure(held, bounds.exact)
    else:
        ends = (("at least", bounds.low), ("at most", bounds.high))
        said = " and ".join(f"{word} {figure(held, n)}" for word, n in ends if n is not None)
    return f"{said} over {bounds.over}" if said and bounds.over else said


def actual(held: Held) -> str:
    """What was found: ``2``, ``≥ 6``, ``1.21x (1.18x to 1.24x)``; "" where nothing is known."""
    if held.actual is None:
        return ""
    said = figure(held, held.actual)
    if held.at_least:
        return f"≥ {said}"
    if held.low is not None and held.high is not None:
        return f"{said} ({figure(held, held.low)} to {figure(held, held.high)})"
    return said


def sentence(held: Held) -> str:
    """One limit and what became of it: ``kernels 2, allowed 1``."""
    name = clean(held.limit.replace("_", " "))
    if held.limit in ("budget", "lock"):
        return f"{name}: {clean(held.why) or 'as recorded'}"
    if held.actual is None:
        return f"{name}{'' if held.why.startswith('needs ') else ':'} {clean(held.why)}"
    said = f"{name} {actual(held)}, allowed {allowed(held)}"
    return f"{said}: {clean(held.why)}" if held.why else said


def summary(checked: Checked) -> str:
    """How many are kept, broken and undecided, and how many of these are about no limit at all."""
    said = ", ".join(f"{checked.count(status)} {status}" for status in ("kept", "broken"))
    if undecided := checked.count("undecided"):
        said += f", {undecided} undecided"
        said += f" ({checked.failed} failed)" if checked.failed else ""
    without = sum(held.limit == "budget" and not held.is_fault for held in checked.held)
    return f"{said}; {without} of these for want of a limit" if without else said


# ── on a screen ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Screen:
    """Where things stand: columns of names as wide as the widest. `full`: kept ones, too."""

    width: int
    target: int
    variant: int
    full: bool = False


def screen(names: Iterable[tuple[str, str]], width: int, *, full: bool = False) -> Screen:
    """The columns for these targets and variants."""
    pairs = [(target_name(target), clean(variant)) for target, variant in names]
    targets = max((cells(t) for t, _ in pairs), default=0)
    variants = max((cells(v) for _, v in pairs), default=0)
    return Screen(
        max(NARROWEST, min(width, WIDEST)),
        min(targets, _WIDEST_NAME),
        min(variants, _WIDEST_NAME),
        full,
    )


def head(budgets: int, limits: int, environment: Environment | None, at: Screen) -> list[Line]:
    """How many there are, and where they are checked, as far as that is known."""
    counts = f"{plural(budgets, 'budget')}, {plural(limits, 'limit')}"
    parts = (counts, setting(environment) if environment else "")
    said = " · ".join(filter(None, parts))
    return [*(((line, "bold"),) for line in wrap(said, at.width)), ()]


def elsewhere(environment: Environment | None, at: Screen) -> list[Line]:
    """Where those that follow are checked, which is not where those before them were."""
    said = setting(environment) if environment else "counted nowhere"
    return [((line, "bold"),) for line in wrap(said, at.width)]


def rows(held: Sequence[Held], at: Screen) -> Iterator[Line]:
    """What is not kept, a row each with what helps to find the cause below it."""
    said: set[str] = set()
    for one in held:
        if one.status == "kept" and not at.full:
            continue
        yield from _row(one, at)
        for line in one.details:
            if line not in said:  # what changed stands with a limit and with the lock
                text = fit(clean(line), at.width - len(_MARGIN) - _STATUS - 2)
                yield ((f"{_MARGIN}{' ' * (_STATUS + 2)}{text}", "dim"),)
        said.update(one.details)


def _row(held: Held, at: Screen) -> Iterator[Line]:
    """Status, names, what was found and where; what does not fit stands below."""
    edge = len(_MARGIN) + _STATUS + 2
    names = f"{pad(target_name(held.target), at.target)}   {pad(clean(held.variant), at.variant)}"
    room = at.width - edge - cells(names) - 3
    beside = room >= _LEAST_ROOM
    room = room if beside else at.width - edge
    *lines, last = wrap(sentence(held), room) or [""]
    where = clean(f"{held.file}:{held.line}")
    fits = cells(last) + cells(where) + 3 <= room
    lines.append(f"{pad(last, room - cells(where))}{where}" if fits else last)
    first = f"{names}   {lines.pop(0)}" if beside else fit(names, room)
    yield ((_MARGIN, ""), (pad(held.status, _STATUS), _STYLES[held.status]), (f"  {first}", ""))
    for line in lines:
        yield ((f"{' ' * (at.width - room)}{line}", ""),)
    if not fits:
        yield ((f"{' ' * edge}{fit(where, at.width - edge)}", ""),)


def foot(checked: Checked, at: Screen) -> list[Line]:
    """The sum, what was written, and what was not compared."""
    style = next((_STYLES[s] for s in ("broken", "undecided") if checked.count(s)), "bold green")
    lines: list[Line] = [((summary(checked), style),)]
    said = [
        *(f"written: {w}" for w in checked.written),
        *(f"note: {n.detail}" for n in checked.notes),
    ]
    for text in said:
        lines += [((line, ""),) for line in wrap(clean(text), at.width)]
    return lines


def _table(checked: Checked, width: int, colour: bool, full: bool) -> str:
    at = screen([(h.target, h.variant) for h in checked.held], width, full=full)
    limits = sum(h.limit not in ("lock", "budget") for h in checked.held)
    shown = list(rows(checked.held, at))
    lines = [*head(checked.budgets, limits, checked.environment, at), *shown]
    return paint([*lines, *([()] if shown else []), *foot(checked, at)], colour=colour)


# ── for programs ─────────────────────────────────────────────────────────────────────────────────


def document(checked: Checked) -> dict[str, Any]:
    """The document of ``check``: an entry of ``budgets`` for each limit."""
    environment = checked.environment
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "command": "check",
        "environment": asdict(environment) if environment else None,
        "budgets": [_entry(h) for h in checked.held],
        "kept": checked.count("kept"),
        "broken": checked.count("broken"),
        "undecided": checked.count("undecided"),
        "failed": checked.failed,
        "notes": [asdict(n) for n in checked.notes],
        "written": list(checked.written),
    }
    if environment:
        found["environment"] = {
            **found["environment"],
            "libraries": dict(environment.libraries),
        }
    failures = [_failure(h) for h in checked.held if h.is_fault]
    if failures:
        found["errors"] = failures
    failed = next((f for f in failures if f["code"] == _USAGE), None)
    if failed and checked.exit_code == _USAGE:
        found["error"] = failed
    return found


_USAGE = KernelcountError.code


def _failure(held: Held) -> dict[str, Any]:
    """What the user's own code or budget did, and where."""
    where = ", ".join(filter(None, (held.target, held.variant)))
    return {"code": held.code, "message": f"{held.file}:{held.line}: {where}: {held.why}"}


def _entry(held: Held) -> dict[str, Any]:
    bounds = held.bounds
    return {
        "file": held.file,
        "line": held.line,
        "column": held.column,
        "target": held.target,
        "size": held.size,
        "variant": held.variant or None,
        "limit": held.limit,
        "status": held.status,
        "failed": held.is_fault,
        "actual": _number(held, held.actual),
        "at_least": held.at_least,
        "low": _number(held, held.low),
        "high": _number(held, held.high),
        "allowed": {
            "min": _number(held, bounds.low),
            "max": _number(held, bounds.high),
            "over": bounds.over or None,
        }
        if bounds
        else None,
        "unit": held.unit or None,
        "basis": held.basis,
        "why": held.why or (sentence(held) if held.status == "broken" else None),
        "details": list(held.details),
    }


def _number(held: Held, value: float | None) -> float | int | None:
    """Counts and bytes as whole numbers; JSON has none for what is not finite."""
    if value is None or not isfinite(value):
        return None
    whole = held.limit != "transfers" and held.unit in ("", "bytes") and float(value).is_integer()
    return int(value) if whole else value


COLUMNS = (
    "file", "line", "target", "size", "variant", "limit", "status", "actual", "at_least", "min",
    "max", "over", "basis", "why", "low", "high", "details", "column", "failed",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@")


def _csv(checked: Checked) -> str:
    page = StringIO()
    writer = spreadsheet.writer(page, lineterminator="\n")
    writer.writerow(COLUMNS)
    for held in checked.held:
        entry = _entry(held)
        details = "; ".join(held.details) or None
        values = {**entry, **(entry["allowed"] or {}), "details": details}
        writer.writerow([_cell(values.get(name)) for name in COLUMNS])
    return page.getvalue()


def _cell(value: Any) -> str:
    """Text that no spreadsheet takes for a formula; an unknown figure is an empty cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = clean(str(value))
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _in_pipelines(form: str) -> Callable[[Checked], str]:
    """The renderer of what pipelines read, which take words from here."""

    def render(checked: Checked) -> str:
        from kernelcount.render import github, held, junit

        if form == "markdown":
            return held.markdown(checked)
        return (github.render if form == "github" else junit.render)(held.findings(checked))

    return render


_RENDERERS: dict[str, Callable[[Checked], str]] = {
    "json": lambda checked: text_of(document(checked)),
    "csv": _csv,
    **{form: _in_pipelines(form) for form in ("markdown", "github", "junit")},
}
FORMS = ("table", *_RENDERERS)


def render(
    checked: Checked, *, form: str, width: int = 80, colour: bool = False, full: bool = False
) -> str:
    """Turn what became of budgets into text in one of `FORMS`, ended by a newline."""
    if form == "table":
        return _table(checked, width, colour, full)
    return _RENDERERS[form](checked)
