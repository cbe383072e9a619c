"""How much a figure may grow: what the flags say, and what becomes of it."""

import re
from dataclasses import replace

import pytest
from render.samples import capture
from test_changes import STEADY, compared, timed

from kernelcount.differences.allowances import LIMITS, decide, missing, parse
from kernelcount.errors import UsageError
from kernelcount.model import Capture, Environment, Paper, Unmeasured


def kernels(n, time=1000, **given):
    return capture("x", *[("k", "kernel", None, time)] * n, **given)


def decided(flag, value, before, after, **kinds):
    (decision,) = decide(parse({flag: value}), [compared(before, after, **kinds)])
    return decision


@pytest.mark.parametrize(
    ("text", "amount", "relative"),
    [
        ("+0", 0, False),
        ("+2", 2, False),
        ("-3", -3, False),
        ("+10%", 0.1, True),
        ("5%", 0.05, True),
    ],
)
def test_growth_is_a_number_more_or_a_share(text, amount, relative):
    (allowance,) = parse({"kernels": text, "copies": None})
    assert (allowance.name, allowance.relative) == ("kernels", relative)
    assert allowance.amount == pytest.approx(amount)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("kernels", "2", "write +2 for 2 more than before"),
        ("kernels", "two", "write how much more is allowed, as +0"),
        ("kernels", "", "write how much more"),
        ("slowdown", "+3", "write a share of the time that it took, as 5%"),
        ("slowdown", "1.1x", "as 5%"),
    ],
)
def test_a_value_that_could_mean_something_else_is_refused(name, text, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        parse({name: text})


@pytest.mark.parametrize(
    ("allowed", "before", "after", "status"),
    [
        ("+0", 2, 2, "kept"),
        ("+0", 2, 1, "kept"),
        ("+0", 2, 3, "broken"),
        ("+1", 2, 3, "kept"),
        ("+50%", 2, 3, "kept"),
        ("+40%", 2, 3, "broken"),
        ("-1", 2, 2, "broken"),
        ("-1", 2, 1, "kept"),
        ("+10%", 0, 1, "broken"),
    ],
)
def test_kernels_may_grow_as_far_as_is_allowed(allowed, before, after, status):
    decision = decided("kernels", allowed, kernels(before), kernels(after))
    assert (decision.status, decision.before, decision.after) == (status, before, after)


def test_what_is_not_known_of_both_is_undecided():
    decision = decided("launches", "+0", kernels(1), kernels(1, launches=1))
    assert decision.status == "kept"
    trace = Capture("x", records=kernels(1).records)  # without runtime rows
    decision = decided("launches", "+0", kernels(1), trace)
    assert (decision.status, decision.why) == ("undecided", "after: the record holds no launches")
    decision = decided("memory", "+0", kernels(1), kernels(1))
    assert decision.why == "calls were not timed"
    assert (
        decided("memory", "+10%", kernels(1, peak_memory=100), kernels(1, peak_memory=120)).status
        == "broken"
    )


def test_calls_that_are_not_steady_decide_nothing():
    decision = decided("kernels", "+0", kernels(2), kernels(1, stable=False))
    assert (decision.status, decision.why[:25]) == ("undecided", "after: repeated calls did")


def test_where_nothing_is_concluded_no_limit_is_kept():
    assert decided("kernels", "+9", kernels(2), Unmeasured("x", "it hung")).status == "undecided"
    (decision,) = missing(parse({"kernels": "+9"}), ["compile"])
    assert (decision.variant, decision.status) == ("compile", "undecided")


def _paper(n, *, at_least):
    worked_out = Paper(0, n, at_least, 8, 4, 4, 8, 1)
    return capture("x", *[("mm", "kernel", "mm", None)] * n, basis="paper", paper=worked_out)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ((2, False), (3, True), "broken"),  # three at least is more than two
        ((2, False), (2, True), "undecided"),
        ((2, True), (3, False), "undecided"),  # they may have been three
        ((2, True), (1, False), "kept"),  # it was two at the least
        ((2, False), (2, False), "kept"),
    ],
)
def test_a_lower_bound_on_paper_breaks_a_limit_and_keeps_none(before, after, status):
    (n, open_before), (m, open_after) = before, after
    old, new = _paper(n, at_least=open_before), _paper(m, at_least=open_after)
    assert decided("kernels", "+0", old, new).status == status
    assert decided("library", "+0", old, new).status == ("broken" if m > n else "kept")


@pytest.mark.parametrize(
    ("factor", "allowed", "status"),
    [
        (1.0, "5%", "kept"),
        (0.5, "5%", "kept"),
        (1.2, "5%", "broken"),
        (1.2, "30%", "kept"),
        (1.06, "5%", "undecided"),  # more than is allowed, and times of two runs may differ so
        (1.06, "10%", "kept"),
    ],
)
def test_a_call_may_be_slower_as_far_as_is_allowed(factor, allowed, status):
    before, after = timed("eager", *STEADY), timed("eager", *(factor * x for x in STEADY))
    decision = decided("slowdown", allowed, before, after)
    assert (decision.status, decision.figure) == (status, "call_time")


def test_a_time_that_scatters_round_what_is_allowed_is_undecided():
    wild = [x * f for x, f in zip(STEADY, [1.1, 1.3, 1.15, 1.25, 1.2] * 2, strict=True)]
    decision = decided("slowdown", "20%", timed("eager", *STEADY), timed("eager", *wild))
    assert (decision.status, decision.why) == (
        "undecided",
        "it is slower, but not known precisely enough to tell by how much",
    )


@pytest.mark.parametrize(
    ("now", "allowed", "status"),
    [
        (1000, "5%", "kept"),
        (1060, "5%", "undecided"),
        (1200, "5%", "broken"),
        (1200, "25%", "kept"),
    ],
)
def test_where_calls_were_not_timed_kernels_tell_as_far_as_they_can(now, allowed, status):
    decision = decided("slowdown", allowed, kernels(1), kernels(1, now))
    assert (decision.status, decision.figure) == (status, "kernel_time")
    if status == "undecided":
        assert decision.why == (
            "it may be noise: kernel times of single profiled calls are told apart from 7 % on"
        )


def test_nothing_is_no_slower_than_nothing_and_anything_is():
    assert decided("slowdown", "5%", kernels(0), kernels(0)).status == "kept"
    assert decided("slowdown", "5%", kernels(0), kernels(1)).status == "broken"


def test_without_times_or_on_another_gpu_no_slowdown_is_decided():
    a100 = Environment("NVIDIA A100", "cuda", "2.11.0", "3.6.0")
    decision = decided("slowdown", "5%", kernels(1), kernels(1, environment=a100))
    assert decision.why.startswith("another GPU: NVIDIA H200 before, NVIDIA A100 after")
    paper = _paper(1, at_least=False)
    assert decided("slowdown", "5%", paper, paper).why == "on paper nothing takes time"
    untimed = kernels(1, None)
    assert decided("slowdown", "5%", untimed, untimed).why == "no time of it is known on both sides"


def test_every_limit_has_a_figure_that_there_is():
    from kernelcount.differences.changes import FIGURES

    assert {limit.total for limit in LIMITS.values()} <= set(FIGURES)


def test_of_eager_code_no_graph_breaks_are_asked():
    eager, mine = (capture(name, ("k", "kernel", None, 1)) for name in ("eager", "compile"))
    pairs = [compared(eager, eager), compared(mine, replace(mine, breaks=()))]
    decisions = list(decide(parse({"breaks": "+0"}), pairs))
    assert [(d.variant, d.status) for d in decisions] == [("compile", "undecided")]
