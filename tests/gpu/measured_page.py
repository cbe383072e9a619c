"""The page of `measured.py`: each claim, what it was held to, what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measured_claims import CLAIMS, Claim, Facts

from kernelcount.render.wording import duration, occupancy, plural, rate, ratio, size

# ── one variant, one limit ───────────────────────────────────────────────────────────────────────


def short(name: str) -> str:
    """A variant's name without its file, where the name alone says it."""
    return name.rpartition("/")[2].replace(".py:", ": ") if ".py:" in name else name


def variant(found: dict[str, Any]) -> str:
    """One variant in a few words."""
    if "reason" in found:
        return f"{short(found['name'])}: not measured ({found['reason']})"
    parts = [f"{found['kernels']} kernel{'s' if found['kernels'] != 1 else ''}"]
    parts += [duration(found["call_ns"])] if found["call_ns"] else []
    parts += [] if found["stable"] is not False else ["not stable"]
    return f"{short(found['name'])} {', '.join(parts)}"


def faster(speed: dict[str, Any] | None) -> str:
    """How a variant compares with the first."""
    if speed is None:
        return ""  # the first variant, or too few calls to tell
    if speed["verdict"] == "no difference":
        return "no difference"
    value = speed["ratio"] if speed["verdict"] == "faster" else 1 / speed["ratio"]
    return f"{ratio(value)} {speed['verdict']}"


def limit(found: dict[str, Any]) -> str:
    """One limit: what was allowed and what it is."""
    if found["bounds"] is None:
        return found["limit"]
    actual = "unknown" if found["actual"] is None else figure(found, found["actual"])
    return f"{allowed(found)}: {actual}"


def figure(found: dict[str, Any], value: float) -> str:
    """A value in the unit of the limit."""
    return {"ns": duration, "x": ratio}.get(found["unit"], lambda x: f"{x:.10g}")(value)


def allowed(found: dict[str, Any]) -> str:
    """What a limit allows."""
    bounds = found["bounds"]
    if bounds["low"] == bounds["high"]:
        said = figure(found, bounds["low"])
    else:
        ends = (("≥", bounds["low"]), ("≤", bounds["high"]))
        said = " ".join(f"{sign} {figure(found, n)}" for sign, n in ends if n is not None)
    over = f" over {short(bounds['over'])}" if bounds["over"] else ""
    return f"{found['limit'].replace('_', ' ')} {said}{over}"


def expected(budgets: list[dict[str, Any]]) -> list[str]:
    """What the budgets of a claim allow: a line for each target and size."""
    lines = []
    for budget in budgets:
        of_variant: dict[str, list[str]] = {}
        for one in budget.get("limits", ()):
            if one["bounds"] is not None:
                of_variant.setdefault(short(one["variant"]), []).append(allowed(one))
        if of_variant:
            said = "; ".join(f"{name} {', '.join(all_)}" for name, all_ in of_variant.items())
            lines.append(f"{at(budget)}{said}")
    return lines


def swept(size: int, calls: list[float], speed: dict[str, Any] | None) -> str:
    """One size of a sweep."""
    eager, compiled = map(duration, calls)
    which = faster(speed) or "not known which is faster"
    return f"{size:.0e}: {eager} eager, {compiled} compiled, {which}".replace("e+0", "e")


def precise(numerics: dict[str, Any] | None) -> str:
    """How far eager and compiled results are from float64's, relative to the largest of them."""
    if numerics is None or numerics["error"] is None or numerics["base_error"] is None:
        return "against float64: not known"
    eager, compiled = (f"{numerics[key]:.1e}" for key in ("base_error", "error"))
    return f"error against float64: {eager} eager, {compiled} compiled"


def rated(rates: dict[str, Any]) -> list[str]:
    """What a GPU reaches."""
    lines = [
        f"{name} {rates[key] / 1e12:.2f} TB/s"
        for name, key in (("copy", "copy"), ("copy within L2", "copy_l2"))
        if rates[key]
    ]
    products = [f"{name} {value / 1e12:.0f}" for name, value in rates["matmul"] if value]
    return [*lines, f"products in TFLOP/s: {', '.join(products)}"]


