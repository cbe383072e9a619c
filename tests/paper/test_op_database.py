"""Calls of torch's own ops launch on paper what an H200 launched: see tests/gpu/op_database.py."""

import json
from pathlib import Path

import launched
import pytest
from launched import Launched

FILE = Path(__file__).parents[1] / "data" / "op_database.json"
CALLS = json.loads(FILE.read_text())["calls"]

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]


def on_paper(call):
    """Kernels and copies of a call as it is written down."""
    op, args, kwargs = launched.call_of(call)
    shapes = launched.gradient_shapes(op, args, kwargs) if call["backward"] else None
    with launched.paper() as count:
        return count(*launched.ready(op, args, kwargs, shapes, "cuda"))


@pytest.mark.parametrize(
    "call", CALLS, ids=[f"{c['op']} {'backward' if c['backward'] else 'forward'}" for c in CALLS]
)
def test_a_call_launches_what_was_measured(call):
    found, measured = on_paper(call), Launched(*call["launched"])
    assert found.is_as(measured), (found, measured)
    assert found.at_least is call.get("open", False)
