"""The examples of docs/ci.md: every line of them that can run without the service is run here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from render.diffs import STEADY
from render.samples import capture

from kernelcount import runners
from kernelcount.model import Timing
from kernelcount.traces import saved

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yml"))
ACTIONS = {
    "actions/checkout@v4", "actions/setup-python@v5", "actions/cache/restore@v4",
    "actions/cache/save@v4", "actions/upload-artifact@v4",
}  # fmt: skip


def workflow(name):
    return yaml.safe_load((ROOT / "docs" / "examples" / f"{name}.yml").read_text())


def steps(example):
    return [(job, step) for job in example["jobs"].values() for step in job["steps"]]


def lines(step):
    """The commands of ours, without what the shell is to do where one fails."""
    written = step.get("run", "").splitlines()
    return [line.partition(" || ")[0] for line in written if line.startswith("kernelcount ")]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder as the runner has it: the scenario and its budget, also as `base` and as `head`."""
    for folder in (tmp_path, tmp_path / "base", tmp_path / "head"):
        (folder / "scenarios").mkdir(parents=True)
        for name in ("add_relu.py", "add_relu.yaml"):
            shutil.copy(ROOT / "scenarios" / name, folder / "scenarios")
    for name in ("RUNNER_TEMP", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "RUNNER_TEMP").mkdir()
    # In this process, which has torch already, and one after the other.
    monkeypatch.setattr("kernelcount.ahead.Ahead", lambda *_: nullcontext(runners.in_process))
    return tmp_path


@pytest.fixture
def runs(kernelcount, checkout, monkeypatch):
    """Run the lines of a step: what each gave."""

    def run(job, step):
        for name, value in {**job.get("env", {}), **step.get("env", {})}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(checkout / step.get("working-directory", "."))
        return [kernelcount(*shlex.split(os.path.expandvars(x))[1:]) for x in lines(step)]

    return run


@pytest.mark.filterwarnings("ignore")  # torch's own, of what it imports
def test_every_line_of_the_example_on_paper_runs_and_all_is_kept(runs, checkout):
    given = [out for job, step in steps(workflow("kernels-on-paper")) for out in runs(job, step)]
    assert [code for code, *_ in given] == [0] * 6
    check, summary, *_ = (out for _, out, _ in given)
    assert check.splitlines()[-1].split(",")[1] == " 0 broken"
    assert summary == ""
    assert (checkout / "GITHUB_STEP_SUMMARY").read_text().startswith("**2 budgets")
    assert (checkout / "RUNNER_TEMP" / "diff.md").read_text().startswith("**")


@pytest.mark.filterwarnings("ignore")
def test_every_line_of_the_example_on_a_gpu_runs_as_far_as_there_is_none(runs, checkout):
    timed = capture("eager", ("k", "kernel", None, 9), timing=Timing(STEADY), peak_memory=100)
    codes = {}
    for job, step in steps(workflow("kernels-on-gpu")):
        if "doctor" in step.get("run", ""):  # takes long, and is tested elsewhere
            continue
        if "diff" in step.get("run", ""):
            for name in ("base.json", "head.json"):
                (checkout / name).write_bytes(saved.dump([timed]))
        codes |= {lines(step)[0].split()[1]: given[0] for given in runs(job, step)}
    assert codes.pop("check") in (0, 3)  # what needs a GPU is undecided
    assert codes == {"run": 0, "diff": 0}
    assert ET.parse(checkout / "kernels.xml").getroot().tag == "testsuites"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_an_example_names_nothing_that_is_not_there(path):
    text = path.read_text()
    example = yaml.safe_load(text)
    assert {step["uses"] for _, step in steps(example) if "uses" in step} <= ACTIONS
    named = set(re.findall(r"scenarios/[\w./:]*", text))
    assert all((ROOT / name.partition(":")[0]).exists() for name in named)
    extras = (ROOT / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in extras for extra in re.findall(r"\.\[(\w+)\]", text))
    assert path.name in (ROOT / "docs" / "ci.md").read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_no_text_of_a_pull_request_gets_into_a_shell(path):
    for _, step in steps(yaml.safe_load(path.read_text())):
        assert "${{" not in step.get("run", "")


_COMMAND = r"(?:^|[ `=])kernelcount ((?:run|read|diff|check|doctor)\b[^`\n]*)"


def _said():
    """Every command line in the docs that names its arguments."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.*"))]:
        for line in re.findall(_COMMAND, path.read_text()):
            yield path.name, line


def test_every_flag_that_the_docs_use_is_one_of_its_command():
    import typer

    from kernelcount.cli import app

    commands = typer.main.get_command(app).commands
    said = set(_said())
    assert len(said) > 20
    for name, line in said:
        (command, *_) = line.split()
        known = {f for p in commands[command].params for f in p.opts}
        flags = re.findall(r"(?<![\w-])--[a-z][a-z-]*", line.split(" #")[0])
        assert set(flags) <= known | {"--help"}, (name, line)
