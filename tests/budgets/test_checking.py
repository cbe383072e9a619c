"""Budgets held against reports that a test hands out: nothing is counted here."""

from dataclasses import replace
from pathlib import Path

import pytest
from render.samples import CPU, FUSED, H200, capture, run_report

from kernelcount import app
from kernelcount.budgets import checking, launched, locks
from kernelcount.budgets import files as budgets
from kernelcount.budgets.checking import Options
from kernelcount.budgets.lockfile import Entry
from kernelcount.errors import Interrupted, NotMeasuredError, UsageError
from kernelcount.model import (
    Beside,
    Break,
    Capture,
    Environment,
    Note,
    Numerics,
    Origin,
    Paper,
    Place,
    Provenance,
    Recompilation,
    Source,
    Target,
    Timing,
    Unmeasured,
)

EAGER = capture("eager", ("add", "kernel", "add", 100), ("relu", "kernel", "relu", 90))
FUSION = capture("compile", (FUSED, "kernel", None, 100))
PAPER = Environment("NVIDIA H200", "paper", "2.13.0", architecture="sm_90")
ON_PAPER = Paper(1, 0, False, 8_000_000, 4_000_000, 4_000_000, 12_000_000, 1)
BOTH = "budget: {eager: {kernels: 2}, compile: {kernels: {max: 1}}}\n"


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Hold the budgets of a text against these outcomes, or what they raise."""
    monkeypatch.chdir(tmp_path)
    Path("t.py").write_text("def f(x): return x\n")

    def held(text, *outcomes, environment=H200, besides=(), options=None, shown=lambda *_: None):
        Path("b.yaml").write_text(text if text[0] == "-" else f"target: t.py:f\n{text}")
        seen = []

        def count(job, modelled):
            seen.append((job, modelled))
            if isinstance(outcomes[0], Exception):
                raise outcomes[0]
            captures = [
                replace(o, environment=environment) if isinstance(o, Capture) else o
                for o in outcomes
            ]
            report = run_report(*captures, environment=environment)
            run = replace(report.runs[0], besides=tuple(besides))
            return replace(report, runs=(run,), target=Target("t.py:f", ("f32[8]",))), ("told",)

        checked = checking.check(budgets.load(()), count, options or Options(), shown)
        held.seen = seen
        return checked

    return held


def statuses(checked):
    return [(h.variant, h.limit, h.status) for h in checked.held]


def test_limits_are_kept_broken_and_undecided(check):
    text = "budget: {eager: {kernels: 1, copies: 0}, compile: {kernels: {max: 1}, syncs: 0}}"
    checked = check(text, EAGER, FUSION)
    assert statuses(checked)[:3] == [
        ("eager", "kernels", "broken"),
        ("eager", "copies", "kept"),
        ("compile", "kernels", "kept"),
    ]
    broken = checked.held[0]
    assert (broken.file, broken.line, broken.column, broken.target) == ("b.yaml", 2, 18, "t.py:f")
    assert (broken.actual, broken.bounds.exact, broken.basis) == (2, 1, "measured")
    assert checked.environment == H200
    assert (checked.budgets, checked.exit_code) == (1, 1)


def test_what_the_compiler_tells_is_decided_also_where_the_kernels_are_unknown(check):
    at = (Break("t.py", 7, "f", "print"),)
    seen = replace(capture("compile"), breaks=at, recompilations=())
    failed = Unmeasured("compile", "Inductor asks for Triton", seen)
    limits = "{kernels: 1, graph_breaks: 0, recompiles: 0}"
    kernels, breaks, recompiles = check(f"budget: {{compile: {limits}}}", failed).held
    assert (kernels.status, kernels.why) == ("undecided", "Inductor asks for Triton")
    assert (breaks.status, breaks.actual, breaks.places) == ("broken", 1, (Place("t.py", 7),))
    assert recompiles.status == "kept"


def in_lines(outcome, *lines):
    """The outcome with each of its records of one line."""
    origins = [Source((Origin("x", Place("t.py", line)),)) if line else None for line in lines]
    return replace(outcome, provenance=Provenance(tuple(origins)))


def test_a_broken_count_names_the_kernels_and_their_lines_where_no_lock_says_what_changed(check):
    limits = "{kernels: 1, copies: 0, launches: 2}"
    copied = capture(
        "eager", ("add", "kernel", "add", 9), ("relu", "kernel", "relu", 9), ("c", "copy", None, 9)
    )
    checked = check(f"budget: {{eager: {limits}}}", in_lines(copied, 5, 7, None))
    kernels, copies, launches = checked.held
    assert kernels.details == ("1 add    t.py:5", "1 relu   t.py:7")
    assert kernels.places == (Place("t.py", 5), Place("t.py", 7))
    assert copies.details == ("1 copy",)
    assert copies.places == ()
    assert (launches.status, launches.details, launches.places) == ("kept", (), ())


def test_of_many_kernels_so_many_are_named_as_a_pipeline_shows(check):
    many = capture("eager", *((f"k{i}", "kernel", f"k{i}", 9) for i in range(12)))
    (kernels,) = check("budget: {eager: {kernels: 1}}", in_lines(many, *range(1, 13))).held
    assert len(kernels.places) == launched.MOST
    assert kernels.details[-2:] == ("1 k8   t.py:9", "and 3 more")


def test_what_is_no_count_of_the_record_lists_no_kernels(check):
    timed = replace(EAGER, peak_memory=100)
    (memory,) = check("budget: {eager: {peak_memory: 1}}", in_lines(timed, 5, 7)).held
    assert (memory.status, memory.details) == ("broken", ())


def test_what_is_unknown_is_undecided_with_its_reason_and_exit_code(check):
    checked = check(BOTH, EAGER, Unmeasured("compile", "the profiler lost one"))
    (_, compiled) = checked.held
    assert (compiled.status, compiled.why, compiled.actual) == (
        "undecided", "the profiler lost one", None,
    )  # fmt: skip
    assert checked.exit_code == 3
    assert replace(checked, allow_undecided=True).exit_code == 0


def test_a_broken_limit_outranks_an_undecided_one(check):
    text = BOTH.replace("2", "3")
    assert check(text, EAGER, Unmeasured("compile", "lost")).exit_code == 1


def test_a_function_that_fails_is_the_users_to_mend_whatever_may_stay_undecided(check):
    failed = Unmeasured("eager", "raised ValueError", None, 2)
    checked = check("budget: {eager: {kernels: 2}}", failed, options=Options(allow_undecided=True))
    assert (checked.held[0].status, checked.exit_code) == ("undecided", 2)


def test_a_function_of_which_the_process_dies_never_passes_and_stays_3(check):
    died = Unmeasured("compile", "the process died of SIGSEGV", None, 3, raised=True)
    checked = check(BOTH, EAGER, died, options=Options(allow_undecided=True))
    assert (checked.held[1].status, checked.failed, checked.exit_code) == ("undecided", 1, 3)


def test_a_target_that_cannot_be_counted_at_all_leaves_its_budget_undecided(check):
    told = []
    error = NotMeasuredError("the process died\nwith frames")
    checked = check(BOTH, error, shown=lambda part, said: told.append(said))
    assert [h.why for h in checked.held] == ["the process died"] * 2
    assert told == [("t.py:f: the process died\nwith frames",)]
    assert (checked.exit_code, checked.environment) == (3, None)
    assert check(BOTH, UsageError("there is no f")).exit_code == 2


def test_an_interrupt_ends_it_all(check):
    with pytest.raises(Interrupted):
        check(BOTH, Interrupted("interrupted"))


@pytest.mark.parametrize("text", ["", "budget: {}\n", "budget:\n"])
def test_a_budget_without_a_limit_is_broken_and_nothing_is_run(check, text):
    checked = check(text or "size: 8\n", EAGER)
    (held,) = checked.held
    assert (held.limit, held.status, checked.exit_code) == ("budget", "broken", 1)
    assert check.seen == []


def test_a_variant_without_a_limit_is_broken_beside_one_that_has_some(check):
    checked = check("budget: {eager: {kernels: 2}, compile: {}}", EAGER, FUSION)
    assert statuses(checked) == [("compile", "budget", "broken"), ("eager", "kernels", "kept")]


def test_other_limits_hold_on_paper_and_where_none_does_it_is_undecided(check):
    text = "budget: {eager: {kernels: 2}}\non: {paper: {eager: {kernels: 3}}}"
    assert check(text, EAGER).held[0].status == "kept"
    paper = replace(EAGER, basis="paper", paper=ON_PAPER)
    assert check(text, paper, environment=PAPER).held[0].status == "broken"
    checked = check("on: {paper: {eager: {kernels: 2}}}", EAGER)
    assert [(h.limit, h.status) for h in checked.held] == [("budget", "undecided")]


def test_a_lower_bound_on_paper_breaks_a_most_reaches_a_least_and_else_decides_nothing(check):
    note = Note("at-least", "mm may launch more")
    found = replace(EAGER, basis="paper", paper=replace(ON_PAPER, at_least=True), notes=(note,))
    for limit, status in (("{max: 1}", "broken"), ("{min: 2}", "kept"), ("{max: 2}", "undecided")):
        (held,) = check(f"budget: {{eager: {{kernels: {limit}}}}}", found, environment=PAPER).held
        assert (held.status, held.at_least, held.actual) == (status, True, 2)
    assert held.why == "mm may launch more"


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("kernels", "may launch more kernels than counted: mm"),
        ("copies", "may copy more than counted: mm"),
        ("fills", "on paper the fills inside of library calls are not seen"),
    ],
)
def test_what_an_open_call_may_do_is_said_of_what_is_limited(check, limit, why):
    note = Note("at-least", "may launch more kernels than counted: mm")
    found = replace(EAGER, basis="paper", paper=replace(ON_PAPER, at_least=True), notes=(note,))
    text = f"budget: {{eager: {{{limit}: {{max: 2}}}}}}"
    (held,) = check(text, found, environment=PAPER).held
    assert (held.status, held.why) == ("undecided", why)


def test_transfers_are_compared_as_they_are_shown_or_as_precisely_as_they_are_written(check):
    moved = replace(ON_PAPER, read=8_000_000, written=4_160_000)  # 3.04 arrays
    found = replace(EAGER, basis="paper", paper=moved)
    for limit, status in (
        ("3", "kept"), ("3.0", "kept"), ("{max: 3}", "kept"), ("3.04", "kept"), ("3.00", "broken"),
        ("3.1", "broken"), ("{max: 2.9}", "broken"),
    ):  # fmt: skip
        (held,) = check(f"budget: {{eager: {{transfers: {limit}}}}}", found, environment=PAPER).held
        assert held.status == status, limit
    (held,) = check("budget: {eager: {bytes: 12160001}}", found, environment=PAPER).held
    assert held.status == "broken"


def test_a_time_within_its_noise_is_undecided(check):
    samples = tuple(100.0 + i for i in range(21))
    found = replace(EAGER, timing=Timing(samples, together=("eager",)))
    for limit, status in (("104", "undecided"), ("116", "kept"), ("100", "broken")):
        (held,) = check(f"budget: {{eager: {{call_time: {{max: {limit}}}}}}}", found).held
        assert held.status == status
        assert (held.actual, held.low, held.high, held.unit) == (110, 104, 116, "ns")
    assert check("budget: {eager: {call_time: {max: 110}}}", found).held[0].why == (
        "the limit lies within the noise"
    )


def test_code_that_ran_as_eager_is_named_where_a_limit_is_broken(check):
    note = Note("not-compiled", "0 graphs compiled: 'compile' ran as eager code")
    eager_code = replace(EAGER, name="compile", notes=(note,))
    (held,) = check("budget: {compile: {kernels: 1}}", eager_code).held
    assert held.why == note.detail


def test_what_torch_compile_did_stands_with_a_limit_that_is_broken(check):
    found = replace(
        FUSION,
        breaks=(Break("/home/me/t.py", 3, "f", "print"),),
        recompilations=(Recompilation("/home/me/t.py", 1, "f", "n == 2"),),
    )
    kept, broken = check("budget: {compile: {kernels: 1, graph_breaks: 0}}", found).held
    assert broken.details == (
        "graph break at t.py:3 (print)",
        "recompiled since n == 2 failed at t.py:1",
    )
    assert (kept.details, broken.actual) == ((), 1)
    assert broken.places == (Place("/home/me/t.py", 3), Place("/home/me/t.py", 1))
    assert kept.places == ()


def test_calls_are_timed_and_paper_is_asked_only_where_a_limit_is_about_it(check):
    options = Options(seconds=2.0, timeout=9.0)
    check("budget: {eager: {kernels: 2}}", EAGER, options=options)
    ((job, modelled),) = check.seen
    assert (job.seconds, job.timeout, modelled) == (0, 9.0, False)
    check("budget: {eager: {peak_memory: {max: 1}, bytes: 3}}", EAGER, options=options)
    ((job, modelled),) = check.seen
    assert (job.seconds, modelled) == (2.0, True)


def test_flags_outrank_what_a_budget_says_of_its_device(check):
    text = "device: paper\ngpu: A100\nbudget: {eager: {kernels: 2}}"

    def device(**options):
        check(text, EAGER, options=Options(**options))
        return check.seen[0][0].device, check.seen[0][0].gpu

    assert device() == ("paper", "A100")
    assert device(gpu="H100") == ("paper", "H100")
    assert device(device="cuda:1") == ("cuda:1", None)


def test_what_came_of_each_budget_is_shown_as_it_comes(check):
    parts = []
    text = f"- {{target: 't.py:f', {BOTH.strip()}}}\n- {{target: 't.py:f', {BOTH.strip()}}}\n"
    checked = check(text, EAGER, FUSION, shown=lambda part, said: parts.append((part.held, said)))
    assert [said for _, said in parts] == [("t.py:f: told",)] * 2
    assert parts[0][0] + parts[1][0] == checked.held
    assert checked.budgets == 2


def test_options_that_are_not_what_they_must_be_are_refused_before_anything_is_counted(check):
    check(BOTH, EAGER, FUSION)
    with pytest.raises(UsageError, match="--device 'cda' is not one of"):
        app.check(budgets.load(()), None, None, Options(device="cda"))
    with pytest.raises(UsageError, match="write a number of seconds above 0"):
        app.check(budgets.load(()), None, None, Options(timeout=0))
    with pytest.raises(UsageError, match="write a number of seconds, 0 for no times"):
        app.check(budgets.load(()), None, None, Options(seconds=-1.0))
    with pytest.raises(UsageError, match="the card that --device paper counts for"):
        app.check(budgets.load(()), None, None, Options(device="cpu", gpu="A100"))


def test_a_budget_that_names_a_card_and_another_device_than_paper_is_refused(check):
    text = "device: cpu\ngpu: A100\nbudget: {eager: {kernels: 2}}"
    check(text, EAGER)
    with pytest.raises(UsageError, match=r"^b\.yaml:1:1: --gpu A100: this is"):
        app.check(budgets.load(()), None, None)
    check(text, EAGER, options=Options(gpu="H100"))
    assert (check.seen[0][0].device, check.seen[0][0].gpu) == ("paper", "H100")


def test_what_excludes_each_other_in_a_budget_is_named_with_its_place(check):
    Path("b.yaml").write_text("target: t.py:f\nbackward: true\nno_grad: true\n" + BOTH)
    with pytest.raises(UsageError, match=r"b\.yaml:1:1: --backward and --no-grad exclude"):
        app.check(budgets.load(()), None, None)


# ── lock files ───────────────────────────────────────────────────────────────────────────────────

ENTRY = Entry("t.py:f", "eager", (("gpu", "sm_90"),), ())
SM_90 = replace(H200, architecture="sm_90")


def update(check, *outcomes, environment=SM_90, text=BOTH):
    return check(text, *outcomes, environment=environment, options=Options(update=True))


def test_what_was_seen_is_recorded_and_held_from_then_on(check):
    checked = update(check, EAGER, FUSION)
    assert checked.written == ("kernelcount.lock: 2 of 2 entries are new or changed",)
    assert statuses(checked) == [("eager", "kernels", "kept"), ("compile", "kernels", "kept")]
    text = Path("kernelcount.lock").read_text()
    assert 'setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", basis: measured}' in text
    checked = check(BOTH, EAGER, FUSION, environment=SM_90)
    assert statuses(checked)[2:] == [("eager", "lock", "kept"), ("compile", "lock", "kept")]
    again = update(check, EAGER, FUSION)
    assert again.written == ("kernelcount.lock: 0 of 2 entries are new or changed",)
    assert Path("kernelcount.lock").read_text() == text


def test_kernels_that_appear_and_vanish_break_the_lock_and_are_named(check):
    update(check, EAGER, FUSION)
    split = capture("compile", ("triton_a", "kernel", None, 1), ("triton_b", "kernel", None, 1))
    source = Source((Origin("add", Place("/home/me/t.py", 5)),))
    split = replace(split, provenance=Provenance((source, None)))
    checked = check(BOTH, EAGER, split, environment=SM_90)
    limit, lock = checked.held[1], checked.held[3]
    assert (limit.status, lock.status, lock.limit) == ("broken", "broken", "lock")
    assert (lock.file, lock.line) == ("kernelcount.lock", 4)
    changes = ("new: triton_a   t.py:5", "new: triton_b", f"gone: {FUSED}")
    assert limit.details == lock.details == changes
    assert (
        [p.line for p in limit.places]
        == [p.line for p in lock.places]
        == [source.origins[0].place.line]
    )
    assert lock.why == "it launches other kernels than are recorded"


def test_an_op_that_was_replaced_in_a_fused_kernel_is_told_at_its_own_line(check):
    update(check, EAGER, FUSION)  # of add and relu
    name = "triton_poi_fused_add_gelu_0"
    ops = tuple(Origin(op, Place("/home/me/t.py", n)) for op, n in (("add", 5), ("gelu", 7)))
    other = capture("compile", (name, "kernel", None, 1), provenance=Provenance((Source(ops),)))
    lock = check(BOTH, EAGER, other, environment=SM_90).held[3]
    assert lock.details == (f"new: {name}   t.py:7", f"gone: {FUSED}")
    assert [p.line for p in lock.places] == [7]


def test_other_numbers_of_the_same_kernels_copies_and_fills_break_it_too(check):
    update(check, EAGER, FUSION)
    more = capture("compile", *[(FUSED, "kernel", None, 1)] * 2, ("memcpy", "copy", None, 1))
    lock = check(BOTH, EAGER, more, environment=SM_90).held[3]
    assert lock.details == (f"2 instead of 1: {FUSED}", "copies: 1 instead of 0")


COPY, FILL = ("memcpy", "copy", None, 1), ("memset", "fill", None, 1)
KERNEL, OTHER = (FUSED, "kernel", None, 1), ("triton_a", "kernel", None, 1)


@pytest.mark.parametrize(
    ("launched", "why"),
    [
        ((KERNEL,), ""),
        ((KERNEL, COPY), "it makes another number of copies than is recorded"),
        ((KERNEL, FILL), "it makes another number of fills than is recorded"),
        ((KERNEL, COPY, FILL), "it makes another number of copies and fills than is recorded"),
        ((KERNEL, KERNEL), "it launches the same kernels another number of times than is recorded"),
        (
            (KERNEL, KERNEL, COPY),
            "it launches the same kernels another number of times than is recorded",
        ),
        ((OTHER,), "it launches other kernels than are recorded"),
        ((KERNEL, OTHER), "it launches other kernels than are recorded"),
        ((OTHER, FILL), "it launches other kernels than are recorded"),
        ((), "it launches other kernels than are recorded"),
    ],
)
def test_what_differs_from_the_lock_is_called_what_it_is(check, launched, why):
    update(check, EAGER, FUSION)
    lock = check(BOTH, EAGER, capture("compile", *launched), environment=SM_90).held[3]
    assert (lock.why, lock.status) == (why, "broken" if why else "kept")
    assert bool(lock.details) == bool(why)


def test_another_setup_is_no_failure_and_the_nearest_one_is_named(check):
    update(check, EAGER, FUSION)
    other = replace(SM_90, torch="2.12.0")
    split = capture("compile", ("triton_a", "kernel", None, 1))
    checked = check(BOTH, EAGER, split, environment=other)
    assert statuses(checked) == [("eager", "kernels", "kept"), ("compile", "kernels", "kept")]
    (note,) = checked.notes
    assert (checked.exit_code, note.code) == (0, "lock-other-setup")
    assert note.detail == (
        "kernelcount.lock: not recorded for this setup: t.py:f eager, t.py:f compile "
        f"(new: triton_a; gone: {FUSED}); the nearest has torch 2.11.0 instead of 2.12.0"
    )
    update(check, EAGER, split, environment=other)
    assert Path("kernelcount.lock").read_text().count("- target") == 4


def test_a_target_of_which_nothing_is_recorded_is_named(check):
    update(check, EAGER, text="budget: {eager: {kernels: 2}}")
    checked = check(BOTH, EAGER, FUSION, environment=SM_90)
    assert [(n.code, n.detail) for n in checked.notes] == [
        ("lock-unknown", "kernelcount.lock has nothing of t.py:f compile")
    ]


@pytest.mark.parametrize("text", ["", "# Ours.\n", "[]\n"])
def test_a_lock_file_that_records_nothing_does_not_pass_without_a_word(check, text):
    Path("kernelcount.lock").write_text(text)
    checked = check(BOTH, EAGER, FUSION, environment=SM_90)
    assert [(n.code, n.detail) for n in checked.notes] == [
        ("lock-empty", "kernelcount.lock records nothing, so nothing is compared with it")
    ]
    assert update(check, EAGER, FUSION).notes == ()
    assert check(BOTH, EAGER, FUSION, environment=SM_90).notes == ()


def test_a_lock_file_that_breaks_off_within_an_entry_says_so_and_is_made_whole(check):
    update(check, EAGER, FUSION)
    path = Path("kernelcount.lock")
    whole = path.read_text()
    path.write_text(whole[: whole.rindex("  copies")])
    (note,) = check(BOTH, EAGER, FUSION, environment=SM_90).notes
    line = whole.splitlines().index("  variant: eager")
    assert note.code == "lock-incomplete"
    assert note.detail.startswith(
        f"kernelcount.lock:{line}: the entry does not say how many copies"
    )
    assert update(check, EAGER, FUSION).written == (
        "kernelcount.lock: 1 of 2 entries are new or changed",
    )
    assert path.read_text() == whole


@pytest.mark.parametrize("text", ["kernels", "{}", "- target: t.py:f\n  variant: eager\n"])
def test_a_lock_file_that_is_no_list_of_entries_is_refused(check, text):
    Path("kernelcount.lock").write_text(text)
    with pytest.raises(UsageError, match=r"kernelcount\.lock:1:"):
        check(BOTH, EAGER, FUSION, environment=SM_90)


def test_a_recorded_variant_that_the_budget_has_no_more_is_named(check):
    update(check, EAGER, FUSION)
    checked = check("budget: {eager: {kernels: 2}}", EAGER, environment=SM_90)
    assert [(n.code, n.detail) for n in checked.notes] == [
        ("lock-left-over", "kernelcount.lock records what no budget here has: t.py:f compile")
    ]


def test_results_with_nan_in_other_places_break_a_limit_on_their_error(check):
    nan = Numerics("different", 1, 0.0, notes=("NaN or inf in other places",), differs="placement")
    text = "budget: {eager: {kernels: 2}, compile: {max_error: {max: 1}}}"
    held = check(text, EAGER, replace(FUSION, numerics=nan)).held[1]
    assert (held.limit, held.status, held.why) == ("max_error", "broken", nan.notes[0])


def test_what_cannot_be_believed_is_not_recorded_and_does_not_pass(check):
    update(check, EAGER, FUSION)
    lost = Unmeasured("compile", "the profiler lost one")
    checked = check(BOTH, EAGER, lost, environment=SM_90)
    assert statuses(checked)[2:] == [("eager", "lock", "kept"), ("compile", "lock", "undecided")]
    before = Path("kernelcount.lock").read_text()
    checked = update(check, EAGER, lost)
    assert Path("kernelcount.lock").read_text() == before
    assert [n.detail for n in checked.notes] == [
        "t.py:f, compile: not recorded: the profiler lost one"
    ]
    cpu = update(check, EAGER, FUSION, environment=CPU)
    assert "no GPU was involved" in cpu.notes[0].detail


def test_two_budgets_of_one_target_are_told_apart_by_their_arguments(check):
    text = f"- {{target: 't.py:f', {BOTH.strip()}}}\n- {{target: 't.py:f', {BOTH.strip()}}}\n"
    update(check, EAGER, FUSION, text=text)
    assert Path("kernelcount.lock").read_text().count('inputs: ["f32[8]"]') == 2


def test_a_call_that_goes_backward_is_another(check):
    one = "target: t.py:f\n  budget: {eager: {kernels: 2}}\n"
    update(check, EAGER, text=f"- {one}- {one}  backward: true\n")
    lock = Path("kernelcount.lock").read_text()
    assert 'inputs: ["f32[8]"]' in lock
    assert 'inputs: ["f32[8]", backward]' in lock


def test_a_lock_file_that_is_none_is_refused_before_anything_is_counted(check):
    Path("kernelcount.lock").write_text("<<<<<<< ours\n")
    with pytest.raises(UsageError, match=r"kernelcount\.lock:1:1: a lock file is a list"):
        check(BOTH, EAGER, FUSION)
    assert not hasattr(check, "seen")


def test_a_lock_file_that_cannot_be_written_is_said(check, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(locks.Path, "write_text", full)
    lock = locks.Locks(())
    lock._locks = {Path("kernelcount.lock"): locks._Lock(Path("kernelcount.lock"), [], [ENTRY])}
    assert lock.write() == ((), ("kernelcount.lock: No space left on device",))


def test_what_a_beside_cannot_tell_is_undecided(check):
    beside = Beside(Unmeasured("eager", "no figures of this card"))
    (held,) = check("budget: {eager: {bytes: 3}}", EAGER, besides=[beside]).held
    assert (held.status, held.why) == (
        "undecided", "not counted on paper: no figures of this card",
    )  # fmt: skip


def test_a_break_at_no_line_is_named_at_none(check):
    found = replace(FUSION, breaks=(Break("t.py", 3, "f", "print"), Break("t.py", None, "f", "x")))
    (broken,) = check("budget: {compile: {graph_breaks: 0}}", found).held
    assert broken.places == (Place("t.py", 3),)
