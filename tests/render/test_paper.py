"""What is shown of a count on paper."""

import json
from dataclasses import replace

from kernelcount.model import Beside, Difference, Environment, Note, Paper, Unmeasured, Work
from kernelcount.render import render
from kernelcount.traces import saved
from tests.render import samples

H200 = Environment("NVIDIA H200", "paper", "2.13.0", None, "0.1.0")
ARRAY = 400_000_000


def eager(**given):
    paper = Paper(0, 2, False, 3 * ARRAY, 2 * ARRAY, ARRAY, 3 * ARRAY, 4_800_000_000_000, 416_667)
    return _on_paper(samples.eager(), paper, **given)


def compiled(**given):
    paper = Paper(1, 0, False, 2 * ARRAY, ARRAY, ARRAY, 3 * ARRAY, 4_800_000_000_000, 250_000)
    return _on_paper(samples.compiled(), paper, **given)


def _on_paper(capture, paper, **given):
    untimed = replace(
        capture.records, duration_ns=samples.records(*[("k", "kernel", None, None)] * len(
            capture.records)).duration_ns,
    )  # fmt: skip
    return replace(
        capture, environment=H200, records=untimed, launches=None, graph_launches=None,
        basis="paper", paper=replace(paper, **given),
    )  # fmt: skip


def report(*outcomes):
    return samples.run_report(*outcomes, environment=H200)


def test_the_screen_says_at_once_that_nothing_ran_and_what_is_modelled():
    assert render(report(eager(), compiled()), format="table") == (
        """\
add_relu   f32[100000000], f32[100000000]    on paper for an H200 · torch 2.13.0

compile would launch 1 kernel instead of 2 and make 3 array transfers instead of
5, which is the least possible.

               eager   compile
  kernels          2         1
  transfers      5.0       3.0   least possible 3.0
  at least    417 µs    250 µs   bytes over 4.8 TB/s, modelled

  eager
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>
  compile
  1  triton_poi_fused_add_relu_0

Nothing ran on a GPU: counts follow torch 2.13.0's own code generation, and
bytes and times are modelled from shapes. A transfer is the largest array, read
or written once.
"""
    )


def test_each_kernel_has_its_own_transfers_where_its_bytes_are_known():
    capture = eager()
    works = [replace(w, read=2 * ARRAY, written=ARRAY) for w in capture.records.works]
    known = replace(capture, records=replace(capture.records, works=tuple(works)))
    lines = render(report(known), format="table").splitlines()
    heading = next(i for i, line in enumerate(lines) if line.endswith("transfers"))
    assert [line.rsplit(None, 1)[1] for line in lines[heading + 1 : heading + 3]] == ["3.0", "3.0"]
    rows = json.loads(render(report(known), format="json"))["variants"][0]["rows"]
    assert rows[0]["bytes"] == {"read": 2 * ARRAY, "written": ARRAY, "basis": "modelled"}


def test_in_full_the_ops_stand_below_each_other_with_their_whole_names():
    capture = eager()
    works = [replace(w, name=f"aten::{w.label}") for w in capture.records.works]
    whole = replace(capture, records=replace(capture.records, works=tuple(works)))
    text = render(report(whole), format="table", full=True)
    assert "  1  add   aten::add" in text
    assert "  2  relu  aten::relu" in text


