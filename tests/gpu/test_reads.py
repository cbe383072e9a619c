"""Whether ops that read values inside of themselves make the CPU wait as often as paper says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

PROGRAM = Path(__file__).parent / "reading.py"


def begun(device, **variables):
    """The program at work on a device."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), device],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **variables},
    )  # fmt: skip


def ended(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-4000:]
    return json.loads(out)


def as_paper_says(measured, paper):
    """Whether the number is that of paper, or at least that where paper has a lower bound."""
    if measured["waits"] is None or paper["waits"] is None:
        return False
    more = measured["waits"] - paper["waits"]
    return more >= 0 if paper["at_least"] else more == 0


def shown(name, measured, paper):
    """A line of the table: op, measured, paper, and what they are."""
    bound = "≥ " if paper["at_least"] else ""
    numbers = f"{measured['waits']!s:>8}  {bound + str(paper['waits']):>5}"
    kinds = "; ".join([*measured["kinds"], *filter(None, (measured["why"], paper["why"]))])
    verdict = "" if as_paper_says(measured, paper) else "  <-- not as paper says"
    return f"{name:44}  {numbers}  {kinds}{verdict}"


def test_each_op_waits_as_often_as_paper_says():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    running = begun("paper", CUDA_VISIBLE_DEVICES=""), begun("cuda")
    paper, measured = map(ended, running)
    assert list(measured) == list(paper)
    table = [shown(name, measured[name], paper[name]) for name in paper]
    print(f"{'op':44}  measured  paper  for what", *table, sep="\n")
    assert [line for line in table if line.endswith("<-- not as paper says")] == []
