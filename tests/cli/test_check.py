"""``kernelcount check`` as a person or a program sees it, in this process and on the CPU."""

import json
from pathlib import Path

import pytest

from kernelcount import runners, warm
from kernelcount.model import Capture, Environment


@pytest.fixture
def check(kernelcount, monkeypatch, tmp_path, target):
    """Check the budgets of a text, in a folder of its own."""
    monkeypatch.setattr(warm, "in_fork", lambda job, progress, companion=None, *, background=None:
                        runners.in_process(job, progress, companion))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    target("def f(x): return (x + 1).relu()\ndef bad(x): raise ValueError('mine')")

    def run(text, *arguments):
        head = "" if text.startswith("-") else "target: users.py:f\nsize: 8\ndevice: cpu\n"
        Path("b.yaml").write_text(head + text)
        return kernelcount("check", *arguments)

    return run


def test_what_is_kept_exits_0_and_is_one_line(check):
    code, out, _ = check("budget: {eager: {generated: 0}}")
    assert code == 0
    head, blank, total = out.splitlines()
    assert head.startswith("1 budget, 1 limit · ")
    assert (blank, total) == ("", "1 kept, 0 broken")


def test_what_is_broken_exits_1_and_says_where(check):
    code, out, _ = check("budget:\n  eager: {generated: 1}")
    assert code == 1
    row = "  broken     f   eager   generated 0, allowed 1"
    assert out.splitlines()[2] == f"{row}{'b.yaml:5':>{80 - len(row)}}"
    assert out.endswith("\n\n0 kept, 1 broken\n")


def test_what_is_undecided_exits_3_unless_that_is_allowed(check):
    text = "budget: {eager: {kernels: 2}}"
    code, out, _ = check(text)
    assert code == 3
    assert "  undecided  f   eager   kernels: no GPU was involved" in out
    assert check(text, "--allow-undecided")[0] == 0


def test_the_document_stands_alone_on_stdout_and_broken_outranks_undecided(check):
    text = "budget: {eager: {generated: 1, kernels: 2}}"
    code, out, _ = check(text, "--format", "json")
    document = json.loads(out)
    assert code == 1
    assert (document["command"], document["environment"]["kind"]) == ("check", "cpu")
    statuses = [(e["file"], e["line"], e["limit"], e["status"]) for e in document["budgets"]]
    assert statuses == [
        ("b.yaml", 4, "generated", "broken"),
        ("b.yaml", 4, "kernels", "undecided"),
    ]


def test_a_function_that_raises_exits_2_with_the_users_frames(check):
    text = "- {target: 'users.py:bad', size: 8, device: cpu, budget: {eager: {generated: 0}}}\n"
    code, out, err = check(text + text.replace("bad", "f"), "--format", "json")
    document = json.loads(out)
    assert code == document["error"]["code"] == 2
    assert [e["status"] for e in document["budgets"]] == ["undecided", "kept"]
    assert "users.py:bad: eager: raised ValueError: mine" in err
    assert 'users.py", line 3, in bad' in err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("budget: {eager: {kernals: 1}}", "b.yaml:4:18: there is no limit kernals; did you mean k"),
        ("budget: {eager: {speedup: 1.3}}", "speedup varies from run to run: write speedup: {min"),
    ],
)
def test_a_budget_that_is_none_exits_2_and_counts_nothing(check, text, error):
    code, out, err = check(text)
    assert (code, out) == (2, "")
    assert error in err
    document = json.loads(check(text, "--format", "json")[1])
    assert document["error"]["code"] == 2
    assert document["command"] == "check"


def test_flags_that_are_not_what_they_must_be_exit_2(check):
    text = "budget: {eager: {generated: 0}}"
    for flags, error in (
        (("--format", "jsn"), "; did you mean json?"),
        (("--device", "cda"), "--device 'cda' is not one of"),
        (("--gpu", "H20"), "--gpu 'H20' is not one of"),
        (("--device", "cpu", "--gpu", "A100"), "--gpu A100: this is the card that --device paper"),
        (("--seconds", "-1"), "--seconds -1: write a number of seconds, 0 for no times"),
        (("--timeout", "-1"), "--timeout -1: write a number of seconds above 0"),
        (("--output", "none/x"), "--output none/x: there is no folder none"),
        (("b.yml",), "there is no file or folder b.yml; did you mean b.yaml?"),
    ):
        code, out, err = check(text, *flags)
        assert (code, out) == (2, "")
        assert error in err


