"""docs/json.md names every key of every JSON document, with its unit, and no other."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kernelcount import model, remedies
from kernelcount.model import (
    Cost,
    Diagnosis,
    Evidence,
    Numerics,
    Run,
    Scenario,
    Unmeasured,
    Verdict,
)
from kernelcount.render import check, diff, doctor, render, scenarios
from kernelcount.render.json import error_document
from tests.keys import Reader, sections
from tests.render import (
    diffs,
    samples,
    sourced,
    sweeps,
    test_breaks,
    test_check,
    test_counters,
    test_doctor,
    test_paper,
    test_remedies,
    test_syncs,
    test_times,
    test_verdict,
)

ROOT = Path(__file__).parent.parent
RENDERERS = (
    "json", "counters", "fusion", "lines", "syncs", "breaks", "check", "scenarios", "doctor",
    "diff/json",
)  # fmt: skip
AS_THEY_ARE = ("Environment", "Note", "Scenario", "Check")
"""Nouns that a renderer writes field by field."""

# ── documents ────────────────────────────────────────────────────────────────────────────────────


def _on_its_run(report: model.Report, **given: Any) -> model.Report:
    return replace(report, runs=(replace(report.runs[0], **given),))


def _runs() -> Iterator[model.Report]:
    """Reports that together have a value for each key of `run` and `read`."""
    yield from (samples.on_cpu(), samples.incomplete(), samples.two_devices())
    yield from (samples.three_steps(), sweeps.crossed(), test_counters.report())
    yield from (samples.graphs(), _sizes(), _compared())
    yield test_remedies.report(test_remedies.GRAPH, test_remedies.TF32, test_remedies.BF16)
    yield sourced.report(sourced.eager(), sourced.compiled())
    yield _in_modules()
    again = {"recompilations": (test_breaks.AGAIN,), "skipped_graphs": ("mutated inputs",)}
    cost = Cost(3, "on paper 5 with the breaks and 2 without")
    for breaks in ((test_breaks.PRINT,), (test_breaks.PRINT, test_breaks.BRANCH)):
        yield test_breaks.report(*breaks, breaks_cost=cost, **again)
    yield samples.run_report(
        test_syncs.waiting(test_syncs.ITEM, test_syncs.COPY, gaps=test_syncs.GAPS, call_ns=2e5)
    )
    products = {"flops": (("f32", 7),), "tensor_cores": ("bf16",)}
    yield test_paper.report(test_paper.eager(**products), test_paper.compiled())
    told = Evidence("busy", 463_000, 469_000, 0.987, "measured", "of some kernels")
    unknown = Verdict("", None, (told,), "it is not known", of_call=True, precision="f32")
    yield test_verdict.report(test_verdict.BOUND, unknown)
    yield _beside_paper()
    failed = Unmeasured("eager", "f raised", code=2)
    yield samples.run_report(failed, samples.compiled())
    several = sweeps.crossed()
    held = (test_verdict.BOUND, None)
    yield replace(several, runs=tuple(replace(run, verdicts=held) for run in several.runs))


def _sizes() -> model.Report:
    """A sweep on paper, the rows of which have bytes and operations, and one size unmeasured."""
    capture = test_paper.eager()
    works = (replace(w, read=8, written=4, flops=2) for w in capture.records.works)
    whole = replace(capture, records=replace(capture.records, works=tuple(works)))
    runs = [Run((whole, test_paper.compiled()), size) for size in (100, 1000)]
    timed = sweeps.report(*sweeps.crossed().runs, sweeps.unmeasured(7, reason="out of memory"))
    return replace(timed, runs=(*runs, *timed.runs))


def _compared() -> model.Report:
    """Times and results, also of what differs."""
    found = Numerics("different", 2, 1.5, 2.0, 9, ("8 NaN in the same places",), 0.1, 0.2, "values")
    timed = test_times.report(469, 280, "faster")
    eager, compiled = timed.runs[0].outcomes
    return _on_its_run(timed, outcomes=(eager, replace(compiled, numerics=found)))


def _in_modules() -> model.Report:
    """Lines, modules and attention of both sides, and eager records that none replaces."""
    place = model.Place("net.py", 3, "forward")
    sdpa = model.Origin("sdpa", place, "layers.0")
    apart = model.Apart("other", "triton_poi_fused_mul_1", "cannot fuse")
    source = model.Source((sdpa,), "forward", 0, attention="flash", apart=(apart,))
    left = replace(source, origins=(replace(sdpa, op="gone", number=1),))
    base = sourced.eager(source, left, unknown="a kernel that nothing tells of")
    whole = sourced.report(base, sourced.compiled(source))
    (run,) = whole.runs
    alone = model.Fused(0, (0,), alone=apart)
    fusions = tuple(f and replace(f, unknown="?", kernels=(alone,)) for f in run.fusions)
    return replace(whole, runs=(replace(run, fusions=fusions),))


def _beside_paper() -> model.Report:
    """A count on paper that differs beside one variant, none beside the other."""
    differs = model.Difference("mm", 2, 1, "split-K adds 1 to mm")
    besides = (
        model.Beside(test_paper.eager(), (differs,)),
        model.Beside(Unmeasured("compile", "a stream")),
    )
    return _on_its_run(samples.add_relu(), besides=besides)


def _diffs() -> Iterator[model.Diff]:
    yield from (diffs.regression(), diffs.unknown(), diffs.renamed(), diffs.sourced())
    alone = diffs.many()
    pair = replace(alone.pairs[0], breaks=(test_breaks.PRINT,))
    yield replace(alone, pairs=(pair,), only_before=("a",), only_after=("b",))
    both = [[diffs.Side(c.name, "captures", c)] for c in samples.on_cpu().outcomes]
    yield diffs._diff(both[1], both[1])
    whole = replace(
        samples.compiled(), environment=replace(samples.H200, kind="paper"), basis="paper",
        paper=model.Paper(1, 0, False, 8, 4, 4, 12, 1), breaks=(), recompilations=(), syncs=(),
        target=model.Target("a.py:f", ("f32[1]",)),
    )  # fmt: skip
    on_paper = [diffs.Side("compile", "captures", whole)]
    yield diffs._diff(on_paper, on_paper, memory="+0")


def _checks() -> Iterator[model.Checked]:
    yield test_check.ALL
    environment = replace(test_check.PAPER, triton="3.6.0", libraries=(("cudnn", "9.15.1"),))
    environment = replace(environment, kernelcount="0.1.0")
    timed = replace(
        test_check.UNDECIDED, actual=1.31, low=1.2, high=1.4, status="undecided", size=8, code=2
    )
    yield model.Checked((timed,), 1, environment, written=("kernelcount.lock",))


SCENARIO = Scenario("add", "theme", "claim", "teaches", "add.py", "add.yaml")


def _documents() -> Iterator[tuple[str, str]]:
    """The section and the text of each document that is rendered by hand."""
    for report in _runs():
        yield "of-run-and-read", render(report, format="json")
    for found in _diffs():
        yield "of-diff", diff.render(found, form="json")
    for checked in _checks():
        yield "of-check", check.render(checked, form="json")
        yield "of-scenarios-run", scenarios.results((SCENARIO,), checked, "json")
    yield "of-scenarios", scenarios.render((SCENARIO,), Path("there"), form="json")
    recorded = replace(test_doctor.FOUND, recorded="a.json: 3 calls", code=3, said="no GPU")
    every = tuple((p, 1e12) for p in ("f32", "tf32", "bf16", "f16", "f64"))
    rates = replace(test_doctor.REACHED.rates, copy_l2=5e12, matmul=every, compiled_ns=9.0)
    reached = replace(test_doctor.REACHED, rates=rates)
    for diagnosis in (recorded, test_doctor.REACHED, reached, Diagnosis(unrated="no GPU")):
        yield "of-doctor", doctor.render(diagnosis, form="json")
    yield "of-a-failure", error_document("run", 2, "There is no file.")


@pytest.fixture(scope="module")
def reader() -> Reader:
    """A reader of all documents that are made by hand."""
    found = Reader()
    for anchor, text in _documents():
        found.read(json.loads(text), anchor, anchor)
    return found


# ── tests ────────────────────────────────────────────────────────────────────────────────────────


def test_every_key_in_the_docs_is_in_a_document_with_a_value_of_its_unit(reader):
    documented = {(anchor, name) for anchor, keys in sections().items() for name in keys}
    assert sorted(documented - reader.met) == []


def test_what_is_said_to_be_there_at_times_is_not_always_there(reader):
    at_times = {
        (anchor, name)
        for anchor, keys in sections().items()
        for name, key in keys.items()
        if key.at_times
    }
    assert sorted(at_times - reader.left_out) == []


def test_every_section_of_keys_is_reached_from_a_document():
    reached = {anchor for anchor in sections() if anchor.startswith("of-")} | {"variant"}
    reached |= {key.section for keys in sections().values() for key in keys.values()}
    assert {anchor for anchor, keys in sections().items() if keys} == reached - {None}


def _names_in_code() -> Iterator[str]:
    """Every text that is a key of a dictionary in a renderer, and fields written as they are."""
    for name in RENDERERS:
        tree = ast.parse((ROOT / "kernelcount" / "render" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) and not _is_table(node):
                yield from (k.value for k in node.keys if isinstance(k, ast.Constant))
    for noun in AS_THEY_ARE:
        assert is_dataclass(getattr(model, noun))
        yield from (field.name for field in fields(getattr(model, noun)))


def _is_table(node: ast.Dict) -> bool:
    """Whether it is a table of styles or renderers: each value a text, or one a function."""
    texts = all(isinstance(value, ast.Constant) for value in node.values)
    return texts or any(isinstance(value, ast.Lambda) for value in node.values)


def test_every_key_that_a_renderer_writes_is_in_the_docs():
    documented = {name for keys in sections().values() for name in keys}
    written = set(_names_in_code())
    assert sorted(written - documented) == []
    assert len(written) > 150


def test_a_key_that_is_not_in_the_docs_is_an_error():
    document = json.loads(error_document("run", 2, "x"))
    document["error"]["new"] = 1
    with pytest.raises(AssertionError, match=r"of-a-failure.error: {'new'} not in docs/json.md"):
        Reader().read(document, "of-a-failure", "of-a-failure")
    document["error"] = {"code": 2.5, "message": "x"}
    with pytest.raises(AssertionError, match=r"error.code: 2.5 is not in number"):
        Reader().read(document, "of-a-failure", "of-a-failure")


@pytest.mark.parametrize("name", ["gpt2.compile", "train-compile", "streams", "hidden_sync.eager"])
def test_a_recorded_trace_has_no_other_key(kernelcount, name):
    names = [f"h200-{name}.json.gz", f"{name}.json.gz"]
    (path,) = [p for n in names if (p := ROOT / "tests" / "data" / "h200" / n).exists()]
    code, out, _ = kernelcount("read", path, "--format", "json")
    assert code == 0
    Reader().read(json.loads(out), "of-run-and-read", "read")


WAITS = """
    from kernelcount.devices.fake import allocate, launch, wait
    def f(x):
        launch("add", op="aten::add", duration_us=30)
        wait("aten::item")
        launch("relu", op="aten::relu")
        allocate(10)
        return x + 1
    def g(x):
        launch("fused", graph=True, kernels=2)
        return x + 1
