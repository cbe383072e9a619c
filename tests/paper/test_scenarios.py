"""The scenarios, held to their budgets on paper: all that paper can decide is kept."""

import csv
import importlib.util
import json
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcount import ahead, app, runners, scenarios
from kernelcount.budgets import checking
from kernelcount.model import Checked, Held

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own

OPTIONS = checking.Options(device="paper")
SLOW = ("gradient_mean.py:loop", "first_call.py:layers")  # held below; the same as small_layers
WHY_NOT = (
    "needs a GPU", "may launch more kernels", "may copy more than counted", "on paper", "on a GPU",
    "Triton", "two GPUs", "looked for", "is compiled",
)  # fmt: skip


def hold(budgets) -> Checked:
    return app.check(budgets, runners.in_process, lambda _: None, OPTIONS)


def _budgets(scenario) -> list:
    """One budget for each target, whatever its size: `scenarios run --all` holds them all."""
    by_target = {b.target: b for b in reversed(app.budgets([Path(scenario.budget)]))}
    return [budget for target, budget in by_target.items() if target not in SLOW]


@pytest.mark.parametrize("scenario", scenarios.find(), ids=lambda s: s.name)
def test_what_paper_can_decide_is_kept(scenario, count):
    checked = hold(_budgets(scenario))
    assert not [held for held in checked.held if held.status == "broken"]
    for held in checked.held:
        assert held.status == "kept" or any(why in held.why for why in WHY_NOT), held


def kernels(checked: Checked) -> dict[str, tuple[float | None, str]]:
    return {h.variant: (h.actual, h.status) for h in checked.held if h.limit == "kernels"}


def test_the_loop_launches_two_kernels_a_tensor_and_two_more(count):
    budget, _ = app.budgets([scenarios.folder() / "gradient_mean.yaml"])
    at_fifty = replace(budget, job=replace(budget.job, sizes=(50,)))
    assert kernels(hold([at_fifty]))["eager"] == (102, "broken")  # 4,002 are of 2,000 tensors


def test_softmax_is_five_kernels_by_hand_and_one_otherwise(count):
    budget = app.budgets([scenarios.folder() / "softmax.yaml"])[0]
    found = kernels(hold([budget]))
    assert found["eager"] == (5, "kept")
    assert found["compile"] == found["softmax.py:library"] == (1, "kept")
    assert found["softmax_triton.py:softmax"] == (None, "undecided")


def not_compiled(budget):
    """The budget of its variants that need no compiler."""
    names = tuple(name for name in budget.variants if not name.startswith("compile"))
    limits = tuple(limit for limit in budget.limits if limit.variant in names)
    job = replace(budget.job, variants=names)
    return replace(budget, variants=names, limits=limits, job=job, overrides=())


@pytest.mark.parametrize(
    ("name", "text", "instead", "broken"),
    [
        (
            "matmul_precision", "a.bfloat16() @ b.bfloat16()", "a @ b",
            [("matmul_precision.py:bf16", "library"), ("matmul_precision.py:bf16", "transfers")],
        ),
        (
            "small_layers", "x = layer(x).relu()", "x = layer(x).sigmoid() * x",
            [("eager", "library")],
        ),
        (
            "attention", "/ query.shape[-1] ** 0.5", "/ query.shape[-1] ** 0.5 + 1",
            [("eager", "library"), ("eager", "transfers")],
        ),
    ],
)  # fmt: skip
def test_a_claim_that_is_no_longer_true_breaks_on_paper(
    tmp_path, count, name, text, instead, broken
):
    source = scenarios.folder() / f"{name}.py"
    changed = source.read_text().replace(text, instead)
    assert changed != source.read_text()
    (tmp_path / source.name).write_text(changed)
    budget = source.with_suffix(".yaml").read_text()
    (tmp_path / f"{name}.yaml").write_text(budget)
    first = not_compiled(app.budgets([tmp_path / f"{name}.yaml"])[0])
    found = [(h.variant, h.limit) for h in hold([first]).held if h.status == "broken"]
    assert set(broken) <= set(found)