# ── the page ─────────────────────────────────────────────────────────────────────────────────────


def judged(budgets: list[dict[str, Any]]) -> str:
    """Whether the budgets of a claim are kept."""
    limits = [x for b in budgets for x in b.get("limits", ())]
    failed = [b for b in budgets if "failed" in b]
    counts = {s: sum(x["status"] == s for x in limits) for s in ("kept", "broken", "undecided")}
    if counts["broken"]:
        return (
            f"**does not hold here**: {counts['broken']} of {plural(len(limits), 'limit')} broken"
        )
    if not counts["kept"]:
        why = failed[0]["failed"] if failed else (limits[0]["why"] if limits else "nothing ran")
        return f"not decided: {why}"
    rest = [f"{counts['undecided']} undecided"] if counts["undecided"] else []
    rest += [f"{len(failed)} failed"] if failed else []
    return ", ".join([f"holds: {plural(counts['kept'], 'limit')} kept", *rest])


def page(found: list[dict[str, Any]], facts: Facts, unbuilt: dict[str, str], took: float) -> str:
    """The whole page."""
    places = [f["environment"] for f in found if f.get("environment")]
    place = places[0] if places else {}
    lines = [
        "# What the articles claim, measured",
        "",
        f"Measured on {place.get('device')} with torch {place.get('torch')} and Triton"
        f" {place.get('triton')} by",
        f"`python tests/gpu/measured.py docs/measured.md`, in {took:.0f} s. Each claim has a"
        " scenario in `scenarios/`:",
        "a function and a budget, which says what is expected. A time is that of a call, without a"
        " profiler:",
        "the median. How much faster or slower is the median of the ratios of calls taken in turn,"
        " so that it need",
        "not be the ratio of the two medians beside it. A `max error` is against the results of the"
        " first variant.",
        "Transfers are modelled: what of them reaches GPU memory, and what the L2 cache serves, is"
        " not told by them.",
        "",
        "| # | claim | scenario | expected | measured | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
        *(row(i, claim, found, facts) for i, claim in enumerate(CLAIMS, 1)),
        "",
        *(line for name in names(found) for line in section(name, found)),
    ]
    if unbuilt:
        lines += ["## What could not be built", ""]
        lines += [f"- `{name}`: {cell(text[-300:])}" for name, text in unbuilt.items()]
    return "\n".join(lines).rstrip() + "\n"


def row(number: int, claim: Claim, found: list[dict[str, Any]], facts: Facts) -> str:
    """One claim."""
    budgets = [f for f in found if f["scenario"] in claim.scenarios]
    measured = [
        f"{at(b)}{'; '.join(variant(v) for v in b['variants'])}" for b in budgets if "variants" in b
    ]
    if claim.named:
        measured += [f"{at(b)}{line}" for b in budgets for line in generated(b)]
    for name in claim.facts:
        measured += facts[name]["lines"] if name in facts else ["not run: time was up"]
    judgement = claim.judged(budgets, facts)
    verdict = judged(budgets)
    if verdict.startswith("holds:") and judgement.refuted:
        verdict = verdict.replace("holds:", "**does not hold here**:", 1)
    elif judgement.in_part:
        verdict = verdict.replace("holds:", "holds in part:", 1)
    verdict += f". {judgement.remark}" if judgement.remark else ""
    which = ", ".join(f"`{name}`" for name in claim.scenarios)
    budgeted, found_ = ("<br>".join(map(cell, x)) for x in (expected(budgets), measured))
    cells = (str(number), claim.text, which, budgeted, found_, cell(verdict))
    return f"| {' | '.join(cells)} |"


def generated(budget: dict[str, Any]) -> Iterator[str]:
    """What Inductor called the kernels that it generated, for each variant."""
    for v in budget.get("variants", ()):
        names = [k["name"] for k in v.get("each", ()) if k["name"].startswith("triton_")]
        if names and v["name"].startswith("compile"):
            yield f"{short(v['name'])} generated {', '.join(names)}"


def at(budget: dict[str, Any]) -> str:
    """The target and the size of a budget."""
    size = f" at {budget['size']:.4g}".replace("e+0", "e") if budget["size"] else ""
    return f"{budget['target'].rpartition(':')[2]}{size}: "


