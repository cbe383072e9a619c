"""``kernelcount run --plot``: where the plot goes, and what is refused before anything is run."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kernelcount import app, runners
from kernelcount.errors import UsageError
from kernelcount.model import Job
from kernelcount.render import plot
from tests.render import samples, sweeps, test_paper

TIMED = ("--variant", "eager", "--device", "cpu", "--size", "1e2,1e4", "--seconds", "0.05")


@pytest.fixture
def spec(target):
    return target("def f(x): return x + 1") + ":f"


@pytest.fixture
def nothing_runs(monkeypatch):
    def runner(*_):
        raise AssertionError("measured")

    monkeypatch.setattr(runners, "in_worker", runner)


def test_a_file_is_drawn_beside_the_table(kernelcount, spec, tmp_path):
    code, out, err = kernelcount("run", spec, *TIMED, "--plot", tmp_path / "sweep.SVG")
    assert code == 0, err
    assert "time per call" in out
    assert "┤" not in out
    shown = "".join(ElementTree.parse(tmp_path / "sweep.SVG").getroot().itertext())
    assert "eager" in shown
    assert [p.name for p in tmp_path.iterdir() if "sweep" in p.name] == ["sweep.SVG"]


def test_a_dash_draws_it_below_the_table_also_where_the_table_goes_to_a_file(
    kernelcount, spec, tmp_path
):
    code, out, err = kernelcount("run", spec, *TIMED, "--plot", "-")
    assert code == 0, err
    assert out.index("time per call") < out.index("┤")
    assert out.endswith("  o  eager\n")
    code, out, err = kernelcount(
        "run", spec, *TIMED, "--plot", "-", "--output", tmp_path / "table.txt"
    )
    assert code == 0, err
    assert out.startswith("f · ")
    assert "┤" not in (tmp_path / "table.txt").read_text()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--size", "8", "--plot", "-"), "give several, as --size 1e2,1e4,1e6 does"),
        (("--plot", "-"), "give several, as --size 1e2,1e4,1e6 does"),
        (("--size", "8,9", "--seconds", "0", "--plot", "-"), "--seconds 1 has calls timed"),
        (("--size", "8,9", "--device", "paper", "--plot", "-"), "on paper nothing takes time"),
        (("--size", "8,9", "--gpu", "H100", "--plot", "-"), "on paper nothing takes time"),
        (("--size", "8,9", "--plot", "a.pdf"), "name a file that ends in .svg or .png, or -"),
        (("--size", "8,9", "--plot", "svg"), "name a file that ends in .svg or .png, or -"),
        (("--size", "8,9", "--plot", "/nowhere/a.svg"), "there is no folder /nowhere"),
        (("--size", "8,9", "--plot", "-", "--format", "csv"), "stands below a table, and not in"),
        (("--size", "8,9", "--plot", "a.svg", "--save", "a.svg"), "name the same file, a.svg"),
    ],
)
def test_what_cannot_be_plotted_is_refused_before_anything_runs(
    kernelcount, spec, nothing_runs, flags, said
):
    code, out, err = kernelcount("run", spec, "--seconds", "1", *flags)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(("where", "library"), [("-", "plotille"), ("a.png", "matplotlib")])
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    kernelcount, spec, nothing_runs, monkeypatch, where, library
):
    monkeypatch.setattr(plot, "find_spec", lambda name: None if name == library else object())
    code, out, err = kernelcount("run", spec, *TIMED, "--plot", where)
    assert (code, out) == (2, "")
    assert err == f"kernelcount: --plot needs {library}: pip install 'kernelcount[plot]'"


def test_with_json_the_error_is_a_document(kernelcount, spec, nothing_runs):
    code, out, _ = kernelcount("run", spec, "--format", "json", "--plot", "a.svg")
    assert code == json.loads(out)["error"]["code"] == 2


def test_nothing_to_plot_after_all_is_said_and_no_success(tmp_path):
    file = tmp_path / "a.svg"
    paper = replace(samples.sweep(), runs=tuple(
        replace(run, outcomes=(test_paper.eager(), test_paper.compiled()))
        for run in samples.sweep().runs
    ))  # fmt: skip
    failed = sweeps.report(*(sweeps.unmeasured(n, reason="no GPU") for n in (1, 2)))
    for report, why in (
        (paper, "on paper nothing takes time"), (failed, "no variant was timed at two sizes")
    ):  # fmt: skip
        answer = app.draw(app.Answer(report), file)
        assert why in answer.unwritten[0]
        assert answer.exit_code == 2
    assert not file.exists()


def test_a_file_that_cannot_be_written_is_said_and_no_success(tmp_path):
    (tmp_path / "a.svg").mkdir()
    answer = app.draw(app.Answer(sweeps.crossed()), tmp_path / "a.svg")
    assert answer.unwritten == (f"--plot {tmp_path / 'a.svg'}: Is a directory",)
    assert answer.exit_code == 2


def test_no_plot_asks_for_nothing(monkeypatch):
    monkeypatch.setattr(plot, "find_spec", lambda _: None)
    app.check_plot(None, Job("f.py:f"), "table")
    with pytest.raises(UsageError, match="pip install"):
        app.check_plot("-", Job("f.py:f", sizes=(1, 2), seconds=1.0), "table")