def test_what_is_known_of_an_h200_alone_is_not_asked_of_another_card(count):
    budgets = app.budgets([scenarios.folder() / "bandwidth.yaml"])
    for gpu, limits in (("H200", 3), ("A100", 2)):
        options = checking.Options(gpu=gpu)
        checked = app.check(budgets, runners.in_process, lambda _: None, options)
        assert len(checked.held) == 2 * limits


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def here(monkeypatch):
    """Count in this process, which has torch already."""

    @contextmanager
    def counted(*_):
        yield runners.in_process

    monkeypatch.setattr(ahead, "Ahead", counted)


def test_a_run_shows_each_and_says_what_it_skips(kernelcount, here):
    code, out, _ = kernelcount("scenarios", "run", "bandwidth", "vector_add", "--device", "paper")
    assert code == 3
    assert out.startswith("bandwidth   4 kept, 2 skipped\n  A simple kernel takes as long")
    assert "\nvector_add   4 kept, 3 skipped\n" in out
    assert "vector_add_cuda.py:vector_add: needs a GPU" in out
    total, why = out.splitlines()[-2:]
    assert total.startswith("2 scenarios · 8 kept, 5 skipped · on paper for an H200")
    assert why == "5 skipped: exit code 3; --allow-undecided makes it 0"


def test_what_cannot_be_decided_may_be_allowed(kernelcount, here):
    code, out, _ = kernelcount(
        "scenarios", "run", "profiler_rows", "--device", "paper", "--allow-undecided", "--format",
        "json", "--full",
    )  # fmt: skip
    document = json.loads(out)
    assert (code, document["command"], document["broken"]) == (0, "scenarios", 0)
    assert [s["name"] for s in document["scenarios"]] == ["profiler_rows"]
    assert [e["limit"] for e in document["budgets"]] == ["kernels", "copies", "fills"]


def test_what_readme_shows_is_what_is_printed(kernelcount, here):
    run = ("scenarios", "run", "pointwise_chain", "pinned_copy", "--device", "paper")
    _, out, _ = kernelcount(*run)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = next(b for b in readme.split("```") if b.startswith("\npointwise_chain   "))
    assert re.sub(r"torch \S+", "", out) == re.sub(r"torch \S+", "", shown.lstrip("\n"))