def cell(text: str) -> str:
    """Text that no table takes for its own."""
    return " ".join(text.split()).replace("|", "/")


def names(found: list[dict[str, Any]]) -> list[str]:
    """The scenarios, in the order of the claims."""
    seen = {f["scenario"] for f in found}
    ordered = [name for claim in CLAIMS for name in claim.scenarios if name in seen]
    return list(dict.fromkeys([*ordered, *sorted(seen)]))


def section(name: str, found: list[dict[str, Any]]) -> Iterator[str]:
    """The figures of one scenario."""
    yield f"## {name}"
    for budget in (f for f in found if f["scenario"] == name):
        yield ""
        if "failed" in budget:
            yield f"`{budget.get('target', name)}`: {cell(budget['failed'])}"
            continue
        size = f", size {budget['size']:,}" if budget["size"] else ""
        yield f"`{budget['target']}`{size}"
        yield ""
        yield "| variant | kernels | launches | transfers | kernel time | time per call | |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for v in budget.get("variants", ()):
            yield figures(v)
        yield ""
        if name in PER_KERNEL:
            yield from kernels(budget)
        for one in budget.get("limits", ()):
            why = f" ({cell(one['why'])})" if one["why"] and one["status"] != "kept" else ""
            status = one["status"] if one["status"] == "kept" else f"**{one['status']}**"
            yield f"- {status}: {short(one['variant'])} {limit(one)}{why}"
    yield ""


def figures(found: dict[str, Any]) -> str:
    """One variant, as a row."""
    if "reason" in found:
        return f"| {short(found['name'])} | | | | | | {cell(found['reason'])} |"
    longest = found["longest"] or {}
    said = [faster(found["speed"]), found["verdict"] or ""]
    said += [f"result {found['result']}"] if found["result"] else []
    if longest.get("registers"):
        share = longest.get("occupancy")
        held = "" if share is None else f", occupancy {occupancy(share)}"
        said.append(f"{longest['registers']} registers{held}")
    price = found["price"] or {}
    if price.get("compile_ns"):
        said.append(f"first call {duration(price['first_call_ns'])}")
    said += [f"waits at {', '.join(found['syncs'])}"] if found["syncs"] else []
    transfers = "" if found["transfers"] is None else f"{found['transfers']:.1f}"
    cells = (
        short(found["name"]), found["kernels"], found["launches"], transfers,
        duration(found["kernel_time_ns"]), duration(found["call_ns"]),
        "; ".join(filter(None, said)),
    )  # fmt: skip
    return f"| {' | '.join(cell(str(c)) for c in cells)} |"


PER_KERNEL = next(claim.scenarios for claim in CLAIMS if claim.per_kernel)
"""The scenarios of which each kernel is shown."""


def kernels(budget: dict[str, Any]) -> Iterator[str]:
    """Each kernel of each variant: how it was launched; and what its variant moved in its time."""
    yield "| variant | kernel | time | registers | shared memory | occupancy, estimated |"
    yield "| --- | --- | --- | --- | --- | --- |"
    moved = []
    for v in budget.get("variants", ()):
        for k in v.get("each", ()):
            share = "" if k["occupancy"] is None else occupancy(k["occupancy"])
            memory = "" if k["shared_memory"] is None else size(k["shared_memory"])
            registers = "" if k["registers"] is None else k["registers"]
            name = k["name"] if len(k["name"]) <= LONGEST else f"{k['name'][:LONGEST]}..."
            cells = (
                short(v["name"]), f"`{cell(name)}`", duration(k["time_ns"]), registers, memory,
                share,
            )  # fmt: skip
            yield f"| {' | '.join(map(str, cells))} |"
        if v.get("bytes") and v.get("kernel_time_ns"):
            speed = rate(v["bytes"] / v["kernel_time_ns"] * 1e9, "B")
            moved.append(f"{short(v['name'])} {speed}")
    yield ""
    if moved:
        yield f"Modelled bytes over kernel time: {', '.join(moved)}."
        yield ""


LONGEST = 60  # characters of a kernel's name
