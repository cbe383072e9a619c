"""A graph that Inductor does not lower costs the kernels, and what Dynamo tells stays."""

from importlib.util import find_spec

import pytest

from kernelcount import rules
from kernelcount.model import Bounds, Unmeasured

_SCAN = """
def f(x):
    y = x + 1
    print(end="")
    return y.cumsum(0)
"""


pytestmark = pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is installed")


def test_where_inductor_needs_triton_it_is_said_what_to_do_and_nothing_else(count, target, capfd):
    outcome = count(f"{target(_SCAN)}:f", "compile", device="paper")["compile"]
    assert isinstance(outcome, Unmeasured)
    assert "pip install triton" in outcome.reason
    assert "Error in codegen" not in capfd.readouterr().err


def test_graph_breaks_are_known_of_a_graph_that_was_not_lowered(count, target):
    outcome = count(f"{target(_SCAN)}:f", "compile", device="paper")["compile"]
    assert outcome.seen is not None
    reading = rules.read("graph_breaks", rules.Counted(outcome.seen))
    assert rules.status(reading, Bounds(1, 1)) == "kept"
    assert [b.line for b in outcome.seen.breaks] == [5]
    assert not len(outcome.seen.records)