def test_what_was_held_is_written_as_markdown_and_csv(kernelcount, here):
    run = ("scenarios", "run", "bandwidth", "--device", "paper", "--format")
    code, text, _ = kernelcount(*run, "markdown")
    assert code == 3
    assert text.startswith(
        "| scenario | limits | claim |\n| --- | --- | --- |\n| bandwidth | 4 kept, 2 skipped | A"
    )
    assert "| undecided | scaled | eager | kernel time needs a GPU |" in text
    code, text, _ = kernelcount(*run, "csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert code == 3
    assert [(r["limit"], r["status"]) for r in rows] == [
        ("kernels", "kept"), ("transfers", "kept"), ("kernel_time", "undecided"),
    ] * 2  # fmt: skip


@pytest.fixture
def alone(here, monkeypatch, tmp_path):
    """A folder that holds all scenarios that there are."""
    monkeypatch.setattr(scenarios, "folder", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_broken_budget_is_shown_with_its_place_and_fails(kernelcount, alone):
    (alone / "one.py").write_text('"""One kernel.\n\nNot so."""\ndef f(x): return x * 2 + 1\n')
    (alone / "one.yaml").write_text("target: one.py:f\nbudget: {eager: {kernels: 1}}\n")
    code, out, _ = kernelcount("scenarios", "run", "--all", "--device", "paper")
    assert code == 1
    assert "one   0 kept, 1 broken\n" in out
    assert "    broken   eager: kernels 2, allowed 1" in out
    assert "one.yaml:2" in out.replace("\n             ", "")


def test_what_is_the_users_fault_failed_and_costs_one_variant_alone(kernelcount, alone):
    (alone / "one.py").write_text(
        '"""One kernel.\n\nOr so."""\ndef f(x): return x * 2\ndef g(x): raise ValueError("no")\n'
    )
    (alone / "one.yaml").write_text(
        "- target: one.py:f\n"
        "  budget: {eager: {kernels: 1}, elsewhere.py:f: {kernels: 1}, compile: {kernels: 1}}\n"
        "- target: one.py:g\n"
        "  budget: {eager: {kernels: 1}}\n"
    )
    code, out, err = kernelcount("scenarios", "run", "--all", "--device", "paper")
    assert code == 2
    assert out.startswith("one   2 kept, 2 failed\n")
    said = " ".join(out.split())
    assert "failed kernels of elsewhere.py:f: there is no file" in said
    assert "failed kernels of eager: raised ValueError: no" in said
    assert out.endswith("2 failed: exit code 2; a function or a budget is at fault\n")
    assert "elsewhere.py:f: there is no file" in err
    assert 'one.py", line 5, in g\n' in err


@pytest.mark.parametrize("command", [("scenarios", "run", "one"), ("check", "one.yaml")])
def test_a_variant_that_raises_fails_whatever_may_be_undecided(kernelcount, alone, command):
    (alone / "one.py").write_text('"""One."""\ndef f(a): return a * 2\ndef g(a): return bb\n')
    (alone / "one.yaml").write_text(
        "target: one.py:f\nbudget: {eager: {kernels: 1}, one.py:g: {kernels: 1}}\n"
    )
    code, out, err = kernelcount(*command, "--device", "paper", "--allow-undecided")
    assert code == 3
    assert "raised NameError: name 'bb' is not defined" in " ".join(out.split())
    assert 'one.py", line 3, in g\n' in err
    if command[0] == "scenarios":
        assert out.startswith("one   1 kept, 1 failed\n")
        assert out.endswith("1 failed: exit code 3; a function or a budget is at fault\n")


def test_a_budget_that_cannot_be_read_fails_and_costs_no_other(kernelcount, alone):
    budgets = {
        "bad": "target: bad.py:f\nbudget: {eager: {kernel: 1}}\n",
        "empty": "",
        "good": "target: good.py:f\nbudget: {eager: {kernels: 1}}\n",
        "worse": "target: worse.py:f\ninput: f99[N]\nbudget: {eager: {kernels: 1}}\n",
    }
    for name, text in budgets.items():
        (alone / f"{name}.py").write_text(f'"""{name}."""\ndef f(a): return a * 2\n')
        (alone / f"{name}.yaml").write_text(text)
    code, out, err = kernelcount("scenarios", "run", "--all", "--device", "paper")
    assert code == 2
    heads = [line for line in out.splitlines() if line[:1] not in (" ", "")]
    assert heads[:4] == [
        "bad   0 kept, 1 failed", "empty   0 kept, 1 failed", "good   1 kept",
        "worse   0 kept, 1 failed",
    ]  # fmt: skip
    assert heads[4].startswith("4 scenarios · 1 kept, 3 failed · on paper")
    assert "failed   budget: there is no limit kernel; did you mean kernels?" in out
    assert "bad.yaml:2:18: there is no limit kernel" in err
    run = ("scenarios", "run", "--all", "--device", "paper", "--format", "json")
    code, out, _ = kernelcount(*run)
    document = json.loads(out)
    assert (code, document["failed"], len(document["errors"])) == (2, 3, 3)
    listed = "".join(kernelcount("scenarios")[1].split())
    assert "empty.yaml:1:1:thefileisempty:nobudgetisinit" in listed


def test_a_module_that_imports_triton_is_skipped_where_there_is_none(kernelcount, alone):
    if importlib.util.find_spec("triton"):
        pytest.skip("Triton is installed")
    (alone / "one.py").write_text('"""One."""\ndef f(a): return a * 2\n')
    (alone / "tri.py").write_text('"""T."""\nimport triton.language as tl\ndef f(a): return a\n')
    (alone / "one.yaml").write_text(
        "- target: one.py:f\n  budget: {eager: {kernels: 1}, tri.py:f: {kernels: 1}}\n"
        "- target: tri.py:f\n  budget: {eager: {kernels: 1}}\n"
    )
    code, out, _ = kernelcount("scenarios", "run", "--all", "--device", "paper")
    assert (code, out.splitlines()[0]) == (3, "one   1 kept, 2 skipped")
    said = " ".join(out.split())
    assert "kernels of tri.py:f and eager: tri.py imports triton" in said


def test_a_module_that_raises_is_told_by_its_last_line(kernelcount, alone):
    (alone / "one.py").write_text('"""One.\n\nTwo."""\ndef f(a:\n')
    (alone / "one.yaml").write_text("target: one.py:f\nbudget: {eager: {kernels: 1}}\n")
    code, out, err = kernelcount("scenarios", "run", "one", "--device", "paper")
    assert code == 2
    assert "kernels of eager: raised SyntaxError: '(' was never closed" in " ".join(out.split())
    assert 'one.py", line 4\n' in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--device", "cpu", "--gpu", "A100"), "--gpu A100: this is the card that --device paper"),
        (("--seconds", "-1"), "--seconds -1: write a number of seconds, 0 for no times"),
    ],
)
def test_flags_that_are_not_what_they_must_be_are_refused_before_anything_is_shown(
    kernelcount, alone, flags, said
):
    (alone / "one.py").write_text('"""One."""\n')
    (alone / "one.yaml").write_text("target: one.py:f\nbudget: {eager: {kernel: 1}}\n")
    code, out, err = kernelcount("scenarios", "run", "--all", *flags)
    assert (code, out) == (2, "")
    assert said in err


