"""Budgets: what may stand in one, and what is said of what may not."""

import pytest

from kernelcount.budgets import files as budgets
from kernelcount.errors import UsageError
from kernelcount.model import Bounds, Environment

HEAD = "target: t.py:f\n"


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read the one budget of a text, which stands in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text("def f(x): return x\n")

    def written(text):
        (tmp_path / "b.yaml").write_text(text)
        return budgets.read((tmp_path / "b.yaml").relative_to(tmp_path))

    return written


def error_of(read, text):
    with pytest.raises(UsageError) as raised:
        read(text)
    return str(raised.value)


def test_a_budget_says_what_is_run_and_what_it_may_cost(read):
    (budget,) = read(
        HEAD
        + "size: 1e6\ndtype: bf16\nbackward: true\nbudget:\n"
        + "  eager: {kernels: 2, transfers: 5}\n  compile: {kernels: {max: 1}}\n"
    )
    job = budget.job
    assert (job.spec, job.sizes, job.dtype, job.backward) == ("t.py:f", (1_000_000,), "bf16", True)
    assert job.variants == budget.variants == ("eager", "compile")
    limits = [(x.variant, x.name, x.bounds, x.place.line, x.place.column) for x in budget.limits]
    assert limits == [
        ("eager", "kernels", Bounds(2, 2), 6, 11),
        ("eager", "transfers", Bounds(5, 5), 6, 23),
        ("compile", "kernels", Bounds(None, 1), 7, 13),
    ]


def test_several_budgets_are_a_list_or_several_documents(read):
    one = "target: t.py:f\n  budget: {eager: {kernels: 1}}\n"
    assert len(read(f"- {one}- {one}")) == 2
    two = HEAD + "budget: {eager: {kernels: 1}}\n"
    assert len(read(f"{two}---\n{two}")) == 2


