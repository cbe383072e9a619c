"""Measured records get the lines that paper knows of the same calls."""

from array import array
from dataclasses import replace

from stubs import in_a_row

from kernelcount.conclusions.comparison import beside
from kernelcount.model import (
    Origin,
    Paper,
    Place,
    Provenance,
    Source,
    Work,
)
from kernelcount.origins.sources import of_rows

FUSED, OTHER = "triton_poi_fused_add_0", "triton_red_fused_sum_1"


def measured(*named, lanes=(), calls=()):
    """What ran, as (name, label), and by which calls of ops."""
    works = [Work(n, "fill" if n == "Memset" else "kernel", op) for n, op in named]
    ran = in_a_row(works, lanes)
    return replace(ran, records=replace(ran.records, call=array("q", calls)))


def on_paper(*named, unknown=""):
    """What paper has, as (name, label, line)."""
    works = [Work(name, "kernel", label, read=4, written=4) for name, label, _ in named]
    sources = tuple(
        line and Source((Origin(label or name, Place("a.py", line)),), "forward")
        for name, label, line in named
    )
    paper = Paper(0, 0, False, 8, 4, 4, 8, 1)
    known = Provenance(sources, unknown=unknown)
    return replace(in_a_row(works), basis="paper", paper=paper, provenance=known)


def lines(ran, paper):
    """The line of each record, None where it is not known; and why not all are."""
    known = beside(ran, paper).provenance
    return [s and s.origins[0].place.line for s in known.sources], known.unknown


def test_ops_are_joined_in_the_order_in_which_they_were_launched():
    paper = on_paper(("aten::add", "add", 5), ("aten::relu", "relu", 6), ("aten::add", "add", 7))
    ran = measured(("k", "add"), ("m", "relu"), ("k", "add"))
    assert lines(ran, paper) == ([5, 6, 7], "")


def test_generated_kernels_are_joined_by_their_names():
    paper = on_paper((FUSED, None, 5), (OTHER, None, 6), (FUSED, None, 7))
    assert lines(measured((FUSED, None), (FUSED, None), (OTHER, None)), paper) == ([5, 7, 6], "")


def test_a_generated_kernel_of_another_name_is_not_known_and_that_is_said():
    found, why = lines(measured((OTHER, None)), on_paper((FUSED, None, 5)))
    assert (found, why) == ([None], "1 of 1 records are not joined to a call on paper")


def test_all_kernels_of_a_library_call_are_of_its_line():
    paper = on_paper(("aten::mm", "mm", 5), ("aten::relu", "relu", 6), ("aten::mm", "mm", 7))
    ran = measured(("g", "mm"), ("splitK", "mm"), ("r", "relu"), ("g", "mm"))
    assert lines(ran, paper)[0] == [5, 5, 6, 7]


def test_of_calls_in_a_row_each_has_as_many_kernels_or_nobody_knows():
    paper = on_paper(("aten::mm", "mm", 5), ("aten::mm", "mm", 6))
    assert lines(measured(*[("g", "mm")] * 4), paper)[0] == [5, 5, 6, 6]
    assert lines(measured(*[("g", "mm")] * 3), paper)[0] == [None] * 3


def test_the_trace_knows_which_kernels_are_of_one_call():
    paper = on_paper(("aten::mm", "mm", 5), ("aten::mm", "mm", 6), ("aten::mm", "mm", 7))
    ran = measured(*[("g", "mm")] * 4, calls=(11, 12, 12, 15))
    assert lines(ran, paper) == ([5, 6, 6, 7], "")


def test_what_paper_has_not_leaves_the_rest_joined():
    paper = on_paper(("aten::add", "add", 5), ("aten::relu", "relu", 6))
    ran = measured(("k", "add"), ("odd", "odd"), ("m", "relu"))
    assert lines(ran, paper)[0] == [5, None, 6]


def test_a_fill_is_of_the_op_that_it_makes_ready_for():
    paper = on_paper(("aten::sum", "sum", 5), ("aten::sum", "sum", 6))
    ran = measured(("Memset", None), ("k", "sum"), ("k", "sum"), calls=(3, 3, 4))
    assert lines(ran, paper) == ([5, 5, 6], "")
    ran = measured(("Memset", None), ("k", "sum"), ("k", "sum"))
    assert lines(ran, paper)[0] == [None, 5, 6]


def test_on_several_streams_only_names_that_are_unique_tell():
    paper = on_paper(("aten::add", "add", 5), (FUSED, None, 6))
    found, why = lines(measured(("k", "add"), (FUSED, None), lanes=(0, 1)), paper)
    assert (found, "several streams" in why) == ([None, 6], True)


def test_where_paper_cannot_tell_the_reason_goes_on():
    found, why = lines(measured(("k", "add")), on_paper(("a", "add", None), unknown="torch 9"))
    assert (found, why) == ([None], "torch 9")


def test_a_row_has_the_lines_modules_and_phases_of_all_its_records():
    add = Work("aten::add", "kernel", "add")
    sources = tuple(
        Source((Origin("add", Place("a.py", line), module, phase),), phase)
        for line, module, phase in [(5, "l.0", "forward"), (5, "l.1", "forward"), (6, None, None)]
    )
    rows = of_rows(replace(in_a_row([add, add, add, add]), provenance=Provenance((*sources, None))))
    (row,) = rows.values()
    assert [p.line for p in row.places] == [5, 6]
    assert (row.modules, row.phases, row.unknown) == (("l.0", "l.1"), ("forward",), 1)
    assert row.within == (("l.0", "l.1"), ())
