"""What limits read off captures, and when they are kept, broken or undecided."""

from array import array
from math import inf

import pytest

from kernelcount import rules
from kernelcount.model import (
    Beside,
    Bounds,
    Break,
    Capture,
    Difference,
    Environment,
    Lane,
    Note,
    Numerics,
    Paper,
    Recompilation,
    Records,
    Sync,
    Timing,
    Unmeasured,
    Work,
)
from kernelcount.rules import RULES, Counted, Reading

CPU = Environment(kind="cpu")


def records(*activities, duration=1000):
    works = tuple(Work(f"{a}{i}", a) for i, a in enumerate(activities))
    n = len(works)
    return Records(
        works,
        (Lane("0", "7"),),
        array("i", range(n)),
        array("i", [0] * n),
        array("q", [5000 * i for i in range(n)]),
        array("q", [duration] * n),
    )


def capture(*activities, **options):
    options = {"launches": len(activities), "complete": True, **options}
    return Capture("compile", Environment("H200", "cuda"), records=records(*activities), **options)


def on_paper(*activities, at_least=False, own=(), **options):
    paper = Paper(1, 2, at_least, 8_000_000, 4_000_000, 4_000_000, 1, 1, own=own)
    return Capture(
        "compile", Environment("H200", "paper"), records=records(*activities), basis="paper",
        paper=paper, **options,
    )  # fmt: skip


def read(name, found, **options):
    return rules.read(name, Counted(found, **options))


def exact(name, found, **options):
    reading = read(name, found, **options)
    assert reading.low == reading.value == reading.high, reading
    return reading.value


def unknown(name, found, **options):
    reading = read(name, found, **options)
    assert not reading.known
    assert (reading.value, reading.low, reading.high) == (None, -inf, inf)
    assert rules.status(reading, Bounds(0, inf)) == "undecided"
    return reading.reason


@pytest.mark.parametrize(
    ("reading", "bounds", "status"),
    [
        (Reading(2, 2, 2), Bounds(2, 2), "kept"),
        (Reading(2, 2, 2), Bounds(None, 1), "broken"),
        (Reading(2, 2, 2), Bounds(3, None), "broken"),
        (Reading(2, 2, inf), Bounds(None, 1), "broken"),  # at least 2, and at most 1 is allowed
        (Reading(2, 2, inf), Bounds(2, None), "kept"),  # it reaches the least
        (Reading(2, 2, inf), Bounds(None, 2), "undecided"),
        (Reading(2, 2, inf), Bounds(2, 2), "undecided"),
        (Reading(2, 2, inf), Bounds(3, None), "undecided"),
        (Reading(1.3, 1.25, 1.35), Bounds(1.3, None), "undecided"),  # within the noise
        (Reading(1.3, 1.25, 1.35), Bounds(1.2, None), "kept"),
        (Reading(1.3, 1.25, 1.35), Bounds(None, 1.2), "broken"),
        (Reading(reason="no GPU"), Bounds(None, 1e9), "undecided"),
    ],
)
def test_a_limit_is_kept_only_where_it_is_so_wherever_the_true_value_lies(reading, bounds, status):
    assert rules.status(reading, bounds) == status


def test_every_limit_of_the_contract_has_its_row():
    assert set(RULES) == {
        "kernels", "launches", "copies", "fills", "generated", "library", "transfers", "bytes",
        "graph_breaks", "recompiles", "syncs", "peak_memory", "speedup", "call_time",
        "kernel_time", "max_error",
    }  # fmt: skip
    assert {n for n, rule in RULES.items() if rule.measured} == {
        "speedup", "call_time", "kernel_time", "max_error",
    }  # fmt: skip


def test_what_was_recorded_is_exact():
    found = capture("kernel", "kernel", "copy", "fill", "fill")
    counts = {name: exact(name, found) for name in ("kernels", "copies", "fills", "launches")}
    assert counts == {"kernels": 2, "copies": 1, "fills": 2, "launches": 5}


