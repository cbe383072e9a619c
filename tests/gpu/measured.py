"""Hold every scenario to its budget on the GPUs here, and write what the articles' claims came to.

    python tests/gpu/measured.py docs/measured.md [--minutes 8] [--seconds 0.5]

Each GPU gets a process with a share of the scenarios. What fails, or is not reached in time, is a
row that says so. Beside the budgets: a sweep over sizes, the first call of a compiled function, the
rates of `doctor`, and two ranks under torchrun.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import measured_page

from kernelcount import app, scenarios, warm
from kernelcount.budgets import checking
from kernelcount.model import Capture, Job, Paper, Report, Unmeasured

HERE = Path(__file__)
RESERVE = 100  # seconds for what comes after the shares
LATEST = 30  # seconds that a share may take longer than it was given, for the budget it is at
LONGEST = 120  # seconds for a variant


# ── a share of the scenarios, in a process of its own ────────────────────────────────────────────


def share(names: list[str], device: str, seconds: float, end: float) -> Iterator[dict[str, Any]]:
    """What each budget of these scenarios came to, one after the other."""
    options = checking.Options(device=device, timeout=LONGEST, seconds=seconds)
    for scenario in scenarios.choose(names):
        for budget in app.budgets([Path(scenario.budget)]):
            begun = time.monotonic()
            found: dict[str, Any] = {
                "scenario": scenario.name,
                "target": budget.target,
                "size": budget.job.sizes[0] if budget.job.sizes else None,
            }
            if time.time() > end:
                yield {**found, "failed": "not run: time was up"}
                continue
            try:
                found |= held(budget, options)
            except Exception:
                found["failed"] = traceback.format_exc().strip().splitlines()[-1]
                traceback.print_exc()
            yield {**found, "seconds": round(time.monotonic() - begun, 1)}


def held(budget: Any, options: checking.Options) -> dict[str, Any]:
    """The limits of one budget, and the figures of each of its variants."""
    reports: list[Report] = []

    def count(job: Job, _: bool) -> tuple[Report, tuple[str, ...]]:
        with warm.beside(job) as beside:
            answer = app.run(job, warm.in_fork, lambda _: None, beside)
        reports.append(answer.report)
        return answer.report, answer.said

    said: list[str] = []
    checked = checking.check([budget], count, options, lambda _, told: said.extend(told))
    found: dict[str, Any] = {"limits": [asdict(h) for h in checked.held], "said": said}
    if reports:
        found["environment"] = asdict(reports[0].environment)
        found["variants"] = list(figures(reports[0], budget.variants))
    return found


def figures(report: Report, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """What is shown of each variant."""
    (run,) = report.runs
    for i, (name, outcome) in enumerate(zip(names, run.outcomes, strict=True)):
        if isinstance(outcome, Unmeasured):
            yield {"name": name, "reason": outcome.reason}
            continue
        speed = run.speeds[i] if run.speeds else None
        verdict = run.verdicts[i] if run.verdicts else None
        beside = run.besides[i] if run.besides else None
        yield {
            "name": name,
            "kernels": outcome.count("kernel"),
            "copies": outcome.count("copy"),
            "launches": outcome.launches,
            "stable": outcome.stable,
            "kernel_time_ns": outcome.kernel_time_ns,
            "call_ns": median(outcome.timing.samples_ns) if outcome.timing else None,
            "speed": asdict(speed) if speed else None,
            "price": asdict(outcome.price) if outcome.price else None,
            "result": outcome.numerics.verdict if outcome.numerics else None,
            **modelled(beside.paper if beside else None),
            "verdict": verdict.verdict if verdict else None,
            "syncs": list(syncs(outcome)),
            "longest": longest(outcome),
            "each": list(each(outcome)),
        }


def modelled(paper: Paper | None) -> dict[str, Any]:
    """What paper says of the bytes that a variant moves."""
    if paper is None:
        return {"transfers": None, "floor": None, "bytes": None}
    floor = paper.floor / paper.unit if paper.unit else None
    moved = None if paper.at_most else paper.read + paper.written
    return {"transfers": paper.transfers, "floor": floor, "bytes": moved}


def syncs(capture: Capture) -> Iterator[str]:
    """Where the CPU waited for the GPU, as far as this version of kernelcount looks for it."""
    for sync in getattr(capture, "syncs", None) or ():
        where = f"{Path(sync.file).name}:{sync.line}" if sync.file else "an unknown line"
        yield f"{where} ({sync.kind})"


def longest(capture: Capture) -> dict[str, Any] | None:
    """The kernel that takes the most time, and how it was launched."""
    kernels = [r for r in capture.records if r.work.activity == "kernel"]
    if not kernels:
        return None
    work = max(kernels, key=lambda r: r.duration_ns or 0).work
    return {"name": work.name, "registers": work.registers, "occupancy": work.occupancy}


def each(capture: Capture) -> Iterator[dict[str, Any]]:
    """The kernels of a call in order, those alike once, and how they were launched."""
    seen = set()
    for record in capture.records:
        work = record.work
        if work.activity == "kernel" and work not in seen:
            seen.add(work)
            yield {
                "name": work.name,
                "time_ns": record.duration_ns,
                "registers": work.registers,
                "shared_memory": work.shared_memory,
                "occupancy": work.occupancy,
            }


# ── beside the budgets ───────────────────────────────────────────────────────────────────────────


def build_all() -> dict[str, str]:
    """Build what is written in CUDA C, all at once; what could not be built, and why."""
    code = (
        "import sys, importlib; sys.path.insert(0, sys.argv[1]);"
        "one = importlib.import_module(sys.argv[2]);"
        "one.built() if hasattr(one, 'built') else one.SOURCE.module"
    )
    folder = scenarios.folder()
    started = {
        path.stem: subprocess.Popen(
            [sys.executable, "-c", code, str(folder), path.stem],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for path in sorted(folder.glob("*_cuda.py"))
    }  # fmt: skip
    failed = {}
    for name, process in started.items():
        try:
            _, text = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            text = "time was up"
        if process.returncode:
            failed[name] = text.strip()[-2000:]
            sys.stderr.write(f"{name} could not be built:\n{text}\n")
    return failed


def sweep() -> dict[str, Any]:
    """From which size on the compiled add and relu is faster."""
    sizes = (100, 10_000, 1_000_000, 10_000_000, 100_000_000)
    spec = f"{scenarios.folder() / 'crossover.py'}:add_relu"
    job = Job(spec, sizes=sizes, variants=("eager", "compile"), device="cuda:0", seconds=0.3)
    report = app.run(job, warm.in_fork, lambda _: None).report
    lines, verdicts = [], []
    for run in report.runs:
        found = list(figures(one_run(report, run), ("eager", "compile")))
        if all(f.get("call_ns") for f in found):
            speed = found[1]["speed"]
            lines.append(measured_page.swept(run.size, [f["call_ns"] for f in found], speed))
            verdicts += [(run.size, speed["verdict"])] if speed else []
    last = next((c.last for c in report.crossovers if c.variant == "compile"), None)
    return {"lines": lines, "verdicts": verdicts, "from": last.about if last else None}


def one_run(report: Report, run: Any) -> Report:
    """The report of one of its sizes."""
    return Report(report.command, report.environment, (run,))


def traced(command: list[str], names: list[str]) -> dict[str, list[str]]:
    """Kernels in the traces of these names that a command writes into a folder."""
    from kernelcount.reading import read_file

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, folder], check=True, timeout=150)
        found: dict[str, list[str]] = {}
        for name in names:
            (outcome,) = read_file(Path(folder) / f"{name}.json")
            if isinstance(outcome, Unmeasured):
                raise RuntimeError(f"{name}: {outcome.reason}")  # noqa: TRY004
            found[name] = [r.work.name for r in outcome.records if r.work.activity == "kernel"]
        return found


def first_call() -> dict[str, Any]:
    """How many kernels the first call of a compiled function launches, and a later one."""
    command = [sys.executable, str(scenarios.folder() / "first_call.py")]
    found = traced(command, ["first", "later"])
    first, later = len(found["first"]), len(found["later"])
    lines = [f"first call: {first} kernels, a later one: {later}"]
    return {"lines": lines, "first": first, "later": later}


def ranks() -> dict[str, Any]:
    """Kernels by rank, under torchrun."""
    script = str(scenarios.folder() / "two_gpus.py")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        script,
    ]  # fmt: skip
    found = traced(command, ["rank0", "rank1"])
    lines = [
        f"{name}: {len(kernels)} kernels, of NCCL: {', '.join(k for k in kernels if 'nccl' in k)}"
        for name, kernels in found.items()
    ]
    return {"lines": lines}


def rates() -> dict[str, Any]:
    """What the GPU reaches."""
    found = app.doctor(None, lambda _: None)
    return {"lines": measured_page.rated(asdict(found.rates)) if found.rates else [found.unrated]}


def against_float64(name: str, size: int | None) -> dict[str, Any]:
    """How far the results of a scenario's function are from the same in float64."""
    spec = f"{scenarios.folder() / f'{name}.py'}:{name}"
    job = Job(
        spec, sizes=(size,) if size else (), variants=("eager", "compile"), device="cuda:0",
        seconds=0.3, reference=True,
    )  # fmt: skip
    report = app.run(job, warm.in_fork, lambda _: None).report
    outcome = report.outcomes[1]
    if isinstance(outcome, Unmeasured):
        return {"lines": [f"against float64: not measured ({outcome.reason})"]}
    numerics = outcome.numerics
    return {"lines": [measured_page.precise(asdict(numerics) if numerics else None)]}


