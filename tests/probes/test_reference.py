"""What is excused as rounding, and that nothing else ever is."""

import pytest
import torch

from kernelcount.probes.kept import Results
from kernelcount.probes.numerics import compare
from kernelcount.probes.reference import NONE, judged

NAN = float("nan")


def t(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def results(*values, names=()):
    tensors = tuple(v for v in values if isinstance(v, torch.Tensor))
    numbers = tuple(v for v in values if isinstance(v, int | float) and type(v) is not bool)
    others = tuple(v for v in values if isinstance(v, bool | str))
    return Results(tensors, numbers, (), others, names)


def judge(expected, got, exact, again=None):
    found = compare(expected, got)
    return judged(found, exact, expected, got, again)


def cancelling(nudge=None):
    """``1.0`` beside ``1.0001 - 1.0`` in float64."""
    one, more = t(1.0).double(), torch.tensor([1.0001], dtype=torch.float64)
    for x in (one, more):
        if nudge is not None:
            nudge.move(x)
    return results(torch.cat([one, more - one]))


@pytest.mark.parametrize(("other", "verdict"), [(-2e-4, "close"), (0.1, "different")])
def test_rounding_of_bf16_is_not_called_wrong_where_numbers_cancel(other, verdict):
    first, own = (results(t(1.0, v, dtype=torch.bfloat16)) for v in (4e-4, other))
    assert compare(first, own).numerics.verdict == "different"
    said = judge(first, own, cancelling(), cancelling)
    assert (said.verdict, said.differs) == (verdict, None if verdict == "close" else "values")


def test_without_cancellation_the_same_distance_is_no_rounding():
    exact = results(t(1.0, 1e-4).double())

    def again(nudge):
        moved = t(1.0, 1e-4).double()
        nudge.move(moved)
        return results(moved)

    first, own = (results(t(1.0, v, dtype=torch.bfloat16)) for v in (1e-4, -2e-4))
    assert judge(first, own, exact, again).verdict == "different"


@pytest.mark.parametrize("large", [1e6, -1e9, torch.finfo(torch.float32).min])
def test_a_large_number_beside_them_excuses_no_others(large):
    exact = results(t(1.0, 2.0, large).double())
    first, own = results(t(1.0, 2.0, large)), results(t(1.5, 2.5, large))
    assert judge(first, own, exact, lambda _: exact).verdict == "different"


def test_a_first_variant_that_is_far_off_excuses_nothing():
    exact = results(t(1.0, 2.0).double())
    first, own = results(t(1.5, 2.5)), results(t(1.4, 2.4))
    assert judge(first, own, exact, lambda _: exact).verdict == "different"


def test_what_the_first_variant_computes_in_tf32_the_others_may():
    exact = results(t(1.0, 2.0).double())
    first, own = results(t(1.0004, 2.0)), results(t(0.9991, 2.0))
    assert judge(first, own, exact, lambda _: exact).verdict == "close"
    assert judge(results(t(1.0, 2.0)), own, exact, lambda _: exact).verdict == "different"


def test_a_step_of_float8_is_rounding():
    exact = results(t(1.05, 8.0).double())
    first, own = (results(t(v, 8.0).to(torch.float8_e4m3fn)) for v in (1.0, 1.125))
    assert judge(first, own, exact, lambda _: exact).verdict == "close"
    worse = results(t(1.5, 8.0).to(torch.float8_e4m3fn))
    assert judge(first, worse, exact, lambda _: exact).verdict == "different"


def test_what_is_further_from_the_truth_than_it_may_be_stays_different():
    said = judge(results(t(1.0, 2.0)), results(t(1.0, 2.5)), results(t(1.0, 2.0).double()))
    assert (said.verdict, said.error, said.base_error) == ("different", 0.25, 0.0)
    assert said.differs == "values"


def test_the_error_of_one_tensor_does_not_excuse_that_of_another():
    exact = results(t(1.0).double(), t(1.0).double())
    first, other = results(t(1.5), t(1.0)), results(t(1.5), t(1.2))
    said = judge(first, other, exact)
    assert (said.verdict, said.differs) == ("different", "values")
    assert "beyond the tolerance: result 2" in said.notes


SAME = t(1.0, 2.0)


@pytest.mark.parametrize("beside", [(), (SAME,), (t(1.5, 2.0),)], ids=["alone", "same", "rounded"])
@pytest.mark.parametrize(
    ("first", "other", "differs"),
    [
        ((3,), (4,), "numbers"),
        ((3.0,), (4.0,), "numbers"),
        ((3,), (3, 4), "numbers"),
        ((3,), (), "numbers"),
        ((True,), (False,), "numbers"),
        (("a",), ("b",), "numbers"),
        ((SAME,), (SAME, SAME), "count"),
        ((SAME, SAME), (SAME,), "count"),
        ((SAME,), (SAME[:1],), "shape"),
        ((SAME,), (SAME.view(1, 2),), "shape"),
        ((SAME,), (SAME.double(),), "dtype"),
        ((t(1.0, NAN),), (t(NAN, 1.0),), "placement"),
        ((t(1.0, NAN),), (t(1.0, 1.0),), "placement"),
        ((t(1, dtype=torch.int64),), (t(2, dtype=torch.int64),), "values"),
        ((t(True),), (t(False),), "values"),
    ],
)
def test_nothing_but_rounding_is_excused_whatever_stands_beside_it(first, other, differs, beside):
    """`beside` agrees, or is as far from the truth as the first variant's."""
    exact = results(*(v.double() if isinstance(v, torch.Tensor) else v for v in (*first, *beside)))
    one, two = results(*first, *beside), results(*other, *beside)
    said = judge(one, two, exact)
    assert said.verdict == "different"
    assert said.differs == differs


def test_a_float_of_pythons_may_be_rounded_too_and_no_further():
    first, exact = results(SAME, 1.01), results(SAME.double(), 1.0)
    assert judge(first, results(SAME, 0.995), exact).verdict == "close"
    assert judge(first, results(SAME, 0.98), exact).verdict == "different"
    assert judge(first, results(SAME, NAN), exact).verdict == "different"


def test_where_there_is_no_reference_that_is_said_and_nothing_excused():
    said = judge(results(t(1.0)), results(t(1.5)), None)
    assert (said.verdict, said.error) == ("different", None)
    assert NONE in said.notes
    other_count = judge(results(t(1.0)), results(t(1.5)), results())
    assert (other_count.verdict, other_count.notes[-1]) == ("different", NONE)