def test_what_may_be_more_on_paper_is_a_lower_bound():
    assert exact("kernels", on_paper("kernel")) == 1
    for found in (
        on_paper("kernel", at_least=True),
        on_paper("kernel", own=(Work("my", "kernel"),)),
    ):
        for name, value in (("kernels", 1), ("copies", 0)):
            reading = read(name, found)
            assert (reading.value, reading.low, reading.high) == (value, value, inf)
            assert reading.at_least


def test_what_paper_does_not_see_is_unknown():
    assert "library calls" in unknown("fills", on_paper("kernel"))
    for name in ("launches", "peak_memory", "speedup", "call_time", "kernel_time"):
        over = on_paper() if name == "speedup" else None
        assert unknown(name, on_paper("kernel"), over=over) == "needs a GPU"


def test_without_a_gpu_there_are_no_kernels_and_not_zero():
    found = Capture("compile", CPU, records=records("aten", "generated"))
    for name in ("kernels", "launches", "copies", "fills", "kernel_time", "bytes", "library"):
        assert unknown(name, found) == "no GPU was involved"
    assert exact("generated", found) == 1
    note = Note("generated-unknown", "cannot tell")
    assert unknown("generated", Capture("c", CPU, notes=(note,)))


@pytest.mark.parametrize(
    "options",
    [
        {"complete": False},
        {"notes": (Note("unstable", "no two calls launched the same"),)},
        {"notes": (Note("incomplete", "1 launch has no record"),)},
        {"notes": (Note("doubtful-values", "zeros stood for the values"),)},
    ],
)
def test_a_record_that_is_doubted_decides_no_count(options):
    for name in ("kernels", "launches", "copies", "fills", "kernel_time"):
        assert unknown(name, capture("kernel", **options))
    timed = capture("kernel", timing=Timing((50.0,) * 20), **options)
    assert read("call_time", timed).known


def test_nothing_that_ran_since_the_result_was_remembered_is_no_zero():
    assert "remembered" in unknown("kernels", capture(notes=(Note("memoised", "remembered"),)))


def test_bytes_are_those_of_paper_also_beside_a_measurement():
    paper, measured = on_paper("kernel"), capture("kernel")
    assert exact("bytes", paper) == 12_000_000
    assert exact("transfers", paper) == 3
    beside = Beside(paper, same_calls=True)
    assert exact("transfers", measured, beside=beside) == 3
    assert (exact("generated", measured, beside=beside), exact("library", paper)) == (1, 2)
    assert unknown("bytes", measured) == "it was not counted on paper"
    other = Beside(paper, (Difference("mm", 2, 1, "mm is 2 kernels"),))
    assert unknown("bytes", measured, beside=other) == "paper has another count: mm is 2 kernels"
    lost = Beside(Unmeasured("compile", "no figures of this card"))
    assert "no figures of this card" in unknown("transfers", measured, beside=lost)


def test_the_bytes_of_somebodys_own_op_are_an_upper_bound():
    found = on_paper("kernel", own=(Work("my", "kernel", at_most=True),))
    reading = read("transfers", found)
    assert (reading.value, reading.low, reading.high) == (3, 0, 3)
    assert rules.status(reading, Bounds(None, 3)) == "kept"
    assert rules.status(reading, Bounds(3, 3)) == "undecided"


def test_syncs_are_those_of_a_call_and_on_paper_of_what_is_seen_into():
    item, printed = Sync("item", op="item"), Sync("copy to host", op="Tensor.__repr__")
    assert exact("syncs", capture("kernel", syncs=(item, item))) == 2
    assert exact("syncs", on_paper("kernel", at_least=True, syncs=())) == 0
    assert unknown("syncs", capture("kernel")) == "not looked for"
    assert unknown("syncs", Capture("eager", CPU)) == "no GPU was involved"
    own = on_paper("kernel", own=(Work("mine::op", "kernel"),), syncs=(item,))
    unseen = on_paper("kernel", notes=(Note("unknown-call", "mystery"),), syncs=())
    for found, least in ((own, 1), (unseen, 0), (on_paper("kernel", syncs=(printed,)), 1)):
        reading = read("syncs", found)
        assert (reading.value, reading.at_least) == (least, True)


