"""Waits and idle times as they are shown: a line each, the whole list on demand, and in JSON."""

import json
from dataclasses import replace

from kernelcount.model import Gap, Note, Sync, Timing
from kernelcount.render import render
from kernelcount.render.figures import busy_share, figures
from kernelcount.render.syncs import places, said

from . import samples

ITEM = Sync(
    "item", "src/train.py", 12, "step", "item", "cudaStreamSynchronize", 40_000, 9_000, 1_000,
    ("trace", "debug mode"),
)  # fmt: skip
COPY = Sync("pageable copy", "src/train.py", 7, "step", "to", "cudaStreamSynchronize", 90_000)
FREE = replace(ITEM, line=30, idle_ns=0)
UNKNOWN = Sync("bool", idle_ns=None)
GAPS = (
    Gap(2_000, 40_000, "sum", "mul", (("mul", 21_000), ("Python", 12_000), ("launching", 7_000))),
    Gap(60_000, 9_000, "mul", "Memset (Device)", (("Python", 9_000),)),
)


def waiting(*syncs, gaps=(), call_ns=None, name="eager"):
    timing = None if call_ns is None else Timing((call_ns,) * 3)
    return samples.capture(
        name, ("k", "kernel", "sum", 30_000), ("k", "kernel", "mul", 20_000),
        syncs=syncs, gaps=gaps, idle_ns=sum(g.duration_ns for g in gaps), timing=timing,
    )  # fmt: skip


def table(*outcomes, full=False, width=80):
    return render(samples.run_report(*outcomes), format="table", width=width, full=full)


def line(text, label):
    return next((x.strip() for x in text.splitlines() if x.strip().startswith(label)), None)


def test_waits_and_idle_time_have_a_line_each():
    text = table(waiting(ITEM, COPY, gaps=GAPS, call_ns=200_000))
    assert line(text, "syncs") == "syncs                2   pageable copy at train.py:7, ..."
    assert line(text, "GPU idle") == "GPU idle          75 %   longest 40 µs, profiled"
    assert "where the CPU waits" not in text


def test_without_any_there_is_no_line():
    text = table(waiting())
    assert line(text, "syncs") is None
    assert line(text, "GPU idle") is None


def test_a_variant_without_waits_has_a_zero_beside_one_that_has_some():
    other = replace(waiting(name="compile"), syncs=None)
    text = table(waiting(ITEM), waiting(name="fast.py:f"), other)
    assert line(text, "syncs").split()[:4] == ["syncs", "1", "0", "unknown"]


def test_a_wait_that_began_before_the_first_record_says_so_beside_the_idle_time():
    text = " ".join(table(waiting(COPY, gaps=GAPS, call_ns=200_000), full=True).split())
    assert "A wait is longer than all that the GPU was idle: it counts from the call" in text
    assert "A wait is longer" not in table(waiting(ITEM, gaps=GAPS, call_ns=200_000), full=True)


def test_where_there_may_be_more_the_number_is_a_lower_bound_and_a_zero_is_shown():
    note = Note("syncs-at-least", "the CPU may wait more often")
    some, none = replace(waiting(ITEM), notes=(note,)), replace(waiting(), notes=(note,))
    assert line(table(some), "syncs").split()[:3] == ["syncs", "≥", "1"]
    assert line(table(none), "syncs").split() == ["syncs", "≥", "0"]
    (entry,) = json.loads(render(samples.run_report(none), format="json"))["variants"]
    assert (entry["syncs"], entry["syncs_at_least"]) == ([], True)


def test_waits_that_cost_nothing_are_free():
    assert line(table(waiting(FREE)), "syncs").split() == ["syncs", "1", "free"]


def test_the_whole_list_groups_by_line_the_costliest_first():
    text = table(waiting(ITEM, COPY, ITEM, FREE, UNKNOWN, gaps=GAPS, call_ns=200_000), full=True)
    start = text.index("  where the CPU waits")
    assert text[start : text.index("\n\n", start)] == (
        "  where the CPU waits                                                   GPU idle\n"
        "  train.py:7     pageable copy   in step  to                               90 µs\n"
        "  train.py:12    item            in step  item  ×2                         80 µs\n"
        "  train.py:30    item            in step  item                              free\n"
        "  unknown line   bool                                                    unknown\n"
        "  pin_memory() and non_blocking=True would hide the copies at train.py:7.\n"
        "  when the GPU is idle: 75 % of a call\n"
        "  40 µs   before mul      mul 21 µs, Python 12 µs, launching 7 µs\n"
        "   9 µs   before Memset   Python 9 µs\n"
        "  A wait is longer than all that the GPU was idle: it counts from the call of\n"
        "  its copy, and idle times from the start of the first record."
    )


