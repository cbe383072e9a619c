"""A trace's waits get the lines that torch told of, and no line is guessed."""

from dataclasses import replace

from kernelcount.model import Sync
from kernelcount.origins.callers import Site
from kernelcount.waiting import Told, asks, merged

STREAM, DEVICE = "cudaStreamSynchronize", "cudaDeviceSynchronize"
ITEM = Sync("item", op="item", call=STREAM, idle_ns=5, copy_ns=1, seen_by=("trace",))
MASK = Sync("mask", op="index", call=STREAM, idle_ns=7, copy_ns=1, seen_by=("trace",))
EXPLICIT = Sync("explicit", call=DEVICE, idle_ns=9, seen_by=("trace",))
HIDDEN = Sync("inside an op", op="_unique2", call=STREAM, seen_by=("trace",))
A, B = Site("a.py", 1, "f"), Site("b.py", 2, "g", True)


def lines(traced, *waits, asked=()):
    found, notes = merged(traced, Told(waits, asked))
    return [s.line for s in found], [n.code for n in notes]


def test_as_many_as_torch_told_of_are_paired_in_order():
    found, notes = merged((ITEM, MASK), Told((A, B)))
    assert found == (
        replace(ITEM, file="a.py", line=1, function="f", seen_by=("trace", "debug mode")),
        replace(
            MASK, file="b.py", line=2, function="g", seen_by=("trace", "debug mode"), compiled=True
        ),
    )
    assert notes == ()


def test_what_torch_does_not_warn_of_is_paired_apart():
    assert asks((EXPLICIT,))
    assert not asks((ITEM, MASK, HIDDEN))
    assert lines((ITEM, EXPLICIT, MASK), A, A, asked=(B,)) == ([1, 2, 1], [])


def test_a_wait_that_a_library_makes_inside_an_op_may_have_no_line():
    assert lines((ITEM, HIDDEN, MASK), A, B) == ([1, None, 2], [])
    assert lines((ITEM, HIDDEN), A, B) == ([1, 2], [])


def test_a_copy_whose_own_call_waits_is_none_of_those_that_torch_warns_of():
    alone = Sync("copy to host", op="copy_", call="", copy_ns=4, seen_by=("trace",))
    assert lines((alone, ITEM), A) == ([None, 1], [])


def test_where_the_numbers_differ_a_line_is_told_only_if_it_is_the_only_one():
    assert lines((ITEM, ITEM, ITEM), A, A) == ([1, 1, 1], [])
    told, notes = merged((ITEM, ITEM, ITEM), Told((A, B)))
    assert [s.line for s in told] == [None, None, None]
    assert [n.code for n in notes] == ["syncs-unplaced"]
    assert "a.py:1, b.py:2" in notes[0].detail


def test_what_torch_tells_nothing_of_stays_without_a_line():
    assert lines((ITEM,)) == ([None], [])
    assert lines((EXPLICIT,), asked=()) == ([None], [])


def test_what_no_line_of_the_users_made_has_none():
    (found,), _ = merged((ITEM,), Told((None,)))
    assert (found.file, found.seen_by) == (None, ("trace", "debug mode"))


def test_waits_that_the_trace_does_not_hold_are_listed_without_a_price():
    (found, explicit), notes = merged((EXPLICIT,), Told((A,)))
    assert (found.line, found.idle_ns, found.free) == (1, None, None)
    assert found.seen_by == ("debug mode",)
    assert (explicit, notes) == (EXPLICIT, ())
