"""Which lines of a kernel's are those of what it did not compute before."""

import pytest

from kernelcount.model import Capture, Origin, Place, Provenance, Records, Source, Work
from kernelcount.origins.changed import by_names, first, origins, since


def ops(*told, file="/net.py"):
    """Ops at lines: ``("add", 5)``."""
    return [Origin(op, Place(file, line, "step")) for op, line in told]


def lines(places):
    return [place.line for place in places]


BEFORE = ops(("add", 5), ("mul", 6), ("relu", 7), ("mul", 8))


@pytest.mark.parametrize(
    ("now", "other"),
    [
        ([("add", 5), ("mul", 6), ("gelu", 7), ("mul", 8)], [7]),  # put in the place of another
        ([("add", 5), ("mul", 6), ("relu", 7), ("exp", 8), ("mul", 9)], [8]),  # one more
        ([("add", 15), ("mul", 16), ("gelu", 17), ("mul", 18)], [17]),  # all have moved
        ([("add", 5), ("mul", 6), ("relu", 7), ("mul", 8), ("mul", 9)], [9]),  # the same once more
        ([("sub", 5), ("mul", 6), ("relu", 7), ("erf", 8)], [5, 8]),
        ([("add", 5), ("mul", 6), ("mul", 8)], []),  # one less: nothing of it is new
        ([("sub", 5), ("exp", 6)], []),  # nothing is as it was
        ([], []),
    ],
)
def test_the_line_is_that_of_the_op_that_was_not_there(now, other):
    assert lines(since(ops(*now), BEFORE)) == other


def test_of_names_of_kernels_it_is_the_op_that_is_in_none_of_them():
    now = ops(("add", 5), ("gelu", 7), ("mul", 8))
    assert lines(by_names(now, ["triton_poi_fused_add_mul_relu_0"])) == [7]
    assert lines(by_names(now, ["triton_poi_fused_add_0", "triton_poi_fused_mul_gelu_1"])) == []
    assert by_names(now, ["triton_poi_fused_addcmul_sigmoid_0"]) == ()  # nothing in common
    assert by_names(now, []) == ()


def test_what_changed_stands_before_all_other_lines():
    places = [Place("/a.py", n) for n in (5, 6, 7)]
    assert lines(first(places, [places[1], Place("/other.py", 1)])) == [6, 5, 7]
    assert lines(first(places, ())) == [5, 6, 7]


def test_a_row_computes_what_all_its_records_do_in_the_order_of_lines():
    late, early = ops(("relu", 7)), [*ops(("add", 5)), Origin("sum")]
    works = (Work("fused", "kernel"), Work("fused", "copy"))
    sources = (Source(tuple(late)), Source(tuple(early)), None)
    capture = Capture("compile", records=_records(works, (0, 0, 1)), provenance=Provenance(sources))
    assert origins(capture) == {
        ("fused", "kernel"): [*ops(("add", 5)), *late],
        ("fused", "copy"): [],
    }
    assert origins(Capture("compile")) == {}


def _records(works, ran):
    from array import array

    return Records(works, (), array("i", ran))