def test_of_copies_at_unknown_lines_it_is_told_what_would_hide_them_and_not_where():
    text = table(waiting(replace(COPY, file=None, line=None)), full=True)
    assert "  pin_memory() and non_blocking=True would hide the copies.\n" in text


def test_of_several_variants_each_list_says_whose_it_is():
    text = table(waiting(ITEM), waiting(COPY, name="compile"), full=True)
    assert "where the CPU waits, eager" in text
    assert "where the CPU waits, compile" in text


def test_no_line_is_wider_than_the_page():
    long = replace(ITEM, file="x" * 90 + ".py", function="f" * 90, op="o" * 90)
    for width in (40, 80, 120):
        text = table(waiting(long, COPY, gaps=GAPS), full=True, width=width)
        assert max(map(len, text.splitlines())) <= width


def test_names_that_could_act_on_a_screen_do_not():
    hostile = replace(ITEM, file="a\x1b[31m.py", function="f\n", op="\x07")
    assert not set("\x1b\x07") & set(table(waiting(hostile), full=True))


def test_the_json_has_every_wait_in_order_and_the_gaps():
    document = json.loads(
        render(samples.run_report(waiting(ITEM, FREE, gaps=GAPS, call_ns=200_000)), format="json")
    )
    (entry,) = document["variants"]
    first, second = entry["syncs"]
    assert first == {
        "file": "src/train.py", "line": 12, "kind": "item", "idle_ns": 40_000, "free": False,
        "function": "step", "compiled": False, "op": "item", "call": "cudaStreamSynchronize",
        "wait_ns": 9_000, "copy_ns": 1_000, "hideable": False, "basis": "measured",
        "seen_by": ["trace", "debug mode"],
    }  # fmt: skip
    assert (second["line"], second["free"]) == (30, True)
    assert entry["gaps"][1] == {
        "start_ns": 60_000, "duration_ns": 9_000, "before": "mul", "after": "Memset (Device)",
        "doing": [{"what": "Python", "time_ns": 9_000}],
    }  # fmt: skip
    assert (entry["idle_ns"], entry["busy_share"], entry["busy_share_of"]) == (
        49_000, 0.25, "call",
    )  # fmt: skip


def test_the_busy_share_is_of_a_call_or_of_the_record_and_never_above_one():
    assert busy_share(figures(waiting(call_ns=100_000))) == (0.5, "call")
    assert busy_share(figures(waiting(call_ns=10_000))) == (1.0, "call")
    assert busy_share(figures(waiting())) == (1.0, "record")
    untimed = samples.capture("eager", ("k", "kernel", "sum", None))
    assert busy_share(figures(untimed)) is None


def test_a_sentence_names_the_waits_that_cost_time():
    assert said(figures(waiting(ITEM, COPY, FREE))) == (
        "The CPU waits for the GPU: pageable copy at train.py:7 and item at train.py:12."
    )
    assert said(figures(waiting(FREE))).startswith("No sync costs it time")
    assert said(figures(replace(waiting(), syncs=None))) == ""
    many = [replace(ITEM, line=n, idle_ns=100 - n) for n in range(5)]
    assert said(figures(waiting(*many))).endswith("and 2 more.")


def test_the_price_of_a_place_is_unknown_where_one_of_its_waits_is():
    (place,) = places([ITEM, replace(ITEM, idle_ns=None)])
    assert (place.count, place.price) == (2, "unknown")


def test_markdown_lists_every_place_where_all_is_asked_for():
    report = samples.run_report(waiting(ITEM, COPY, ITEM), waiting(FREE, name="compile"))
    text = render(report, format="markdown", full=True)
    assert "- eager: pageable copy at train.py:7 (GPU idle: 90 µs)\n" in text
    assert "- eager: item at train.py:12 ×2 (GPU idle: 80 µs)\n" in text
    assert "- compile: item at train.py:30 (GPU idle: free)" in text
    assert "90 µs" not in render(report, format="markdown")