def test_breaks_and_recompilations_are_those_of_what_was_compiled():
    found = capture(
        breaks=(Break("a.py", 1, "f", "print"),),
        recompilations=(Recompilation("a.py", 1, "f", "n"),),
    )
    assert (exact("graph_breaks", found), exact("recompiles", found)) == (1, 1)
    assert exact("graph_breaks", capture(breaks=())) == 0
    for name in ("graph_breaks", "recompiles"):
        assert "nothing is compiled" in unknown(name, capture())


def test_a_time_is_as_wide_as_its_noise():
    samples = tuple(100.0 + i for i in range(21))
    reading = read("call_time", capture(timing=Timing(samples)))
    assert (reading.value, reading.low, reading.high) == (110, 104, 116)
    few = read("call_time", capture(timing=Timing((100.0, 101.0))))
    assert (few.low, few.high) == (-inf, inf)
    assert "too few" in few.reason
    note = Note("not-timed", "not timed: out of memory")
    assert unknown("call_time", capture(notes=(note,))) == "not timed: out of memory"
    assert unknown("call_time", capture()) == "calls were not timed"


def test_a_speedup_is_over_the_variant_that_it_names():
    together = ("eager", "compile")
    slow = Capture("eager", timing=Timing((200.0,) * 20, together=together))
    fast = capture(timing=Timing((100.0,) * 20, together=together))
    assert exact("speedup", fast, over=slow) == 2
    assert "unmeasured: lost" in unknown("speedup", fast, over=Unmeasured("eager", "lost"))
    assert unknown("speedup", fast, over=Capture("eager")) == "calls were not timed"
    alone = Capture("eager", timing=Timing((200.0,) * 20, together=("eager",)))
    assert "in turn" in unknown("speedup", fast, over=alone)


def test_a_kernel_time_of_one_call_is_as_sure_as_two_such_calls_agree():
    reading = read("kernel_time", capture("kernel", "kernel"))
    assert reading.value == 2000
    assert (reading.low, reading.high) == pytest.approx((1860, 2140))
    lost = capture("kernel")
    lost.records.duration_ns[0] = -(1 << 63)
    assert unknown("kernel_time", lost) == "1 kernels have no valid time"


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (Numerics("equal", 1), 0),
        (Numerics("close", 1, 1e-6), 1e-6),
        (Numerics("different", 1, 0.5), 0.5),
        (Numerics("different", 1, inf), inf),
        (Numerics("nothing", 0), None),
        (Numerics("random", 1), None),
        (Numerics("unknown", 0, notes=("out of memory",)), None),
    ],
)
def test_an_error_is_the_largest_difference_from_the_first_variants_results(found, value):
    assert read("max_error", capture(numerics=found)).value == value
    assert "compared with this one's" in unknown("max_error", capture(numerics=found), first=True)


@pytest.mark.parametrize(
    "found",
    [
        Numerics("different", 1, 0.0, notes=("NaN or inf in other places",), differs="placement"),
        Numerics("different", 1, 0.0, notes=("2.0 instead of 1.0",), differs="numbers"),
        *(
            Numerics("different", 1, notes=("not alike",), differs=what)
            for what in ("shape", "dtype", "device", "count", "numbers")
        ),
        Numerics("different", 1, notes=("not alike",)),
    ],
)
def test_results_that_no_value_tells_apart_are_infinitely_far_apart(found):
    reading = read("max_error", capture(numerics=found))
    assert reading.value == inf
    assert reading.reason == found.notes[0]
    assert rules.status(reading, Bounds(None, 1e9)) == "broken"


@pytest.mark.parametrize("verdict", ["random", "nothing", "unknown"])
def test_results_that_cannot_be_compared_leave_their_error_undecided(verdict):
    reading = read("max_error", capture(numerics=Numerics(verdict, 1, 0.0, differs="placement")))
    assert rules.status(reading, Bounds(None, 1e9)) == "undecided"


def test_peak_memory_is_exact():
    assert exact("peak_memory", capture(peak_memory=400)) == 400
    assert unknown("peak_memory", capture(timing=Timing((1.0,)))) == "needs a GPU"
