"""The table of formats, and what they have in common."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kernelcount.render
from kernelcount.errors import UsageError
from kernelcount.render import FORMATS, render

from . import samples

SHARED = {
    "__init__", "answer", "breaks", "counters", "explain", "figures", "fusion", "layout", "lines",
    "listing", "names", "origins", "paper", "remedies", "sheet", "sweep", "syncs", "verdict",
    "wording",
}  # fmt: skip
# Of other commands, notebooks, and pictures.
ELSEWHERE = {"check", "doctor", "findings", "github", "held", "html", "image", "junit", "plot",
             "scenarios"}  # fmt: skip


def test_every_file_of_the_folder_is_a_format_or_shared_by_them():
    files = {path.stem for path in Path(kernelcount.render.__file__).parent.glob("*.py")}
    assert files - SHARED - ELSEWHERE == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_every_report_and_ends_its_last_line(name):
    for sample in (samples.add_relu, samples.on_cpu, samples.sweep, samples.evil):
        text = render(sample(), format=name)
        text.encode()
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"json"}))
def test_no_format_for_people_lets_a_control_through(name):
    text = render(samples.evil(), format=name, full=name != "csv")
    assert [line for line in text.splitlines() if not line.isprintable()] == []


def test_a_format_that_there_is_not_is_answered_with_those_there_are():
    with pytest.raises(UsageError, match=r"'yaml'.*table, json, markdown, csv"):
        render(samples.add_relu(), format="yaml")


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"table"}))
def test_only_the_screen_needs_rich(name):
    program = (
        "import sys\n"
        "from kernelcount.model import Environment, Report\n"
        "from kernelcount.render import render\n"
        f"render(Report('run', Environment(), ()), format={name!r})\n"
        "assert not {'rich', 'torch', 'yaml'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
