"""Two files held against each other."""

from array import array
from dataclasses import replace
from itertools import compress
from pathlib import Path

import pytest
from render.samples import capture

from kernelcount.differences.alignment import numbered
from kernelcount.differences.allowances import parse
from kernelcount.differences.differing import between, chosen
from kernelcount.differences.sides import read_sides
from kernelcount.errors import UsageError
from kernelcount.model import Records, Side, Target, Unmeasured

A, B = Path("a.json"), Path("b.json")
NO_MORE = parse({"kernels": "+0"})


def side(name, kernels=1, kind="captures", spec="f.py:f"):
    ran = [("k", "kernel", None, 1000)] * kernels
    return Side(name, kind, capture(name, *ran, target=Target(spec)))


def hung(name):
    return Side(name, "captures", Unmeasured(name, "it hung"))


def test_every_variant_is_compared_and_held():
    before, after = [side("eager"), side("compile")], [side("eager"), side("compile", 2)]
    found = between(A, B, before, after, NO_MORE)
    assert [(d.variant, d.status) for d in found.decisions] == [
        ("eager", "kept"),
        ("compile", "broken"),
    ]
    assert found.exit_code == 1


def test_without_limits_a_difference_is_no_failure():
    assert between(A, B, [side("eager")], [side("eager", 9)]).exit_code == 0


def test_a_variant_that_is_there_no_more_decides_nothing_and_without_limits_is_only_said():
    before, after = [side("eager"), side("compile")], [side("eager")]
    found = between(A, B, before, after, NO_MORE)
    assert (found.only_before, found.exit_code) == (("compile",), 3)
    assert between(A, B, before, after).exit_code == 0
    assert between(A, B, after, before, NO_MORE).exit_code == 0


@pytest.mark.parametrize("after", [[side("eager"), hung("compile")], [side("eager"), hung("new")]])
def test_what_was_not_measured_is_unknown_with_limits_or_without(after):
    found = between(A, B, [side("eager"), side("compile")], after)
    assert [p.unknown[-7:] for p in found.pairs if p.unknown] == ["it hung"]
    assert found.exit_code == 3


def test_a_regression_outranks_what_is_unknown():
    before = [side("eager"), side("compile")]
    found = between(A, B, before, [side("eager", 2), hung("compile")], NO_MORE)
    assert found.exit_code == 1


def test_of_a_lock_file_what_is_about_other_functions_is_not_missing():
    lock = [side(name, 1, "lock", f"{f}.py:{f}") for f in "fgh" for name in ("eager", "compile")]
    found = between(A, B, lock, [side("eager", spec="g.py:g"), side("new", spec="g.py:g")], NO_MORE)
    assert [p.name for p in found.pairs] == ["g.py:g eager"]
    assert found.only_before == ("g.py:g compile",)
    both = between(A, B, lock, lock[:4])
    assert both.only_before == ("h.py:h eager", "h.py:h compile")


def test_files_with_no_variant_in_common_are_an_error_that_says_what_they_have():
    with pytest.raises(UsageError, match=r"a\.json has eager, compile; b\.json has mine"):
        between(A, B, [side("eager"), side("compile")], [side("mine", spec="g.py:g")])


def test_variants_are_chosen_by_name_and_a_trace_is_itself():
    sides = [side("eager"), side("compile")]
    assert chosen(sides, ["compile"], A) == sides[1:]
    assert chosen(sides, [], A) == sides
    trace = [side("t.json", kind="trace")]
    assert chosen(trace, ["compile"], A) == trace
    with pytest.raises(UsageError, match=r"a\.json has none of this name; it has eager, compile"):
        chosen(sides, ["compiled"], A)


def test_a_trace_is_held_against_one_variant_of_several():
    trace = [side("t.json", 2, kind="trace")]
    after = chosen([side("eager"), side("compile")], ["compile"], B)
    (pair,) = between(A, B, trace, after).pairs
    assert pair.name == "t.json → compile"


RECORDED = sorted((Path(__file__).parent.parent / "data" / "h200").glob("h200-*.json.gz"))
COMPILED = Path(__file__).parent.parent / "data" / "h200" / "h200-gpt2.compile.json.gz"


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.name)
def test_a_recorded_trace_held_against_itself_has_not_changed(path):
    found = between(path, path, read_sides(path), read_sides(path), NO_MORE)
    assert {c.change for p in found.pairs for c in p.changes} <= {"same"}
    assert not any(c.renamed for p in found.pairs for c in p.changes)
    assert [d.status for d in found.decisions] == ["kept"]


def _without(side, number):
    """The side without the kernel of this number, and those after it numbered anew."""
    r = side.capture.records

    def now(work):
        stem, n = numbered(work.name)
        return replace(work, name=f"{stem}_{n - 1}") if n is not None and n > number else work

    kept = [numbered(r.works[w].name)[1] != number for w in r.work]
    columns = (r.work, r.lane, r.start_ns, r.duration_ns)
    work, lane, start, duration = (array(c.typecode, compress(c, kept)) for c in columns)
    records = Records(tuple(map(now, r.works)), r.lanes, work, lane, start, duration)
    return replace(side, outcome=replace(side.capture, records=records))


def test_of_a_compiled_model_that_lost_a_kernel_that_kernel_alone_is_gone():
    before = read_sides(COMPILED)
    for number in range(8):
        after = [_without(before[0], number)]
        (pair,) = between(COMPILED, COMPILED, before, after).pairs
        changed = [c for c in pair.changes if c.change != "same"]
        assert [(c.change, numbered(c.row.name)[1]) for c in changed] == [("vanished", number)]
