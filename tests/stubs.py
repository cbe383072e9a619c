"""Captures without torch; and what the API gives for a function that names its kernels."""

from array import array

from kernelcount.app import Answer
from kernelcount.model import (
    Capture,
    Environment,
    Lane,
    Note,
    Paper,
    Records,
    Report,
    Run,
    Target,
    Unmeasured,
    Work,
)
from kernelcount.results import Comparison, counts_of


def in_a_row(works, lanes=()):
    """Records one after the other, each of the lane given or of the first."""
    tables = tuple(dict.fromkeys(works))
    index = array("i", [tables.index(w) for w in works])
    n = len(works)
    streams = tuple(Lane("0", str(i)) for i in range(max(lanes, default=0) + 1))
    where = array("i", lanes or [0] * n)
    starts, durations = array("q", range(n)), array("q", [1] * n)
    return Capture("eager", records=Records(tables, streams, index, where, starts, durations))


def records(names):
    works = tuple(Work(f"void {name}", "kernel", name) for name in dict.fromkeys(names))
    order = [w.label for w in works]
    n = len(names)
    column = array("i", [order.index(name) for name in names])
    times = array("q", [1000]) * n
    return Records(works, (Lane("0", "7"),), column, array("i", [0]) * n, times, times)


def outcome(variant, ran, options):
    """`ran`: names of kernels; a reason why it is unmeasured; or as many as paper is sure of."""
    environment = Environment("NVIDIA H200", "cuda", "2.11.0")
    if isinstance(ran, str):
        return Unmeasured(variant, ran)
    paper = None
    notes = ()
    if isinstance(ran, int):
        paper = Paper(0, 1, True, 8, 4, 4, 12, 10**12)
        notes, ran = (Note("at-least", "may launch more kernels than counted: mm"),), ["mm"] * ran
    if options.get("device") == "paper":
        paper = paper or Paper(0, 0, False, 8, 4, 4, 12, 10**12)
    basis = "paper" if paper else "measured"
    return Capture(
        variant, environment, records=records(ran), launches=len(ran), complete=True, stable=True,
        basis=basis, paper=paper, notes=notes,
    )  # fmt: skip


def compare(fn, /, *args, kwargs=None, variants=("eager", "compile"), **options):
    """`fn` gives what each variant runs, or what all do."""
    ran = fn(*args, **(kwargs or {}))
    outcomes = [outcome(v, ran[v] if isinstance(ran, dict) else ran, options) for v in variants]
    environment = Environment("NVIDIA H200", options.get("device"), "2.11.0", options.get("gpu"))
    report = Report("run", environment, (Run(tuple(outcomes)),), Target(f"m:{fn.__name__}"))
    return Comparison(report, counts=counts_of(Answer(report), {}))


def count(fn, /, *args, variant="eager", **options):
    """The same of one."""
    return compare(fn, *args, variants=(variant,), **options)[0]
