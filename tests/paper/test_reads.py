"""Each op that reads values inside of itself has an example, which paper counts without a GPU.

A GPU is held against it in tests/gpu/test_reads.py.
"""

import pytest
import torch
from gpu import reading

from kernelcount.paper import reads

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
]
NAMED = {
    *reads._BY_NAME, *reads._NUMBERS, *reads._OPEN, *reads._CHECKING, *reads._PLAIN_ALGEBRA, "isin",
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """What each example comes to on paper, and the ops that it asked of."""
    asked: dict[str, set[str]] = {}
    here: set[str] = set()
    real = reads.may_wait_more

    def noted(op):
        here.add(op.name)
        return real(op)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelcount.worker.device.may_have_a_gpu", lambda: False)
        patch.setattr(reads, "may_wait_more", noted)
        results = {}
        for name in reading.EXAMPLES:
            here.clear()
            results[name] = reading.waited(name, "paper")
            asked[name] = set(here)
    return results, asked


def test_paper_tells_of_each_example_how_often_it_waits(found):
    results, _ = found
    assert {name: r["why"] for name, r in results.items() if r["waits"] is None} == {}


def test_an_example_calls_the_op_that_it_bears_the_name_of(found):
    _, asked = found
    others = {name: ops for name, ops in asked.items() if name.partition(",")[0] not in ops}
    assert others == {}


def test_every_op_that_waits_inside_has_an_example(found):
    _, asked = found
    assert sorted(NAMED - set().union(*asked.values()) - set(reading.WITHOUT_EXAMPLE)) == []


def test_of_all_that_are_said_to_wait_the_number_is_known_or_a_lower_bound(found):
    results, _ = found
    for name, result in results.items():
        op = name.partition(",")[0]
        if reads.is_open(op):
            assert result["at_least"], name
        elif "," not in name and op in (*reads._BY_NAME, *reads._NUMBERS) and op != "searchsorted":
            assert result["waits"] > 0, name
