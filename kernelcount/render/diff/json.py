"""What changed, as a document for programs: unknown is null."""

from __future__ import annotations

from typing import Any

from kernelcount.model import Change, Decision, Diff, Pair, Row, Side, Speed, Total
from kernelcount.render.json import SCHEMA, environment_of, speed_of, text_of
from kernelcount.render.lines import line


def render(diff: Diff) -> str:
    """Write the document of ``diff``: ``rows`` holds all variants' rows."""
    return text_of(
        {
            "schema": SCHEMA,
            "command": "diff",
            "before": diff.before,
            "after": diff.after,
            "rows": [_row(pair, change) for pair in diff.pairs for change in pair.changes],
            "variants": [_variant(pair) for pair in diff.pairs],
            "only_before": list(diff.only_before),
            "only_after": list(diff.only_after),
            "limits": [_limit(decision) for decision in diff.decisions],
        }
    )


def _row(pair: Pair, change: Change) -> dict[str, Any]:
    row = change.row
    return {
        "variant": pair.name,
        "name": row.name,
        "label": row.label,
        "activity": row.activity,
        "change": change.change,
        "lines": [line(place) for place in change.places] or None,
        "before": _side(change.before),
        "after": _side(change.after),
    }


def _side(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"name": row.name, "count": row.count, "time_ns": row.time_ns}


def _variant(pair: Pair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "status": "unknown" if pair.unknown else "compared",
        "reason": pair.unknown or None,
        "before": _of(pair.before),
        "after": _of(pair.after),
        "figures": {_key(t.name): _values(t) for t in pair.known},
        "call_speed": speed_of(pair.call_speed),
        "kernel_speed": _without_interval(pair.kernel_speed),
        "breaks": [
            {"file": b.file, "line": b.line, "function": b.function, "reason": b.reason}
            for b in pair.breaks
        ],
        "notes": [{"code": n.code, "detail": n.detail} for n in pair.notes],
    }


def _key(name: str) -> str:
    return f"{name}_ns" if name.endswith("_time") else name


def _values(total: Total) -> dict[str, float | None]:
    """Both values; nanoseconds are whole."""
    whole = total.name.endswith("_time")
    return {
        side: round(value) if whole and value is not None else value
        for side, value in (("before", total.before), ("after", total.after))
    }


def _of(side: Side) -> dict[str, Any]:
    capture = side.capture
    target = capture.target if capture else None
    return {
        "name": side.name,
        "kind": side.kind,
        "basis": capture.basis if capture else None,
        "target": {"spec": target.spec, "inputs": list(target.inputs)} if target else None,
        "environment": environment_of(capture.environment) if capture else None,
    }


def _without_interval(speed: Speed | None) -> dict[str, Any] | None:
    return {"ratio": speed.ratio, "verdict": speed.verdict} if speed else None


def _limit(decision: Decision) -> dict[str, Any]:
    return {
        "limit": decision.allowance.name,
        "allowed": decision.allowance.text,
        "variant": decision.variant,
        "status": decision.status,
        "before": decision.before,
        "after": decision.after,
        "why": decision.why or None,
    }
