"""The page of `measured.py`: each claim, what it was held to, what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelcount.render.wording import duration, plural, ratio


@dataclass(frozen=True)
class Claim:
    """A claim of the articles: the scenarios and the further facts that it is held against.

    `remark`: what an H200 does otherwise than the article says, and why; `in_part`: so that the
    claim holds only in part, although the budgets, which are of this GPU, are kept.
    """

    text: str
    scenarios: tuple[str, ...]
    facts: tuple[str, ...] = ()
    remark: str = ""
    in_part: bool = False


CLAIMS = (
    Claim("`a + b` is one launch, one kernel and 3 transfers, whatever the length", ("add",)),
    Claim(
        "`(a + b).relu()` is 2 kernels and 5 transfers in eager, 1 and 3 fused", ("add_relu",),
        remark="At 1e6 the transfers are saved on paper only: the sum of 4 MB stays in the 60 MB L2"
        " cache, so that its round trip never reaches GPU memory.",
        in_part=True,
    ),
    Claim(
        "At 100 the difference drowns in noise, at 1e7 and 1e8 the compiled one wins",
        ("crossover",), ("sweep",),
        "At 100 there is a difference, and it is against the compiled function: its guards cost"
        " more than the launch that it saves. At 1e7 its kernel is faster, but a call takes as long"
        " as the CPU needs for it; it wins per call from about there on.", in_part=True,
    ),
    Claim("The first compiled call measures the compiler", ("first_call",), ("first call",)),
    Claim("A profiler's rows that are no kernels must be left out", ("profiler_rows",)),
    Claim("Vector add and matrix product by hand", ("vector_add", "matmul_by_hand")),
    Claim(
        "Reduction with warp shuffle; softmax", ("reduction", "softmax"),
        remark="At 8192 torch.softmax moves each byte once, too (527 MB by Nsight Compute), but at"
        " 1.9 TB/s: one kernel, and yet half as fast as one of Triton.",
    ),
    Claim(
        "Triton: fused softmax, layer norm, tile sizes",
        ("softmax", "ln_bias_gelu", "matmul_by_hand"),
    ),
    Claim(
        "A fused transformer block; fast attention", ("transformer_block", "attention"),
        remark="Of the block one pair is fused, the first sum and the norm after it: 10 kernels"
        " become 9, since the others stand between library calls.", in_part=True,
    ),
    Claim(
        "Three bottlenecks, three remedies: tensor cores, fusion, CUDA graphs",
        ("matmul_precision", "mixed_precision", "pointwise_chain", "small_layers"),
    ),
    Claim("Three hidden synchronisations in a training loop, and their cures", ("training_loop",)),
    Claim("`pin_memory` with `non_blocking=True`", ("pinned_copy",)),
    Claim(
        "The mean of thousands of gradients: a loop 20 ms, a kernel of one's own 30 µs",
        ("gradient_mean",), ("compiled loop",),
        "The article has 20 ms for the loop on its machine: what a launch costs is the CPU's. The"
        " kernel's call includes the table of 2,000 addresses, made anew each time.",
    ),
    Claim("Graph breaks undo fusion", ("graph_breaks",)),
    Claim("One contiguous range a thread is slower than neighbouring reads", ("coalescing",)),
    Claim(
        "2048 x 2048: 28 ms on a CPU, 200 µs on a GPU", ("cpu_against_gpu",),
        remark="In float32 without tensor cores, torch's default, it is more than 200 µs; and a"
        " server's CPU with many cores takes less than 28 ms.", in_part=True,
    ),
    Claim(
        "Global memory 3 TB/s, L2 7 TB/s (an H100)", ("bandwidth",), ("rates",),
        "An H200's memory is faster than an H100's. Shared memory is not measured.",
    ),
    Claim("Layer norm, bias, activation apart make several round trips", ("ln_bias_gelu",)),
    Claim(
        "After fusion look at registers, occupancy, throughput and stalls",
        ("ln_bias_gelu", "softmax"),
        remark="Registers and occupancy stand in the tables below; stalls need Nsight Compute"
        " (`--ncu`).",
    ),
    Claim("Connect a custom CUDA operator to the framework", ("custom_operator",)),
    Claim("On to several GPUs", ("two_gpus",), ("ranks",)),
    Claim("Order of work: plain PyTorch, Triton, CUDA", ("order_of_work",)),
)  # fmt: skip


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
        return ""
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
    return f"{size:.0e}: {eager} eager, {compiled} compiled, {faster(speed)}".replace("e+0", "e")


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


def page(
    found: list[dict[str, Any]], facts: dict[str, list[str]], unbuilt: dict[str, str], took: float
) -> str:
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
        " profiler.",
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


def row(number: int, claim: Claim, found: list[dict[str, Any]], facts: dict[str, list[str]]) -> str:
    """One claim."""
    budgets = [f for f in found if f["scenario"] in claim.scenarios]
    measured = [
        f"{at(b)}{'; '.join(variant(v) for v in b['variants'])}" for b in budgets if "variants" in b
    ]
    measured += [line for fact in claim.facts for line in facts.get(fact, ["not run: time was up"])]
    verdict = judged(budgets) + (f". {claim.remark}" if claim.remark else "")
    if claim.in_part:
        verdict = verdict.replace("holds:", "holds in part:", 1)
    which = ", ".join(f"`{name}`" for name in claim.scenarios)
    budgeted, found_ = ("<br>".join(map(cell, x)) for x in (expected(budgets), measured))
    cells = (str(number), claim.text, which, budgeted, found_, cell(verdict))
    return f"| {' | '.join(cells)} |"


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
        occupancy = longest.get("occupancy")
        share = f", occupancy {occupancy:.0%}".replace("%", " %") if occupancy is not None else ""
        said.append(f"{longest['registers']} registers{share}")
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