def test_the_result_is_written_to_a_file(check):
    code, out, _ = check("budget: {eager: {generated: 0}}", "--output", "r.txt", "--full", "b.yaml")
    assert (code, out) == (0, "")
    assert "  kept       f   eager   generated 0, allowed 0" in Path("r.txt").read_text()


def test_results_are_shown_as_they_come(check, monkeypatch):
    from kernelcount.cli import output

    written = []
    monkeypatch.setattr(output, "write", written.append)
    one = "- {target: 'users.py:f', size: 8, device: cpu, budget: {eager: {generated: 1}}}\n"
    check(one * 2)
    assert [text.count("broken ") for text in written] == [0, 1, 1, 0]


@pytest.fixture
def on_cards(monkeypatch):
    """Each job is counted on the card that it names."""

    def run(job, progress, companion=None, *, background=None):
        from render.samples import capture

        here = Environment(f"NVIDIA {job.gpu}", "cuda", "2.11.0")
        eager = capture("eager", ("add", "kernel", "add", 1), environment=here)
        return runners.Results(job, {0: eager}, {}, here)

    monkeypatch.setattr(warm, "in_fork", run)


def test_where_another_budget_is_checked_elsewhere_it_is_said(check, on_cards):
    one = "- {target: 'users.py:f', gpu: H100, budget: {eager: {kernels: 1}}}\n"
    _, out, _ = check(one * 2 + one.replace("H100", "A100"))
    assert out == (
        "3 budgets, 3 limits · NVIDIA H100 · torch 2.11.0\n\n"
        "NVIDIA A100 · torch 2.11.0\n3 kept, 0 broken\n"
    )


def test_what_is_counted_nowhere_stands_in_no_group_of_another_budget(check, on_cards):
    one = "- {target: 'users.py:f', gpu: H100, budget: {eager: {kernels: 1}}}\n"
    other, none = one.replace("H100", "A100"), "- {target: 'users.py:f', budget: {}}\n"
    _, out, _ = check(one + other + none + other)
    lines = [line for line in out.splitlines() if not line.startswith(" " * 4)]
    assert [line[:16] for line in lines[2:6]] == [
        "NVIDIA A100 · to",
        "counted nowhere",
        "  broken     f  ",
        "NVIDIA A100 · to",
    ]


def test_calls_are_timed_for_a_limit_on_a_time_and_not_otherwise(check):
    text = "budget: {eager: {call_time: {max: 10 s}, max_error: {max: 1}}}"
    code, out, _ = check(text, "--seconds", "0.05", "--format", "json")
    time, error = json.loads(out)["budgets"]
    assert (time["status"], time["unit"], code) == ("kept", "ns", 3)
    assert 0 < time["low"] <= time["actual"] <= time["high"] < 1e10
    assert error["why"] == "the results of the others are compared with this one's"


def test_what_was_launched_is_recorded_and_its_changes_are_named(check, monkeypatch):
    def found(name):
        from render.samples import capture

        here = Environment("NVIDIA H200", "cuda", "2.11.0", architecture="sm_90")

        def run(job, progress, companion=None, *, background=None):
            eager: Capture = capture("eager", (name, "kernel", name, 1), environment=here)
            return runners.Results(job, {0: eager}, {}, here)

        monkeypatch.setattr(warm, "in_fork", run)

    text = "budget: {eager: {kernels: 1}}"
    found("old")
    code, out, _ = check(text, "--update")
    assert code == 0
    assert out.endswith("written: kernelcount.lock: 1 of 1 entries are new or changed\n")
    assert check(text)[1].endswith("\n2 kept, 0 broken\n")
    found("new")
    code, out, _ = check(text)
    assert code == 1
    assert "lock: it launches other kernels than are recorded" in out
    assert "             new: new\n             gone: old\n" in out