def test_all_and_names_exclude_each_other(kernelcount):
    assert kernelcount("scenarios", "run", "add", "--all")[0] == 2
    assert kernelcount("scenarios", "run")[0] == 2


@pytest.mark.parametrize(
    ("statuses", "allowed", "told"),
    [
        (("kept", "undecided"), False, True),
        (("kept", "undecided"), True, False),
        (("broken", "undecided"), False, False),
        (("kept",), False, False),
    ],
)
def test_why_a_run_with_nothing_broken_fails_is_said(statuses, allowed, told):
    from kernelcount.render.scenarios import foot

    held = tuple(Held("x.yaml", 1, "x.py:f", "eager", "syncs", status) for status in statuses)
    checked = Checked(held, 1, allow_undecided=allowed)
    said = foot(1, checked).splitlines()[1:]
    assert said == (["1 skipped: exit code 3; --allow-undecided makes it 0"] if told else [])


def test_what_failed_is_said_also_where_what_is_broken_outranks_it():
    from kernelcount.render.scenarios import foot

    broken = Held("x.yaml", 1, "x.py:f", "eager", "kernels", "broken", 2)
    failed = Held("x.yaml", 1, "x.py:g", "eager", "kernels", "undecided", why="raised E", code=2)
    checked = Checked((broken, failed, failed), 1)
    _, said = foot(1, checked).splitlines()
    assert said == "1 broken: exit code 1; 2 failed: a function or a budget is at fault"


def test_skipped_limits_are_grouped_by_reason():
    from kernelcount.render.scenarios import part

    scenario = scenarios.find()[0]
    held = [
        Held("x.yaml", 1, "x.py:f", variant, limit, "undecided", why="needs a GPU")
        for limit in ("syncs", "call_time")
        for variant in ("eager", "compile")
    ]
    text = part(scenario, Checked(tuple(held), 1), full=False)
    assert "skipped  syncs of eager and compile; call time of eager and compile: needs" in text
