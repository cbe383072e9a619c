"""Waits of the CPU and idle times of the GPU, on one that is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent
CASES = HERE.parent / "cases"
FILE = HERE / "waiting.py"


@pytest.fixture(autouse=True)
def _a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


def run(target, *flags, command="run"):
    """The entries of a document by their names."""
    asked = ["--device", "cuda"] if command == "run" else []
    done = subprocess.run(
        [sys.executable, "-m", "kernelcount", command, str(target), *flags, *asked,
         "--format", "json"],
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {v["name"]: v for v in json.loads(done.stdout)["variants"]}


def lines(entry):
    return [s["line"] for s in entry["syncs"]]


def marked(*words):
    """The lines of the file whose comment is one of these, in their order."""
    numbered = list(enumerate(FILE.read_text().splitlines(), 1))
    return [n for word in words for n, text in numbered if text.endswith(f"# {word}")]


def test_a_training_loop_has_its_three_waits_with_line_kind_and_price():
    eager = run(f"{FILE}:trains", "--inputs", "make_batches", "--variant", "eager")["eager"]
    kinds = ["pageable copy", "bool", "copy to host"] * 3
    assert [s["kind"] for s in eager["syncs"]] == kinds
    assert lines(eager) == marked("pageable", "tested", "metric") * 3
    assert {Path(s["file"]).name for s in eager["syncs"]} == {"waiting.py"}
    assert {s["function"] for s in eager["syncs"]} == {"trains"}
    assert all(isinstance(s["idle_ns"], int) and s["idle_ns"] > 0 for s in eager["syncs"])
    assert all(s["seen_by"] == ["trace", "debug mode"] for s in eager["syncs"])
    assert [s["hideable"] for s in eager["syncs"]] == [True, False, False] * 3
    assert eager["stable"]
    assert not [n for n in eager["notes"] if n["code"] == "syncs-unplaced"]


def test_the_cured_loop_has_none_and_the_same_kernels():
    bad = run(f"{FILE}:trains", "--inputs", "make_batches", "--variant", "eager")["eager"]
    cured = run(f"{FILE}:trains_cured", "--inputs", "make_pinned", "--variant", "eager")["eager"]
    assert cured["syncs"] == []
    assert cured["kernels"] < bad["kernels"]  # isnan is a kernel, too


def test_a_compiled_training_loop_waits_for_the_same_things():
    compiled = run(f"{FILE}:trains", "--inputs", "make_batches", "--variant", "compile")["compile"]
    kinds = {s["kind"] for s in compiled["syncs"]}
    assert "bool" in kinds
    assert kinds <= {"bool", "copy to host", "pageable copy"}
    assert {Path(s["file"]).name for s in compiled["syncs"]} == {"waiting.py"}


def test_printing_a_tensor_waits_at_the_users_line():
    for entry in run(f"{FILE}:prints", "--size", "1000").values():
        assert len(entry["syncs"]) > 1
        assert set(lines(entry)) == set(marked("printed"))


def test_what_is_asked_to_wait_for_has_its_line_and_nothing_to_wait_for_is_free():
    eager = run(
        f"{FILE}:asks_to_wait", "--inputs", "make_matrix", "--variant", "eager"
    )["eager"]  # fmt: skip
    assert lines(eager) == marked("nothing to wait for", "event", "stream")
    assert {s["kind"] for s in eager["syncs"]} == {"explicit"}
    assert [s["free"] for s in eager["syncs"]] == [True, False, False]


def test_a_wait_beside_other_work_is_free():
    eager = run(
        f"{FILE}:waits_beside_other_work", "--inputs", "make_matrix", "--variant", "eager"
    )["eager"]  # fmt: skip
    (sync,) = eager["syncs"]
    assert (sync["line"], sync["kind"]) == (marked("free")[0], "item")
    assert (sync["idle_ns"], sync["free"]) == (0, True)


def test_going_backward_leaves_the_lines_as_they_are():
    entries = run(f"{FILE}:scaled", "--size", "100000", "--backward")
    for entry in entries.values():
        assert lines(entry) == marked("scale")
        assert [s["kind"] for s in entry["syncs"]] == ["item"]


@pytest.mark.parametrize("name", ["no_sync_full", "no_sync_where"])
def test_without_a_wait_none_is_found(name):
    entries = run(f"{CASES}/FC14_hidden_syncs.py:{name}")
    assert [e["syncs"] for e in entries.values()] == [[], []]


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("by_item", "item", 5), ("by_nonzero", "nonzero", 6), ("by_bool_mask", "mask", 7),
        ("by_branch", "bool", 8), ("by_tolist", "copy to host", 9),
        ("by_scalar_tensor", "pageable copy", 10),
    ],
)  # fmt: skip
def test_each_way_to_wait_has_its_kind(name, kind, line):
    eager = run(f"{CASES}/FC14_hidden_syncs.py:{name}", "--variant", "eager")["eager"]
    assert [(s["kind"], s["line"]) for s in eager["syncs"]] == [(kind, line)]


def test_small_kernels_leave_the_gpu_idle_and_it_is_said_what_the_cpu_did():
    eager = run(f"{FILE}:many_small", "--size", "1000", "--variant", "eager")["eager"]
    assert eager["busy_share_of"] == "call"
    assert 0 < eager["busy_share"] < 0.9
    assert eager["idle_ns"] >= sum(g["duration_ns"] for g in eager["gaps"][:1]) > 0
    first = eager["gaps"][0]
    assert sum(d["time_ns"] for d in first["doing"]) == first["duration_ns"]
    assert {"mul", "sub"} >= {first["after"]}


def test_large_kernels_leave_no_gap():
    eager = run(f"{FILE}:many_small", "--size", "1e8", "--variant", "eager")["eager"]
    assert eager["gaps"] == []
    assert eager["busy_share"] > 0.9


def test_a_trace_that_was_kept_has_the_same_waits_without_lines(tmp_path):
    kept = tmp_path / "trace.json"
    (entry,) = run(
        f"{FILE}:trains", "--inputs", "make_batches", "--variant", "eager", "--trace", str(kept)
    ).values()  # fmt: skip
    (again,) = run(kept, command="read").values()
    told = [(s["kind"], s["op"], s["idle_ns"]) for s in entry["syncs"]]
    assert [(s["kind"], s["op"], s["idle_ns"]) for s in again["syncs"]] == told
    assert set(lines(again)) == {None}


def test_where_counting_was_on_paper_the_lines_are_the_same():
    measured = run(f"{FILE}:trains", "--inputs", "make_batches", "--variant", "eager")["eager"]
    done = subprocess.run(
        [sys.executable, "-m", "kernelcount", "run", f"{FILE}:trains", "--inputs", "make_batches",
         "--variant", "eager", "--device", "paper", "--format", "json"],
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    (paper,) = json.loads(done.stdout)["variants"]
    assert lines(paper) == lines(measured)
    assert [s["kind"] for s in paper["syncs"]] == [s["kind"] for s in measured["syncs"]]
