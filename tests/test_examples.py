"""The examples of README.md, docs/python.md and docs/pytest.md do what stands there."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from kernelcount import runners

ROOT = Path(__file__).parent.parent
BUDGET = "target: add_relu.py:add_relu\nbudget:\n  compile: {kernels: 1, transfers: {max: 3}}\n"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path):
    """The blocks of a document with their languages, in order."""
    return _BLOCK.findall((ROOT / path).read_text())


def here(text):
    """A text of the documents as it is under the torch installed."""
    import torch

    return text.replace("2.13.0", torch.__version__.partition("+")[0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the examples find in the current folder; and no GPU that paper might touch."""
    (tmp_path / "budgets").mkdir()
    shutil.copy(ROOT / "scenarios" / "add_relu.py", tmp_path / "budgets")
    (tmp_path / "budgets" / "add_relu.yaml").write_text(BUDGET)
    trace = ROOT / "tests" / "data" / "h200" / "h200-add_relu.compile.json.gz"
    shutil.copy(trace, tmp_path / "trace.json.gz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelcount.worker.device.may_have_a_gpu", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def here_and_now(*given, **_):
        return runners.in_process(*given)

    monkeypatch.setattr("kernelcount.warm.in_fork", here_and_now)  # no process to wait for


@pytest.mark.parametrize("path", ["docs/python.md", "README.md"])
def test_the_examples_of_python_run_and_print_what_stands_below_them(path, folder, capsys):
    namespace = {"__name__": "example"}
    found = blocks(path)
    ran = 0
    for (language, text), (below, output) in zip(found, [*found[1:], ("", "")], strict=True):
        if language != "python" or "def test_" in text:
            continue
        exec(compile(text, "example.py", "exec"), namespace)
        printed = capsys.readouterr().out
        assert printed == (here(output) if below == "text" else "")
        ran += 1
    assert ran


class Recorded:
    """What became of each test of a run."""

    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid.partition("::")[0], report.outcome] = report


def test_the_examples_of_tests_pass_and_a_wrong_count_fails_as_shown(folder, monkeypatch, capsys):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    found = [*blocks("docs/pytest.md"), *blocks("README.md")]
    texts = [text for language, text in found if language == "python" and "def test_" in text]
    texts.append(texts[0].replace(".kernels == 2", ".kernels == 1"))
    names = [*(f"test_example_{i}.py" for i in range(len(texts) - 1)), "test_model.py"]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(text)
    recorded = Recorded()
    # Not pytester: it would forget modules of torch that were loaded meanwhile.
    options = ("-p", "kernelcount.pytest_plugin", "-p", "no:cacheprovider", "--rootdir", ".")
    assert pytest.main([*options, "."], plugins=[recorded]) == pytest.ExitCode.TESTS_FAILED
    *right, wrong = names
    assert set(recorded.outcomes) == {*((name, "passed") for name in right), (wrong, "failed")}
    (shown,) = [text for language, text in found if language == "text" and text[0] == "E"]
    assert here(shown) in capsys.readouterr().out
