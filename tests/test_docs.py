"""The documents say what the program does."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kernelcount import model

ROOT = Path(__file__).parent.parent
_MAKERS = {"Note": 0, "Fault": 0, "_fatal": 0}


def _codes() -> set[str]:
    """Every code that the package gives to a note."""
    codes: set[str] = set()
    for path in (ROOT / "kernelcount").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                first = node.args[0]
                if name in _MAKERS and isinstance(first, ast.Constant):
                    codes.add(first.value)
                if name in _MAKERS and isinstance(first, ast.Name):
                    codes.add(getattr(model, first.id, ""))
    return codes - {""}


def test_every_note_is_explained_and_nothing_else():
    table = (ROOT / "docs" / "notes.md").read_text()
    first_cells = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    explained = {code for cell in first_cells for code in re.findall(r"`([a-z0-9-]+)`", cell)}
    assert explained == _codes()
    assert len(explained) > 20


def test_the_readme_names_both_commands_with_their_torch():
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^pip install torch==2\.13\.0 .*$", readme, re.MULTILINE)
    assert len(commands) == 2
    assert commands[0].endswith("kernelcount run scenarios/add_relu.py:add_relu --size 1e8")
    assert commands[1].endswith(" -e '.[test]' && python -m pytest -n auto")


def _anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_every_link_leads_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        there = path.parent / name if name else path
        assert there.exists(), link
        assert not anchor or anchor in _anchors(there.read_text()), link


def test_every_class_of_shape_stands_in_the_document():
    from kernelcount.paper import classes

    text = (ROOT / "docs" / "atlas.md").read_text()
    rows = dict(re.findall(r"^\| (`.+?`) \| (.+?) \|", text, re.MULTILINE))
    expected: dict[str, list[str]] = {}
    for klass in classes.CLASSES:
        expected.setdefault(f"`{klass.op}`", []).append(klass.name)
    assert rows == {op: "; ".join(names) for op, names in expected.items()}


def test_every_remedy_stands_in_the_document_in_the_order_in_which_it_is_tried():
    from kernelcount.remedies import REMEDIES

    text = (ROOT / "docs" / "remedies.md").read_text()
    rows = re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)
    assert rows == list(REMEDIES)


def test_every_limit_of_a_budget_stands_in_the_document():
    from kernelcount.rules import RULES

    text = (ROOT / "docs" / "budgets.md").read_text()
    limits = text.partition("## Limits")[2].partition("## ")[0]
    cells = re.findall(r"^\| (`.+?`) \|", limits, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(.+?)`", cell)] == list(RULES)


def test_the_budgets_and_the_lock_file_that_are_shown_are_read(tmp_path, monkeypatch):
    from kernelcount.budgets import files as budgets
    from kernelcount.budgets import lockfile

    monkeypatch.chdir(tmp_path)
    for name in ("add_relu", "norm", "scale"):
        Path(f"{name}.py").touch()
    text = "".join((ROOT / name).read_text() for name in ("docs/budgets.md", "README.md"))
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if block.startswith("target:")]
    for block in shown:
        Path(block.split()[1].partition(":")[0]).touch()
        Path("b.yaml").write_text(block)
        (budget,) = budgets.read(Path("b.yaml"))
        assert budget.limits
        assert not budget.empty
    Path("kernelcount.lock").write_text(next(b for b in blocks if b.startswith("- target:")))
    (entry,) = lockfile.read(Path("kernelcount.lock"))
    assert len(shown) > 1
    assert entry.kernels == (("triton_poi_fused_add_relu_0", 1),)


def _steps(workflow: str, job: str) -> dict[str, dict]:
    text = (ROOT / "docs" / "examples" / workflow).read_text()
    steps = yaml.safe_load(text)["jobs"][job]["steps"]
    return {step.get("name", step.get("uses")): step for step in steps}


@pytest.mark.parametrize(
    ("code", "written", "commented"), [(0, 1, 1), (3, 1, 1), (1, 1, 1), (2, 0, 0)]
)
def test_a_pull_request_is_told_what_changed_also_where_diff_fails(
    tmp_path, code, written, commented
):
    tools = {
        "kernelcount": f'[ {written} = 0 ] || echo said > "${{@: -1}}"; exit {code}',
        "gh": "touch commented",
    }
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    script = _steps("kernels-on-paper.yml", "against-base")["Say on the pull request what changed"]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "RUNNER_TEMP": str(tmp_path), "NUMBER": "1"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script["run"]]  # as GitHub's
    done = subprocess.run(shell, cwd=tmp_path, env=environment, check=False)
    assert (tmp_path / "commented").exists() == bool(commented)
    assert (done.returncode == 0) == bool(commented)


def test_what_main_has_is_kept_also_where_a_budget_is_broken():
    steps = _steps("kernels-on-gpu.yml", "budgets")
    for name in ("Keep what main has now", "actions/cache/save@v4"):
        assert steps[name]["if"].startswith("always() && ")
