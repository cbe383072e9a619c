"""Which lines kernels come from, and which eager ones a compiled one replaces, on paper."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from kernelcount import app, runners
from kernelcount.conclusions.comparison import beside
from kernelcount.model import Job
from kernelcount.origins.fusion import REASONS
from kernelcount.reading import read_trace

SOURCED = Path(__file__).parent / "sourced.py"
DATA = Path(__file__).parents[1] / "data" / "h200"

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("without_costs")]


@lru_cache
def run(name, **flags):
    """The captures by variant, and the fusion map of the compiled one."""
    maker = f"make_{name}" if f"def make_{name}(" in SOURCED.read_text() else None
    job = Job(f"{SOURCED}:{name}", sizes=(1024,), maker=maker, device="paper", **flags)
    (found,) = app.run(job, runners.in_process, lambda _: None).report.runs
    eager, compiled = found.outcomes
    return eager, compiled, found.fusions[1]


def work(capture):
    """Of each record its name and its lines as the file has them."""
    text = SOURCED.read_text().splitlines()
    for index, source in zip(capture.records.work, capture.provenance.sources, strict=True):
        places = [o.place for o in source.origins if o.place]
        named = capture.records.works[index]
        yield named.label or named.name, [text[p.line - 1].strip() for p in places]


def test_eager_ops_know_the_line_that_called_them():
    eager, _, _ = run("ln_bias_gelu")
    assert list(work(eager)) == [
        ("native_layer_norm", ["y = F.layer_norm(x, x.shape[-1:])"]),
        ("add", ["y = y + bias"]),
        ("gelu", ["return F.gelu(y)"]),
    ]


def test_a_generated_kernel_has_the_lines_of_all_that_it_computes():
    _, compiled, fusion = run("ln_bias_gelu")
    ((_, lines),) = work(compiled)
    assert lines == ["y = F.layer_norm(x, x.shape[-1:])", "y = y + bias", "return F.gelu(y)"]
    (fused,) = fusion.kernels
    assert (fused.replaces, fused.by_line, fused.alone) == ((0, 1, 2), (), None)
    assert [a.code for a in compiled.provenance.sources[0].apart] == ["nothing-shared"]


def test_a_backward_op_has_the_line_of_its_forward():
    eager, compiled, fusion = run("RMSNorm", backward=True)
    assert list(work(eager))[6:] == [
        ("mul", ["return x * scale * self.weight"]),
        ("sum", ["return x * scale * self.weight"]),
    ]
    assert [s.phase for s in eager.provenance.sources[6:]] == ["backward"] * 2
    assert {s.phase for s in compiled.provenance.sources} == {"forward", "backward"}
    assert (fusion.matched, fusion.total) == (8, 8)


def test_a_training_step_is_told_by_its_phases():
    eager, compiled, fusion = run("train")
    assert [s.phase for s in eager.provenance.sources if s.phase == "optimizer"]
    lines = {line for _, lines in work(eager) for line in lines}
    assert "OPTIMIZER.step()" in lines
    named = dict(work(compiled))
    assert named["triton_for_fused_0"][0] == "OPTIMIZER.step()"
    phases = {s.phase for s in compiled.provenance.sources}
    assert phases == {"forward", "backward", "optimizer"}
    assert fusion.matched == fusion.total > 20


def test_modules_have_their_path_in_the_outermost():
    eager, compiled, _ = run("Block")
    paths = [[o.module for o in s.origins] for s in eager.provenance.sources]
    assert paths[:3] == [["before"], ["attention.qkv"], ["attention"]]
    assert ["attention.qkv"] in [[o.module for o in s.origins] for s in compiled.provenance.sources]


def test_the_backend_of_attention_is_named():
    for capture in run("Block")[:2]:
        assert [s.attention for s in capture.provenance.sources if s.attention] == ["efficient"]


def test_what_stayed_alone_says_why():
    _, compiled, fusion = run("Block")
    alone = {name: fused.alone for (name, _), fused in zip(work(compiled), fusion.kernels)}  # noqa: B905
    assert alone["triton_per_fused_native_layer_norm_0"].code == "beside-library-calls"
    assert alone["mm"].code == "library-call"


def test_what_runs_between_graphs_is_eager_code_with_its_lines():
    _, compiled, fusion = run("breaks", backward=True)
    assert [s.graph for s in compiled.provenance.sources] == [0, 1, 2, 3, None]
    assert fusion.kernels[-1].alone.code == "eager-code"
    assert [a.code for s in compiled.provenance.sources[:4] for a in s.apart] == ["graph-break"] * 4
    assert fusion.matched == fusion.total


@pytest.mark.parametrize(
    ("name", "flags"),
    [("add_relu", {}), ("ln_bias_gelu", {}), ("RMSNorm", {"backward": True}), ("Block", {}),
     ("train", {}), ("llama", {})],
)  # fmt: skip
def test_nearly_every_eager_kernel_is_replaced_or_left_for_a_reason(name, flags):
    if name == "llama":
        pytest.importorskip("transformers")
    eager, compiled, fusion = run(name, **flags)
    assert fusion.unknown == ""
    assert all(lines for _, lines in _with_lines(compiled)), "each compiled kernel has its lines"
    assert fusion.matched >= 0.95 * fusion.total > 0
    assert {code for _, code in fusion.left} <= set(REASONS)
    assert eager.count("kernel") == fusion.total


def _with_lines(capture):
    for index, source in zip(capture.records.work, capture.provenance.sources, strict=True):
        yield capture.records.works[index].name, [o.place for o in source.origins if o.place]


def recorded(name):
    """Eager code as it was recorded on an H200, with the lines that paper gives to its records."""
    job = Job(f"{SOURCED}:{name}", maker=f"make_{name}", device="paper", variants=("eager",))
    (paper,) = runners.in_process(job, lambda _: None).outcomes.values()
    ran = read_trace(DATA / f"h200-{name}.eager.json.gz", "eager")
    return replace(ran, provenance=beside(ran, paper).provenance)


def test_each_record_of_a_gpu_gets_its_line_a_fill_too():
    ran = recorded("naive_attn")
    assert ran.count("fill") == 1
    scores = "scores = (q @ k.transpose(-1, -2)) / (q.shape[-1] ** 0.5)"
    assert [line for _, (line,) in work(ran)] == [
        *[scores] * 3,
        "weights = torch.softmax(scores, -1)",
        "return weights @ v",
    ]
    assert ran.provenance.unknown == ""


def test_a_loop_is_told_apart_round_by_round_on_a_gpu_too():
    ran = recorded("mean_list")
    origins = [s.origins[0] for s in ran.provenance.sources]
    assert [o.number for o in origins[:6]] == [0, 0, 1, 1, 2, 2]
    assert len(set(origins)) == len(origins) == 201


def test_a_backward_of_the_users_own_has_its_own_lines_in_both_variants():
    eager, compiled, fusion = run("Own", backward=True)
    back = {line for s, (_, lines) in zip(eager.provenance.sources, work(eager), strict=True)
            if s.phase == "backward" for line in lines}  # fmt: skip
    assert "return gradient * 2 * x" in back
    assert "return one * exp + other * x.cos(), one.neg()" in back
    lines = [line for _, lines in work(compiled) for line in lines]
    assert {"return gradient * 2 * x", "return one * exp + other * x.cos(), one.neg()"} <= {*lines}
    assert {o.module for s in eager.provenance.sources for o in s.origins} == {
        "inner.0", "inner.1", None
    }  # fmt: skip
    assert (fusion.left, fusion.matched) == ((), fusion.total)
    assert all(fused.replaces for fused in fusion.kernels)


def test_what_is_gone_through_twice_has_the_line_of_the_backward_it_is_of():
    job = Job(f"{SOURCED}:own_twice", sizes=(64,), device="paper", variants=("eager",))
    (eager,) = runners.in_process(job, lambda _: None).outcomes.values()
    forward, *back = [
        (source.phase, lines)
        for source, (name, lines) in zip(eager.provenance.sources, work(eager), strict=True)
        if name == "mul"
    ]
    assert forward == ("forward", ["return x * x"])
    assert back == [("backward", ["return gradient * 2 * x"])] * len(back)
    assert len(back) > 2, "those of the first way back, and those of the way through it"


def test_the_hook_of_a_leaf_is_of_the_backward_pass_in_both_variants():
    _, compiled, fusion = run("hooked")
    hook = compiled.provenance.sources[-1]
    assert (hook.phase, [o.phase for o in hook.origins]) == ("backward", ["backward"])
    assert list(work(compiled))[-1][1] == ["w.register_hook(lambda g: g * 3)"]
    assert (fusion.left, fusion.kernels[-1].replaces) == ((), (4,))


def test_the_hooks_of_a_module_have_their_own_lines_in_the_backward_pass_of_both_variants():
    hooks = {
        "exp": ["return tuple(g.exp() for g in gradients)"],
        "cos": ["return tuple(g.cos() for g in gradients)"],
    }
    eager, compiled, fusion = run("Watched", backward=True)
    for capture in (eager, compiled):
        found = {
            name: (lines, source.phase)
            for (name, lines), source in zip(work(capture), capture.provenance.sources, strict=True)
        }
        assert {name: found.get(name) for name in hooks} == {
            name: (lines, "backward") for name, lines in hooks.items()
        }
    assert (fusion.left, fusion.matched) == ((), fusion.total)


def test_what_a_compiled_kernel_does_at_another_line_is_found_by_its_op():
    eager, compiled, fusion = run("hooked_inside", backward=True)
    names = [name for name, _ in work(eager)]
    (clamping,) = (f for f in fusion.kernels if names.index("clamp") in f.replaces)
    assert "clamp" in {o.op for o in compiled.provenance.sources[clamping.record].origins}
    assert (fusion.left, fusion.matched) == ((), fusion.total)


def test_a_gradient_that_a_graph_asks_for_itself_is_of_the_backward_pass_in_both_variants():
    eager, _, fusion = run("gradient_inside")
    assert [s.phase for s in eager.provenance.sources].count("backward") > 3
    assert (fusion.left, fusion.matched) == ((), fusion.total)


def test_of_a_line_in_a_branch_it_is_not_known_what_became_of_it():
    eager, compiled, fusion = run("branch")
    ((left, why),) = fusion.left
    assert list(work(eager))[left][1] in (["return x + 1"], ["return x - 1"])
    assert (why, fusion.matched) == ("unknown", fusion.total - 1)
    assert [(w.kind, w.op) for w in compiled.syncs] == [("bool", "is_nonzero")]


@pytest.mark.parametrize("name", ["Outside", "OutsideHooked", "OutsideHelped"])
def test_after_a_break_inside_of_it_a_module_has_its_whole_path(name):
    eager, compiled, fusion = run(name, backward=True)
    paths = [{o.module for s in c.provenance.sources for o in s.origins} for c in (eager, compiled)]
    assert {"a.fc", "b.fc"} <= paths[0]
    assert paths[1] <= paths[0]
    sources = eager.provenance.sources, compiled.provenance.sources
    for fused in fusion.kernels:
        modules = [
            {(o.module or "")[:1] for i in places for o in all_[i].origins} & {"a", "b"}
            for all_, places in zip(sources, (fused.replaces, [fused.record]), strict=True)
        ]
        assert modules[0] <= modules[1], "those of a are replaced by those of a"
    assert (fusion.left, fusion.matched) == ((), fusion.total)


def test_what_is_put_into_an_array_has_the_line_that_puts_it():
    _, compiled, fusion = run("puts")
    assert [lines for _, lines in work(compiled)] == [["x[2] = 5.0"], ["return x + 1"]]
    assert (fusion.left, [f.replaces for f in fusion.kernels]) == ((), [(0,), (1,)])