def test_files_are_relative_to_the_budget(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "deep"
    folder.mkdir()
    for name in ("t.py", "o.py"):
        (folder / name).write_text("def f(x): return x\n")
    text = HEAD + "inputs: o.py:make\nbudget: {eager: {kernels: 1}, o.py:f: {kernels: 1}}"
    (folder / "b.yaml").write_text(text)
    (budget,) = budgets.load([folder.relative_to(tmp_path)])
    assert budget.job.spec == "deep/t.py:f"
    assert budget.job.maker == "deep/o.py:make"
    assert budget.job.variants == ("eager", "deep/o.py:f")
    assert budget.variants == ("eager", "o.py:f")
    assert (budget.target, budget.place.file) == ("t.py:f", "deep/b.yaml")


def test_what_a_limit_compares_with_is_run_too_and_eager_first(read):
    (budget,) = read(HEAD + "budget: {compile: {speedup: {min: 1.3, over: t.py:g}}}")
    assert budget.variants == ("compile", "t.py:g")
    (budget,) = read(HEAD + "budget: {compile: {speedup: {min: 1.3}, max_error: {max: 1e-5}}}")
    assert budget.variants == ("eager", "compile")
    assert [x.bounds for x in budget.limits] == [Bounds(1.3, None, "eager"), Bounds(None, 1e-5)]


@pytest.mark.parametrize(
    ("limit", "bounds"),
    [
        ("bytes: 12 MB", Bounds(12e6, 12e6)),
        ("bytes: {max: 1.5MiB}", Bounds(None, 1572864)),
        ("peak_memory: {max: 1_000}", Bounds(None, 1000)),
        ("call_time: {max: 50 us}", Bounds(None, 50_000)),
        ("call_time: {max: 50µs}", Bounds(None, 50_000)),
        ("kernel_time: {min: 1.5ms, max: 2s}", Bounds(1.5e6, 2e9)),
        ("call_time: {max: 31200}", Bounds(None, 31200)),
        ("kernels: {min: 1, max: 1e3}", Bounds(1, 1000)),
        ("transfers: 5.33", Bounds(5.33, 5.33)),
    ],
)
def test_numbers_may_have_units(read, limit, bounds):
    (budget,) = read(f"{HEAD}budget: {{compile: {{{limit}}}}}")
    assert budget.limits[0].bounds == bounds


def test_what_holds_elsewhere_replaces_what_it_names_and_a_card_outranks_a_basis(read):
    (budget,) = read(
        HEAD + "budget: {eager: {kernels: 2, copies: 0}}\n"
        "on:\n  h100: {eager: {kernels: 4}}\n  paper: {eager: {kernels: 3}, compile: {fills: 0}}\n"
    )

    def on(device, kind, basis):
        held = budget.limits_on(Environment(device, kind), basis)
        return {(x.variant, x.name): x.bounds.exact for x in held}

    eager, copies = ("eager", "kernels"), ("eager", "copies")
    assert on("NVIDIA A100", "cuda", "measured") == {eager: 2, copies: 0}
    paper = {copies: 0, ("compile", "fills"): 0}
    assert on("NVIDIA A100", "paper", "paper") == {eager: 3, **paper}
    assert on("NVIDIA H100", "paper", "paper") == {eager: 4, **paper}
    assert budget.variants == ("eager", "compile")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("budget: {}\n", [("", 2)]),
        ("budget:\n", [("", 2)]),
        ("", [("", 1)]),
        ("budget:\n  eager: {}\n  compile: {kernels: 1}\n", [("eager", 3)]),
        ("budget:\n  eager:\n", [("eager", 3)]),
    ],
)
def test_where_there_is_no_limit_it_is_noted(read, text, where):
    (budget,) = read(HEAD + text)
    assert [(variant, place.line) for variant, place in budget.empty] == where


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "b.yaml:1:1: the file is empty: no budget is in it"),
        ("42", "b.yaml:1:1: a budget must be keys with values, and this is '42'"),
        ("budget: {eager: {kernels: 1}}", "b.yaml:1:1: there is no target: write target: FILE.py"),
        (HEAD + "budgte: 1", "b.yaml:2:1: there is no key budgte; did you mean budget?"),
        ("target: u.py:f", "b.yaml:1:9: there is no file u.py: did you mean t.py?"),
        ("target: t.py", "b.yaml:1:9: t.py does not say which function: write t.py:f"),
        (HEAD + "size: 1.5", "b.yaml:2:7: '1.5' is not a whole number"),
        (HEAD + "size: [1, 2]", "b.yaml:2:7: several sizes: write a budget for each"),
        (HEAD + "dtype: flot32", "b.yaml:2:8: there is no dtype flot32; "),
        (HEAD + "device: cda", "b.yaml:2:9: device 'cda' is not one of cuda, xpu, cpu, paper"),
        (HEAD + "gpu: H20", "did you mean H200?"),
        (HEAD + "seed: one", "b.yaml:2:7: seed must be a whole number, and this is 'one'"),
        (HEAD + "backward: 1", "b.yaml:2:11: backward is true or false, and not '1'"),
        (HEAD + "input: 'f32[N'", "b.yaml:2:8: input f32[N: the ] is missing"),
        (HEAD + "input: 3\ninputs: make", "b.yaml:3:1: input and inputs exclude each other"),
        (HEAD + "variants: [eager, eagr]", "b.yaml:2:19: variant 'eagr' is not eager, compile"),
        (HEAD + "variants: [eager, eager]", "b.yaml:2:19: eager stands twice"),
        (HEAD + "on: {papr: {}}", "b.yaml:2:6: there is no basis or card papr; did you mean pape"),
        (HEAD + "budget: []", "b.yaml:2:9: budget must be keys with values, and this is a list"),
        (HEAD + "budget: {kernels: 1}", "2:10: kernels is a limit: it belongs under a variant"),
        (HEAD + "budget: {eagr: {kernels: 1}}", "2:10: variant 'eagr' is not eager, compile"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_the_nearest_word(read, text, error):
    assert error in error_of(read, text)


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        ("kernals: 1", "2:20: there is no limit kernals; did you mean kernels?"),
        ("kernels: two", "2:29: kernels must be a number, such as 2; this is 'two'"),
        ("kernels: '2'", "kernels must be a number, such as 2; this is '2'"),
        ("kernels: -1", "kernels must be a number, such as 2; this is '-1'"),
        ("kernels: true", "this is 'true'"),
        ("kernels: .nan", "this is '.nan'"),
        ("kernels: 1.5", "kernels is a whole number, and not 1.5"),
        ("kernels: 1e999", "kernels is too large a number: 1e999"),
        ("kernels:", "kernels must be a number, such as 2; this is empty"),
        ("kernels: [1]", "kernels is a number, or {min: …, max: …}, and not a list"),
        ("kernels: {}", "kernels has no limit: write kernels: {max: …} or {min: …}"),
        ("kernels: {mx: 1}", "2:30: there is no bound mx; did you mean max?"),
        ("kernels: {min: 3, max: 1}", "no kernels is at least 3 and at most 1"),
        ("kernels: {max: 1, over: eager}", "there is no bound over; there are min, max"),
        ("speedup: 1.3", "speedup varies from run to run: write speedup: {min: 1.3} or {max: 1."),
        ("call_time: 50us", "call_time varies from run to run"),
        ("kernel_time: 50us", "kernel_time varies from run to run"),
        ("max_error: 0.1", "max_error varies from run to run"),
        ("call_time: {max: 5 hours}", "call_time: max must be a number, such as 50us"),
        ("speedup: {min: 1.3, over: compile}", "compile is compared with itself"),
        ("speedup: {over: eager}", "speedup has no limit"),
    ],
)
def test_a_limit_is_a_number_or_its_bounds(read, limit, error):
    assert error in error_of(read, f"{HEAD}budget: {{compile: {{{limit}}}}}")


def test_all_that_is_wrong_in_several_files_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("target: 1\n")
    (tmp_path / "b.yaml").write_text("budget: {eager: {kernels: 1}}\n")
    with pytest.raises(UsageError) as raised:
        budgets.load(())
    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == [
        "a.yaml",
        "b.yaml",
    ]


def test_budgets_are_looked_for_under_scenarios_and_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "target: math:sqrt\nbudget: {eager: {kernels: 1}}\n"
    for name in ("scenarios/deep/a.yaml", "b.yml", "other/c.yaml", "scenarios/.hidden/d.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "workflow.yaml").write_text("jobs: [{name: another program's}]\n")
    (tmp_path / "template.yaml").write_text("{% if %}: not YAML\n")
    found = [budget.place.file for budget in budgets.load(())]
    assert found == ["scenarios/deep/a.yaml", "b.yml"]


def test_where_there_is_no_budget_or_no_file_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no budget in scenarios/ and the current folder"):
        budgets.load(())
    (tmp_path / "fast.yaml").touch()
    from pathlib import Path

    with pytest.raises(UsageError, match=r"no file or folder fats.yaml; did you mean fast.yaml\?"):
        budgets.load([Path("fats.yaml")])
    with pytest.raises(UsageError, match=r"fast.yaml:1:1: the file is empty"):
        budgets.load([Path("fast.yaml")])


def test_a_budget_that_is_no_yaml_is_not_taken_for_another_programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("target: a.py:f\nbudget: {eager: {kernels: 1}\n")
    with pytest.raises(UsageError, match=r"a.yaml:3:1: while parsing a flow mapping"):
        budgets.load(())
