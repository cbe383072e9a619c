"""The claims of the articles, and what is to be said of each beside its budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelcount.render.wording import amount, duration, ratio

Facts = dict[str, dict[str, Any]]
"""What was measured beside the budgets: `lines` to show, and what a judge below takes from it."""

Budgets = list[dict[str, Any]]


@dataclass(frozen=True)
class Judgement:
    """What an H200 does otherwise than the article says, and why.

    `in_part`: so that the claim holds only in part, although the budgets, which are of this GPU,
    are kept; `refuted`: so that it does not hold.
    """

    remark: str = ""
    in_part: bool = False
    refuted: bool = False


Judge = Callable[[Budgets, Facts], Judgement]


@dataclass(frozen=True)
class Claim:
    """A claim of the articles: the scenarios and the further facts that it is held against.

    `judge`: a judgement, or what makes one of the figures. `named`: generated kernels are shown by
    name; `per_kernel`: every kernel of its scenarios is shown.
    """

    text: str
    scenarios: tuple[str, ...]
    facts: tuple[str, ...] = ()
    judge: Judgement | Judge = Judgement()
    named: bool = False
    per_kernel: bool = False

    def judged(self, budgets: Budgets, facts: Facts) -> Judgement:
        """What is to be said of it, with these figures."""
        if isinstance(self.judge, Judgement):
            return self.judge
        return self.judge(budgets, facts)


def swept(_: Budgets, facts: Facts) -> Judgement:
    """The claim on sizes, by the sweep: per call, compiled wins at 1e7 and 1e8."""
    fact = facts.get("sweep", {})
    verdicts = dict(fact.get("verdicts", ()))
    said = []
    if verdicts.get(100) == "slower":
        said.append(
            "At 100 there is a difference, and it is against the compiled function: its guards cost"
            " more than the launch that it saves."
        )
    known = {size: verdicts[size] for size in (10**7, 10**8) if size in verdicts}
    for size, verdict in known.items():
        if verdict != "faster":
            word = "slower" if verdict == "slower" else "no faster"
            at = f"{size:.0e}".replace("e+0", "e")
            said.append(
                f"At {at} a compiled call is {word}, so that the claim does not hold there: the"
                " kernel takes less time, but a call takes as long as the CPU needs for it."
            )
    if fact.get("from"):
        said.append(f"Compiled calls win from a size of about {amount(fact['from'])} on.")
    kept = verdicts.get(100) == "no difference" and list(known.values()) == ["faster", "faster"]
    return Judgement(" ".join(said), in_part=not kept)


def warmed(_: Budgets, facts: Facts) -> Judgement:
    """The claim on the first call, by its traces: the budget says nothing of it."""
    fact = facts.get("first call", {})
    first, later = fact.get("first"), fact.get("later")
    if first is None or later is None:
        return Judgement("The budget is of later calls; the first was not recorded.", in_part=True)
    if first <= later:
        said = f"The first call launches {first} kernels, and a later one {later}"
        return Judgement(f"{said}.", refuted=True)
    return Judgement(
        f"The first call launches {first} kernels and a later one {later}: the first is more, as"
        " claimed; the budget is of the later ones."
    )


def averaged(budgets: Budgets, facts: Facts) -> Judgement:
    """The claim on the mean of gradients: 20 ms, compiled a little slower, and 30 us."""
    at = next((b for b in budgets if b.get("size") == 2000), {})
    calls = {v["name"]: v.get("call_ns") for v in at.get("variants", ())}
    loop = calls.get("eager")
    kernel = next((ns for name, ns in calls.items() if name.endswith("mean_norm")), None)
    compiled = facts.get("compiled loop", {}).get("call_ns")
    said = []
    if loop:
        said.append(
            f"The loop takes {duration(loop)}, for 20 ms in the article: what a launch costs is the"
            " CPU's."
        )
    slower = False
    if loop and compiled:
        slower = compiled >= loop
        by = ratio(compiled / loop if slower else loop / compiled)
        said.append(
            f"Compiled it takes {duration(compiled)}: {by} {'slower' if slower else 'faster'},"
            " where the article has it a little slower."
        )
    elif loop:
        said.append("Whether it is a little slower compiled, as the article has it, was not timed.")
    if kernel:
        said.append(
            f"The kernel's call takes {duration(kernel)}, for 30 µs: it includes the table of 2,000"
            " addresses, made anew each time."
        )
    within = bool(kernel and kernel <= 30_000)
    return Judgement(" ".join(said), in_part=not (slower and within))


def ordered(budgets: Budgets, _: Facts) -> Judgement:
    """The claim on the order of work: what the verdict says of the compiled function."""
    variants = [v for b in budgets for v in b.get("variants", ())]
    compiled = next((v for v in variants if v["name"] == "compile"), {})
    made, floor = compiled.get("transfers"), compiled.get("floor")
    if not compiled.get("verdict") or made is None or floor is None:
        return Judgement("What holds the compiled function back was not told.", in_part=True)
    said = (
        f"Compiled it is {compiled['verdict']} and makes {made:.1f} transfers, {floor:.1f} being"
        " the least possible"
    )
    if compiled["verdict"] == "memory-bound" and f"{made:.1f}" == f"{floor:.1f}":
        return Judgement(f"{said}: only fewer bytes would help, and no kernel by hand saves any.")
    return Judgement(f"{said}: there is something left to win.", in_part=True)


CLAIMS = (
    Claim(
        "`a + b` is one launch, one kernel and 3 transfers, whatever the length", ("add",),
        judge=Judgement(
            "At 8 and at 1e6 the transfers are modelled: arrays so small stay in the 60 MB L2"
            " cache, so that not all of them reach GPU memory.", in_part=True,
        ),
    ),
    Claim(
        "`(a + b).relu()` is 2 kernels and 5 transfers in eager, 1 and 3 fused", ("add_relu",),
        ("float64 add_relu",),
        Judgement(
            "At 1e6 the transfers are modelled, and saved on paper only: the sum of 4 MB stays in"
            " the 60 MB L2 cache, so that its round trip never reaches GPU memory.", in_part=True,
        ),
        named=True,
    ),
    Claim(
        "At 100 the difference drowns in noise, at 1e7 and 1e8 the compiled one wins",
        ("crossover",), ("sweep",), swept,
    ),
    Claim(
        "The first compiled call measures the compiler", ("first_call",), ("first call",), warmed
    ),
    Claim("A profiler's rows that are no kernels must be left out", ("profiler_rows",)),
    Claim("Vector add and matrix product by hand", ("vector_add", "matmul_by_hand")),
    Claim(
        "Reduction with warp shuffle; softmax", ("reduction", "softmax"),
        judge=Judgement(
            "At 8192 torch.softmax moves each byte once, too (527 MB by Nsight Compute), but at"
            " 1.9 TB/s: one kernel, and yet half as fast as one of Triton."
        ),
    ),
    Claim(
        "Triton: fused softmax, layer norm, tile sizes",
        ("softmax", "ln_bias_gelu", "matmul_by_hand"),
    ),
    Claim(
        "A fused transformer block; fast attention", ("transformer_block", "attention"),
        judge=Judgement(
            "Of the block one pair is fused, the first sum and the norm after it: 10 kernels"
            " become 9. The last sum makes the first again; the others stand between library"
            " calls.", in_part=True,
        ),
        named=True,
    ),
    Claim(
        "Three bottlenecks, three remedies: tensor cores, fusion, CUDA graphs",
        ("matmul_precision", "mixed_precision", "pointwise_chain", "small_layers"),
    ),
    Claim("Three hidden synchronisations in a training loop, and their cures", ("training_loop",)),
    Claim("`pin_memory` with `non_blocking=True`", ("pinned_copy",)),
    Claim(
        "The mean of thousands of gradients: a loop 20 ms, compiled a little slower, a kernel of"
        " one's own 30 µs",
        ("gradient_mean",), ("compiled loop",), averaged,
    ),
    Claim("Graph breaks undo fusion", ("graph_breaks",)),
    Claim("One contiguous range a thread is slower than neighbouring reads", ("coalescing",)),
    Claim(
        "2048 x 2048: 28 ms on a CPU, 200 µs on a GPU", ("cpu_against_gpu",),
        judge=Judgement(
            "In float32 without tensor cores, torch's default, it is more than 200 µs; and a"
            " server's CPU with many cores takes less than 28 ms.", in_part=True,
        ),
    ),
    Claim(
        "Global memory 3 TB/s, L2 7 TB/s (an H100)", ("bandwidth",), ("rates",),
        Judgement("An H200's memory is faster than an H100's. Shared memory is not measured."),
    ),
    Claim(
        "Layer norm, bias, activation apart make several round trips", ("ln_bias_gelu",),
        ("float64 ln_bias_gelu",), named=True,
    ),
    Claim(
        "After fusion look at registers, occupancy, throughput and stalls",
        ("ln_bias_gelu", "softmax"),
        judge=Judgement(
            "Registers, shared memory and occupancy of each kernel stand in the tables below, and"
            " the modelled bytes over the kernel time as the throughput of each variant. Stalls are"
            " not measured here: they need Nsight Compute (`--ncu`).", in_part=True,
        ),
        per_kernel=True,
    ),
    Claim("Connect a custom CUDA operator to the framework", ("custom_operator",)),
    Claim("On to several GPUs", ("two_gpus",), ("ranks",)),
    Claim(
        "Order of work: plain PyTorch, Triton, CUDA", ("order_of_work",), judge=ordered
    ),
)  # fmt: skip