def compiled_loop(seconds: float) -> dict[str, Any]:
    """torch.compile of the loop over 2,000 tensors, if it is done in that time."""
    spec = f"{scenarios.folder() / 'gradient_mean.py'}:loop"
    job = Job(
        spec, sizes=(2000,), variants=("compile",), device="cuda:0", seconds=0.5, timeout=seconds
    )
    report = app.run(job, warm.in_fork, lambda _: None).report
    (found,) = figures(report, ("compile",))
    lines = [f"2,000 tensors, {measured_page.variant(found)}"]
    return {"lines": lines, "call_ns": found.get("call_ns")}


def tried(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What it gives, or why it gives nothing."""
    try:
        return make()
    except Exception as error:
        traceback.print_exc()
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {"lines": [f"not measured: {said}"]}


# ── all of it ────────────────────────────────────────────────────────────────────────────────────


def shares(gpus: int, seconds: float, end: float) -> list[dict[str, Any]]:
    """All scenarios, shared out among the GPUs; those that take two come last, alone."""
    names = [scenario.name for scenario in scenarios.find()]
    alone = [name for name in names if name == "two_gpus"]
    rest = [name for name in names if name not in alone]
    found: list[dict[str, Any]] = []
    for of_each in ([rest[i::gpus] for i in range(gpus)], [alone]):
        started = [
            (mine, out := tempfile.TemporaryFile("w+"), subprocess.Popen(  # noqa: SIM115
                [sys.executable, str(HERE), "--share", ",".join(mine), "--device", f"cuda:{i}",
                 "--seconds", str(seconds), "--end", str(end)],
                stdout=out, text=True,
            ))
            for i, mine in enumerate(of_each) if mine
        ]  # fmt: skip
        for mine, out, process in started:
            how = ended(process, end + LATEST - time.time())
            out.seek(0)
            found += [json.loads(line) for line in out if line.startswith("{") and line[-1] == "\n"]
            missing = set(mine) - {f["scenario"] for f in found}
            found += [{"scenario": n, "failed": how} for n in sorted(missing)]
    return found


def ended(process: subprocess.Popen[str], seconds: float) -> str:
    """Wait for a share; why what is missing of it is missing."""
    try:
        process.wait(max(1.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "not run: time was up"
    return "its process died"


def main() -> None:
    """Write the page; or, for a share, a line of JSON for each budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, nargs="?", default=Path("docs/measured.md"))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--share")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--end", type=float, default=0.0)
    given = parser.parse_args()
    if given.share:
        for found in share(given.share.split(","), given.device, given.seconds, given.end):
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
        return
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        sys.exit("measured.py: there is no GPU here")
    begun = time.time()
    end = begun + 60 * given.minutes
    unbuilt = build_all()
    found = shares(gpus, given.seconds, end - RESERVE)
    asked: dict[str, Callable[[], dict[str, Any]]] = {
        "ranks": ranks,
        "sweep": sweep,
        "first call": first_call,
        "rates": rates,
        "float64 add_relu": lambda: against_float64("add_relu", 1_000_000),
        "float64 ln_bias_gelu": lambda: against_float64("ln_bias_gelu", None),
    }
    facts: dict[str, dict[str, Any]] = {name: {"lines": ["not run: time was up"]} for name in asked}
    if gpus < 2:
        facts["ranks"] = {"lines": ["not measured: this takes two GPUs, and here is one"]}

    def write() -> None:
        page = measured_page.page(found, facts, unbuilt, time.time() - begun)
        given.output.write_text(page, encoding="utf-8")
        if given.json:
            given.json.write_text(json.dumps([found, facts], indent=1), encoding="utf-8")

    write()  # and again after each: what ends this early keeps what is there
    for name, make in asked.items():
        if time.time() < end and (name != "ranks" or gpus > 1):
            facts[name] = tried(make)
            write()
    left = end - time.time() - 15
    if left > 30:
        facts["compiled loop"] = tried(lambda: compiled_loop(left))
        write()
    sys.stderr.write(f"{given.output}: {time.time() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
