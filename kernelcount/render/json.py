"""The document for programs: every key of the contract, unknown as null."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from kernelcount.errors import KernelcountError
from kernelcount.model import Environment, Outcome, Report, Unmeasured
from kernelcount.render import paper
from kernelcount.render.figures import Figures, figures

SCHEMA = 1
"""Keys may be added under it; none changes its meaning."""

USAGE = KernelcountError.code
"""The exit code of what only the user can mend; the document then carries an ``error`` too."""

_SURROGATE = re.compile("[\ud800-\udfff]")

# JSON escapes the controls below U+0020 itself; these act on a terminal just the same.
_CONTROL = re.compile("[\x7f-\x9f]")


def render(report: Report) -> str:
    """Write the document of ``run`` and ``read``; sizes of a sweep stand under ``sizes``."""
    target = report.target
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "command": report.command,
        "environment": _environment(report.environment),
        "target": {"spec": target.spec, "inputs": list(target.inputs)} if target else None,
        "floor": _floor(report.outcomes),
    }
    if report.command == "run" and len(report.runs) > 1:
        document["sizes"] = [
            {"size": run.size, "variants": [_variant(o, report) for o in run.outcomes]}
            for run in report.runs
        ]
    else:
        document["variants"] = [_variant(o, report) for o in report.outcomes]
    failed = [o for o in report.outcomes if isinstance(o, Unmeasured) and o.code == USAGE]
    if failed and report.exit_code == USAGE:
        document["error"] = {"code": USAGE, "message": f"{failed[0].name}: {failed[0].reason}"}
    return _text({**document, "verdicts": []})


def error_document(command: str, code: int, message: str) -> str:
    """Write the document of a failure: the exit code and what the person would have been told."""
    error = {"code": code, "message": message}
    return _text({"schema": SCHEMA, "command": command, "error": error})


def _text(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    text = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _SURROGATE.sub("\ufffd", text) + "\n"


def _environment(environment: Environment) -> dict[str, str | None]:
    return {
        "device": environment.device,
        "kind": environment.kind,
        "torch": environment.torch,
        "triton": environment.triton,
        "kernelcount": environment.kernelcount,
    }


def _variant(outcome: Outcome, report: Report) -> dict[str, Any]:
    """One entry of ``variants``. Null under ``syncs`` and ``bytes`` means: not looked for."""
    f = figures(outcome)
    capture = f.capture
    entry: dict[str, Any] = {
        "name": f.name,
        "basis": capture.basis if capture else _basis(report.environment),
        "status": "measured" if f.reason is None else "unmeasured",
        "reason": f.reason,
        "complete": capture.complete if capture else None,
        "stable": capture.stable if capture else None,
        "kernels": f.kernels,
        "copies": f.copies,
        "fills": f.fills,
        "launches": f.launches,
        "graph_launches": f.graph_launches,
        "kernel_time_ns": f.kernel_time_ns,
        "busy_ns": f.busy_ns,
        "call_time_ns": None,
        "cpu_ops": {"aten": f.aten, "generated": f.generated} if f.on_cpu else None,
        **_on_paper(f),
        **_lists(f),
        "syncs": None,
        "notes": [{"code": n.code, "detail": n.detail} for n in f.notes],
    }
    if capture and capture.environment not in (report.environment, Environment()):
        entry["environment"] = _environment(capture.environment)
    return entry


def _basis(environment: Environment) -> str:
    """On what a count would have rested, had there been one."""
    return "paper" if environment.kind == "paper" else "measured"


def _floor(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Show the least that any variant can move; null where it was not worked out."""
    entries = [f for f in map(figures, outcomes) if f.paper is not None and f.paper.unit]
    least = paper.floor(entries)
    if least is None or entries[0].paper is None:
        return None
    return {"bytes": least, "transfers": least / entries[0].paper.unit}


def _on_paper(f: Figures) -> dict[str, Any]:
    """Show what was worked out and not measured; null where it was not."""
    worked_out = f.paper
    if worked_out is None:
        return {"bytes": None, "transfers": None}
    moved = {"read": worked_out.read, "written": worked_out.written, "basis": "modelled"}
    return {
        "generated": worked_out.generated,
        "library": worked_out.library,
        "at_least": worked_out.at_least,
        "bytes": moved,
        "transfers": worked_out.transfers,
        "bound_ns": worked_out.bound_ns,
    }


def _lists(f: Figures) -> dict[str, Any]:
    """Show what stands behind the counts: devices, rows in the order they first ran, steps."""
    devices = f.capture.devices() if f.capture else {}
    steps = f.capture.steps if f.capture else ()
    return {
        "devices": {
            name: {"kernels": tally.kernels, "kernel_time_ns": tally.kernel_time_ns}
            for name, tally in devices.items()
        },
        "rows": [
            {
                "name": row.name,
                "label": row.label,
                "activity": row.activity,
                "count": row.count,
                "time_ns": row.time_ns,
            }
            for row in f.rows
        ],
        "steps": [
            {"name": s.name, "kernels": s.kernels, "kernel_time_ns": s.kernel_time_ns}
            for s in steps
        ],
    }
