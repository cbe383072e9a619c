"""torch.compile as a remedy: what spoils it, and what is none."""

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Numerics
from kernelcount.remedies.compiled import compiling

FOUND = Numerics("equal", 1)
X = torch.ones(2)


@pytest.fixture
def attempt(facts):
    return lambda f: compiling("compile:backend=eager")(facts(f, X))


def test_what_was_compiled_is_a_remedy_and_nothing_spoils_it(attempt):
    with attempt(lambda x: x + 1) as made:
        made.way.call(X)
        assert made.way.variant.name == "compile:backend=eager"
        assert made.remark(FOUND) == ""


def test_what_ran_as_eager_code_is_none(attempt):
    def generates(x):
        yield x + 1

    with attempt(generates) as made:
        list(made.way.call(X))
        with pytest.raises(NotMeasuredError, match="0 graphs compiled: it ran as eager code"):
            made.remark(FOUND)


def test_a_limit_that_was_reached_spoils_it(attempt):
    with attempt(lambda x, tag="": x + len(tag)) as made:
        with torch._dynamo.config.patch(recompile_limit=2):
            for n in range(5):
                made.way.call(X, "t" * n)
        assert made.remark(FOUND).startswith(
            "it ran in part as eager code: the recompile_limit (2)"
        )