def test_transfers_that_a_tenth_would_make_none_of_are_less_than_a_tenth():
    few = compiled(read=ARRAY // 200, written=ARRAY // 250, floor=9 * ARRAY // 1000)
    shown = render(report(eager(), few), format="table")
    assert "make 0.009 array transfers\ninstead of 5, which is the least possible" in shown
    assert "  transfers      5.0      <0.1   least possible <0.1\n" in shown


def test_markdown_says_too_that_nothing_ran():
    text = render(report(eager(), compiled()), format="markdown")
    assert text.rstrip().endswith("A transfer is the largest array, read or written once.")
    assert "Nothing ran on a GPU" in text


def test_json_has_no_time_where_nothing_ran():
    (device,) = json.loads(render(report(eager()), format="json"))["variants"][0][
        "devices"
    ].values()
    assert device == {"kernels": 2, "kernel_time_ns": None}


def test_a_lower_bound_is_never_shown_as_a_count():
    text = render(report(eager(at_least=True), compiled()), format="table")
    assert "compile would launch 1 kernel, eager at least 2" in text
    assert "≥ 2" in text


def test_json_bears_the_parts_of_the_count_and_their_basis():
    document = json.loads(render(report(eager(), compiled()), format="json"))
    variant = document["variants"][1]
    keys = ("basis", "kernels", "generated", "library", "at_least", "transfers", "launches")
    assert [variant[k] for k in keys] == ["paper", 1, 1, 0, False, 3.0, None]
    assert variant["bytes"] == {"read": 2 * ARRAY, "written": ARRAY, "basis": "modelled"}
    assert document["floor"] == {"bytes": 3 * ARRAY, "transfers": 3.0}


def test_json_bears_the_operations_by_precision_and_which_of_them_tensor_cores_make():
    worked_out = compiled(flops=(("bf16", 4_000), ("f32", 60)), tensor_cores=("bf16",))
    (variant,) = json.loads(render(report(worked_out), format="json"))["variants"]
    assert variant["flops"] == {"bf16": 4_000, "f32": 60}
    assert variant["tensor_cores"] == ["bf16"]


def test_the_floor_is_never_above_what_a_variant_does():
    capture = compiled(floor=10 * ARRAY)
    document = json.loads(render(report(capture), format="json"))
    assert document["floor"]["transfers"] == 3.0


def test_a_saved_count_on_paper_comes_back_as_it_was():
    own = (Work("mine::op", "kernel", "mine::op", read=8, written=4, at_most=True),)
    paper = eager(flops=(("bf16", 4_000),), tensor_cores=("bf16",), own=own)
    capture = replace(paper, notes=(Note("at-least", "mm"),))
    assert saved.load(saved.dump([capture]), "x") == (capture,)


def measured(*besides):
    """A run on a GPU with what paper says of it."""
    whole = samples.add_relu()
    return replace(whole, runs=(replace(whole.runs[0], besides=besides),))


def as_measured():
    return measured(Beside(eager(), same_calls=True), Beside(compiled(), same_calls=True))


def test_beside_a_measurement_that_agrees_paper_gives_the_transfers_alone():
    assert render(as_measured(), format="table") == (
        """\
add_relu   f32[100000000], f32[100000000]             NVIDIA H200 · torch 2.11.0

compile launches 1 kernel instead of 2. It makes 3 array transfers instead of 5,
which is the least possible. Its kernel takes 273 µs instead of 463 µs.

                 eager   compile
  kernels            2         1
  launches           2         1
  transfers        5.0       3.0   least possible 3.0, modelled
  kernel time   463 µs    273 µs   1.70x less

  eager                                                                     time
  1  add   vectorized_elementwise_kernel<CUDAFunctor_add<float>>          276 µs
  2  relu  vectorized_elementwise_kernel<launch_clamp_scalar>             187 µs
  compile                                                                   time
  1  triton_poi_fused_add_relu_0                                          273 µs

A kernel is one run of a GPU function; a launch is one CPU call that starts it.
A transfer is the largest array, read or written once.
"""
    )


def test_a_difference_from_paper_is_named():
    split = Difference("mm", 2, 1, "split-K adds 1 to mm")
    less = Beside(compiled(at_least=True), (split,), same_calls=True)
    text = render(measured(less, Beside(compiled(), same_calls=True)), format="table")
    assert "on paper" in text
    assert "note: eager: not as on paper: split-K adds 1 to mm.\n" in text
    document = json.loads(render(measured(less, None), format="json"))
    assert document["variants"][0]["paper"] == {
        "status": "measured", "kernels": 1, "generated": 1, "library": 0, "at_least": True,
        "differences": [
            {"name": "mm", "measured": 2, "paper": 1, "detail": "split-K adds 1 to mm"}
        ],
    }  # fmt: skip
    assert document["variants"][1]["paper"] is None


def with_ledger(*moved, at_most=False):
    """The eager run with bytes for each of its two kernels, as (read, written) or None."""
    capture = samples.eager()
    works = tuple(
        work if pair is None else replace(work, read=pair[0], written=pair[1], at_most=at_most)
        for work, pair in zip(capture.records.works, moved, strict=True)
    )
    own = works if at_most else ()
    ledger = replace(capture.records, works=works)
    return measured(Beside(eager(own=own), same_calls=True, ledger=ledger), None)


def test_each_kernel_that_paper_knows_has_its_memory_rate_beside_its_time():
    lines = render(with_ledger((2 * ARRAY, ARRAY), None), format="table").splitlines()
    first = next(i for i, line in enumerate(lines) if line.endswith("memory rate"))
    assert lines[first : first + 3] == [
        "  eager                                                       time   memory rate",
        "  1  add   vectorized_elementwise_ker…ctor_add<float>>      276 µs      4.3 TB/s",
        "  2  relu  vectorized_elementwise_ker…ch_clamp_scalar>      187 µs       unknown",
    ]


def test_json_bears_the_bytes_of_each_kernel_that_paper_knows():
    report = with_ledger((2 * ARRAY, ARRAY), None)
    rows = json.loads(render(report, format="json"))["variants"][0]["rows"]
    assert [row["bytes"] for row in rows] == [
        {"read": 2 * ARRAY, "written": ARRAY, "basis": "modelled"},
        None,
    ]


def test_what_a_kernel_of_ones_own_moves_is_at_most_what_it_is_given():
    report = with_ledger((2 * ARRAY, ARRAY), (ARRAY, ARRAY), at_most=True)
    text = render(report, format="table")
    assert "≤ 4.3 TB/s" in text
    assert "≤ 5.0" in text
    variant = json.loads(render(report, format="json"))["variants"][0]
    assert variant["bytes"]["basis"] == variant["rows"][0]["bytes"]["basis"] == "at most"


def test_a_narrow_screen_has_no_room_for_rates():
    narrow = render(with_ledger((2 * ARRAY, ARRAY), None), format="table", width=50)
    assert "memory rate" not in narrow


def test_bytes_of_other_kernels_than_those_that_ran_are_not_shown():
    other = Difference("generated kernels", 2, 1, "generated kernels: 2, on paper 1")
    document = json.loads(render(measured(Beside(compiled(), (other,)), None), format="json"))
    assert document["variants"][0]["transfers"] is None
    assert document["floor"] == {"bytes": 3 * ARRAY, "transfers": 3.0}  # it needs no kernels


def test_where_paper_cannot_count_the_measurement_stands_and_the_reason_is_a_note():
    unknown = Beside(Unmeasured("eager", "cannot count on paper with torch 3.0: no names"))
    report = measured(unknown, unknown)
    text = render(report, format="table")
    assert "note: not counted on paper: cannot count on paper with torch 3.0: no names.\n" in text
    assert "transfers" not in text
    assert report.exit_code == 0
    paper = json.loads(render(report, format="json"))["variants"][0]["paper"]
    assert paper == {
        "status": "unmeasured", "reason": "cannot count on paper with torch 3.0: no names",
    }  # fmt: skip


def test_markdown_and_csv_have_the_transfers_too():
    assert "| transfers | 5.0 | 3.0 | least possible 3.0, modelled |" in render(
        as_measured(), format="markdown"
    )
    lines = render(as_measured(), format="csv").splitlines()
    assert lines[1].endswith(",measured,,5.0,2,,,,,,,")


def test_bytes_that_are_a_lower_bound_say_so_and_are_not_told_as_a_difference():
    capture = eager(moves_more=True)
    add, relu = (replace(w, read=ARRAY, written=ARRAY) for w in capture.records.works)
    works = (add, replace(relu, at_least=True))
    bound = replace(capture, records=replace(capture.records, works=works))
    shown = render(report(bound, compiled()), format="table")
    assert "make 3 array transfers, eager at least 5." in " ".join(shown.split())
    assert "transfers ≥ 5.0 3.0 least possible 3.0" in " ".join(shown.split())
    other = render(report(compiled(), bound), format="table")
    assert "least possible 3.0" in other
    assert "instead of 3" not in other.partition("array")[2]
    entries = json.loads(render(report(bound), format="json"))["variants"]
    assert entries[0]["bytes"]["basis"] == "at least"
    assert entries[0]["transfers"] == 5.0
    assert [r["bytes"]["basis"] for r in entries[0]["rows"]] == ["modelled", "at least"]
    assert render(report(bound), format="csv").splitlines()[1].count(",5.0,") == 0


def test_bytes_bounded_from_both_sides_are_unknown():
    both = eager(moves_more=True, own=(Work("mine::op", "kernel", at_most=True),))
    assert "  transfers   unknown" in render(report(both), format="table")
    (entry,) = json.loads(render(report(both), format="json"))["variants"]
    assert entry["bytes"] is None
    assert entry["transfers"] is None


def test_nothing_is_the_least_possible_where_a_variant_moves_less_than_is_reckoned():
    less = compiled(read=ARRAY, written=ARRAY)
    assert "least possible" not in render(report(eager(), less), format="table")


def test_another_function_has_a_least_of_its_own():
    other = replace(compiled(floor=2 * ARRAY, read=ARRAY), name="fast.py:add_relu")
    shown = render(report(eager(read=2 * ARRAY, written=ARRAY), other), format="table")
    assert "least possible 3.0 or 2.0\n" in shown
    document = json.loads(render(report(eager(), other), format="json"))
    assert document["floor"]["transfers"] == 3.0
    assert "2 array transfers instead of 3, which is the least possible" in shown.replace("\n", " ")