"""


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (("--size", "4", "--remedy", "--full", "--explain"), '"not tried"'),
        (("--size", "4,8", "--reference"), '"crossovers"'),
        (("--size", "4", "--no-grad", "--seconds", "0"), '"item"'),
    ],
)
def test_a_run_on_the_fake_device_has_no_other_key(kernelcount, target, monkeypatch, flags, shown):
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    compiling = ("compile", "CUDA graph")  # they take seconds, and tell nothing of the fake device
    rows = {name: row for name, row in remedies.REMEDIES.items() if name not in compiling}
    monkeypatch.setattr(remedies, "REMEDIES", rows)
    path = target(WAITS)
    variants = ("--variant", "eager", "--variant", f"{path}:g", "--seconds", "0.05")
    code, out, _ = kernelcount(
        "run", f"{path}:f", "--device", "fake", *variants, *flags, "--format", "json"
    )
    assert code == 0
    assert shown in out
    Reader().read(json.loads(out), "of-run-and-read", "run")


def test_a_run_on_the_cpu_has_no_other_key(kernelcount, target):
    path = target("def f(x):\n    print('')\n    return x + 1")
    flags = ("--variant", "eager", "--variant", "compile:backend=eager", "--seconds", "0.05")
    code, out, _ = kernelcount(
        "run", f"{path}:f", "--device", "cpu", *flags, "--backward", "--format", "json"
    )
    assert code == 0
    assert '"graph_breaks": 1' in out
    Reader().read(json.loads(out), "of-run-and-read", "run")
