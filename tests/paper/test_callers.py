"""A kernel, a graph break and a wait of one line of code, as one run tells of them."""

import sys

import pytest

LIBRARY = """
def norm(x):
    y = x * 2
    return y + x.sum().item()
"""
CALLS = """
import sys
sys.path.append({packages!r})
from a_library import norm


def target(x):
    return norm(x)


def make_target():
    import torch

    return (torch.ones(8, device="cuda"),)
"""


@pytest.mark.parametrize("below", ["site-packages", "mine"])
def test_a_kernel_a_wait_and_a_break_of_one_line_name_the_same(tmp_path, monkeypatch, count, below):
    packages = tmp_path / below
    packages.mkdir()
    (packages / "a_library.py").write_text(LIBRARY)
    (tmp_path / "calls.py").write_text(CALLS.format(packages=str(packages)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "a_library", raising=False)
    spec = f"{tmp_path}/calls.py:target"
    found = count(spec, "eager", "compile", device="paper", maker="make_target")
    eager, compiled = found["eager"], found["compile"]
    file = f"{below}/a_library.py"
    lines = {o.place.line for s in eager.provenance.sources if s for o in s.origins}
    assert lines == {3, 4}
    places = [o.place for c in (eager, compiled) for s in c.provenance.sources for o in s.origins]
    assert {(p.file, p.function) for p in places} == {(file, "norm")}
    (broken,) = compiled.breaks
    waits = [*eager.syncs, *compiled.syncs]
    assert len(waits) >= 2
    assert {(at.file, at.line, at.function) for at in (broken, *waits)} == {(file, 4, "norm")}
