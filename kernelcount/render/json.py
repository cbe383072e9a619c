"""The document for programs: every key of the contract, unknown as null."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from kernelcount.conclusions import noise
from kernelcount.errors import KernelcountError
from kernelcount.model import (
    Beside,
    Capture,
    Crossover,
    Environment,
    Numerics,
    Report,
    Row,
    Speed,
    Unmeasured,
    Verdict,
)
from kernelcount.render import breaks, counters, fusion, lines, paper, syncs
from kernelcount.render.figures import Figures, figures_of

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
    entries = [(run.size, figures_of(run)) for run in report.runs]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "command": report.command,
        "environment": environment_of(report.environment),
        "target": {"spec": target.spec, "inputs": list(target.inputs)} if target else None,
        "floor": _floor(entries[0][1]) if len(entries) == 1 else None,
    }
    if report.command == "run" and len(report.runs) > 1:
        document["sizes"] = [
            {
                "size": size,
                "floor": _floor(of_size),
                "variants": [_variant(f, report, of_size[0]) for f in of_size],
            }
            for size, of_size in entries
        ]
        document["crossovers"] = [_crossover(c) for c in report.crossovers]
    else:
        document["variants"] = [
            _variant(f, report, of_size[0]) for _, of_size in entries for f in of_size
        ]
    failed = [o for o in report.outcomes if isinstance(o, Unmeasured) and o.code == USAGE]
    if failed and report.exit_code == USAGE:
        document["error"] = {"code": USAGE, "message": f"{failed[0].name}: {failed[0].reason}"}
    verdicts = [
        _verdict(f.verdict, size if "sizes" in document else None)
        for size, of_size in entries
        for f in of_size
        if f.verdict
    ]
    return _text({**document, "verdicts": verdicts})


def _crossover(found: Crossover) -> dict[str, Any]:
    """Show from which size on a variant is faster; all sizes are among those that were timed.

    ``from`` is interpolated between ``low``, the largest at which it is not faster, and ``high``,
    from which on it always is.
    """
    last = found.last
    return {
        "variant": found.variant,
        "over": found.over,
        "from": _whole(last.about) if last else None,
        "low": found.low,
        "high": found.high,
        "holds": found.holds,
        "crossings": [
            {"low": c.low, "high": c.high, "about": _whole(c.about)} for c in found.crossings
        ],
        "timed": [
            {"size": size, "verdict": verdict}
            for size, verdict in zip(found.sizes, found.verdicts, strict=True)
        ],
        "unknown": list(found.unknown),
    }


def _whole(size: float | None) -> int | None:
    return None if size is None else round(size)


def error_document(command: str, code: int, message: str) -> str:
    """Write the document of a failure: the exit code and what the person would have been told."""
    error = {"code": code, "message": message}
    return _text({"schema": SCHEMA, "command": command, "error": error})


def _text(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    text = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _SURROGATE.sub("\ufffd", text) + "\n"


def environment_of(environment: Environment) -> dict[str, str | None]:
    """Show what the numbers depend on."""
    return {
        "device": environment.device,
        "kind": environment.kind,
        "torch": environment.torch,
        "triton": environment.triton,
        "kernelcount": environment.kernelcount,
    }


def _verdict(found: Verdict, size: int | None) -> dict[str, Any]:
    """One entry of ``verdicts``; ``size`` where there are several."""
    evidence = [
        {
            "what": e.what,
            "value": e.value,
            "of": e.of,
            "share": e.share,
            "basis": e.basis,
            "reason": e.reason or None,
        }
        for e in found.evidence
    ]
    return {
        **({} if size is None else {"size": size}),
        "variant": found.variant,
        "verdict": found.verdict,
        "reason": found.reason or None,
        "of": "call" if found.of_call else "kernels",
        "precision": found.precision,
        "evidence": evidence,
    }


def _variant(f: Figures, report: Report, base: Figures) -> dict[str, Any]:
    """One entry of ``variants``. Null under ``syncs`` and ``bytes``: not looked for, or unknown.

    `base`: the first variant, whose kernels those of the others replace.
    """
    capture = f.capture
    entry: dict[str, Any] = {
        "name": f.name,
        "basis": f.basis if capture else _basis(report.environment),
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
        "call_time_ns": None if f.call_time_ns is None else round(f.call_time_ns),
        **_times(f),
        "cpu_ops": {"aten": f.aten, "generated": f.generated} if f.on_cpu else None,
        **_on_paper(f),
        "dram": counters.moved(f),
        **_lists(f),
        "fusion": fusion.document(f, base.capture),
        "aligned": fusion.matched(f.fusion),
        "lines_unknown": _lines_unknown(capture),
        **syncs.document(f),
        **breaks.document(capture),
        "remedies": _remedies(capture),
        "notes": [{"code": n.code, "detail": n.detail} for n in f.notes],
    }
    if capture and capture.environment not in (report.environment, Environment()):
        entry["environment"] = environment_of(capture.environment)
    return entry


def _lines_unknown(capture: Capture | None) -> str | None:
    """Why the source lines of some records are null, or of all; null where nobody looked."""
    known = capture.provenance if capture else None
    return known.unknown or None if known else None


def _remedies(capture: Capture | None) -> list[dict[str, Any]] | None:
    """Show what was tried on this variant; null where nothing was asked for."""
    if capture is None or not capture.remedies:
        return None
    return [
        {
            "name": r.name,
            "status": r.status,
            "reason": r.reason or None,
            "speed": speed_of(r.speed),
            "numerics": _numerics(r.numerics),
            "kernels": r.kernels,
            "rows": [
                {"name": w.name, "label": w.label, "count": w.count, "time_ns": w.time_ns}
                for w in r.rows
            ],
        }
        for r in capture.remedies
    ]


def speed_of(speed: Speed | None) -> dict[str, Any] | None:
    """Show how a time compares with another; null where that is not known."""
    if speed is None:
        return None
    return {
        "ratio": speed.ratio,
        "low": speed.low,
        "high": speed.high,
        "verdict": speed.verdict,
    }


def _numerics(found: Numerics | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "tensors": found.tensors,
        "max_abs": _finite(found.max_abs),
        "max_rel": _finite(found.max_rel),
        "ulps": found.ulps,
        "error": _finite(found.error),
        "base_error": _finite(found.base_error),
        "differs": found.differs,
        "notes": list(found.notes),
    }


def _finite(value: float | None) -> float | None:
    """JSON has no number for what overflowed."""
    return value if value is None or isfinite(value) else None


def _times(f: Figures) -> dict[str, Any]:
    """Show what is known of times and memory beyond the medians."""
    timing = f.capture.timing if f.capture else None
    bounds = noise.interval(timing.samples_ns) if timing else None
    price = f.capture.price if f.capture else None
    return {
        "call_time": timing
        and {
            "low_ns": round(bounds[0]) if bounds else None,
            "high_ns": round(bounds[1]) if bounds else None,
            "confidence": noise.CONFIDENCE,
            "samples": len(timing.samples_ns),
            "calls": timing.calls,
        },
        "speed": speed_of(f.speed),
        "price": price
        and {
            "first_call_ns": price.first_call_ns,
            "compile_ns": price.compile_ns,
            "recompiles": price.recompiles,
        },
        "peak_memory": f.peak_memory,
        "numerics": _numerics(f.numerics),
    }


def _basis(environment: Environment) -> str:
    """On what a count would have rested, had there been one."""
    return "paper" if environment.kind == "paper" else "measured"


def _floor(entries: Sequence[Figures]) -> dict[str, Any] | None:
    """Show the least that any variant can move; null where it was not worked out."""
    unit, least = paper.unit(entries), paper.floor(entries)
    if least is None or unit is None:
        return None
    return {"bytes": least, "transfers": least / unit}


def _on_paper(f: Figures) -> dict[str, Any]:
    """Show what was worked out and not measured; null where it was not."""
    worked_out = f.modelled
    if worked_out is None:
        nothing = dict.fromkeys(("bytes", "transfers", "flops", "tensor_cores"))
        return {**nothing, "paper": _beside(f.beside)}
    moved = {
        "bytes": _bytes(worked_out.read, worked_out.written, paper.bytes_basis(worked_out)),
        "transfers": None if paper.bytes_basis(worked_out) == "unknown" else worked_out.transfers,
        "flops": dict(worked_out.flops),
        "tensor_cores": list(worked_out.tensor_cores),
    }
    if f.paper is None:
        return {**moved, "paper": _beside(f.beside)}
    return {
        "generated": worked_out.generated,
        "library": worked_out.library,
        "at_least": worked_out.at_least,
        **moved,
        "bound_ns": worked_out.bound_ns,
    }


def _beside(beside: Beside | None) -> dict[str, Any] | None:
    """Show the count on paper of what was measured; null where it was not asked for."""
    if beside is None:
        return None
    if not isinstance(beside.outcome, Capture) or beside.outcome.paper is None:
        return {"status": "unmeasured", "reason": getattr(beside.outcome, "reason", None)}
    worked_out = beside.outcome.paper
    return {
        "status": "measured",
        "kernels": beside.kernels,
        "generated": worked_out.generated,
        "library": worked_out.library,
        "at_least": worked_out.at_least,
        "differences": [
            {"name": d.name, "measured": d.measured, "paper": d.paper, "detail": d.detail}
            for d in beside.differences
        ],
    }


def _moved(row: Row) -> dict[str, Any] | None:
    """Show the bytes of all executions; null where they were not worked out."""
    if row.read is None or row.written is None:
        return None
    basis = "at most" if row.at_most else "at least" if row.at_least else "modelled"
    return _bytes(row.read, row.written, basis)


def _bytes(read: int, written: int, basis: str) -> dict[str, Any] | None:
    if basis == "unknown":
        return None
    return {"read": read, "written": written, "basis": basis}


def _lists(f: Figures) -> dict[str, Any]:
    """Show what stands behind the counts: devices, rows in the order they first ran, steps."""
    devices = f.capture.devices() if f.capture else {}
    origins = f.origins
    steps = f.capture.steps if f.capture else ()
    return {
        "devices": {
            name: {
                "kernels": tally.kernels,
                "kernel_time_ns": None if f.on_paper else tally.kernel_time_ns,
            }
            for name, tally in devices.items()
        },
        "rows": [
            {
                "name": row.name,
                "label": row.label,
                "activity": row.activity,
                "count": row.count,
                "time_ns": row.time_ns,
                "bytes": _moved(row),
                "flops": row.flops,
                **counters.document(detail),
                **lines.document(origins.get(lines.key(row))),
            }
            for row, detail in zip(f.rows, f.details, strict=True)
        ],
        "steps": [
            {"name": s.name, "kernels": s.kernels, "kernel_time_ns": s.kernel_time_ns}
            for s in steps
        ],
    }


def text_of(document: dict[str, Any]) -> str:
    """Write another command's document in the same way."""
    return _text(document)
