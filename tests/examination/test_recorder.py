"""Recording an atlas, on a device that launches what it is told to."""

from collections import Counter

import pytest

from kernelcount.devices import fake
from kernelcount.errors import NotMeasuredError
from kernelcount.examination import cases, recorder
from kernelcount.examination.cases import Case, all_cases, arrays
from kernelcount.paper import classes


@pytest.fixture
def record(tmp_path):
    """Record cases on the fake device, whose tensors are the CPU's."""

    def recorded(*wanted):
        return recorder.record(fake.Fake(), "cpu", tmp_path, lambda _: None, wanted, fake.annotate)

    return recorded


def case(op="sort", kernels=1, *, shape=(8,), call=None):
    import torch

    def launching(x):
        fake.launch("k", kernels=kernels(x) if callable(kernels) else kernels, op=f"aten::{op}")
        return (call or getattr(torch, op))(x)

    return Case(op, launching, arrays(torch.float32, shape))


def test_what_the_device_ran_is_counted_call_by_call(record):
    made = record(case(kernels=3, shape=(9000,)), case(kernels=2, shape=(9001,)))
    assert [(e.op, e.dtype, e.kernels, e.copies, e.calls) for e in made.entries] == [
        ("sort", "float32", 3, 0, ("9000",)),
        ("sort", "float32", 2, 0, ("9001",)),
    ]
    assert made.source.startswith("recorded on an fake device with torch ")


def test_calls_that_launch_alike_are_one_entry(record):
    (entry,) = record(case(shape=(9000,)), case(shape=(2, 9000))).entries
    assert entry.calls == ("9000", "2x9000")


def test_a_call_that_does_not_launch_the_same_twice_is_left_out(record):
    counts = iter((1, 1, 1, 2))
    shaky = case(kernels=lambda _: next(counts), shape=(9001,))
    (entry,) = record(case(shape=(9000,)), shaky).entries
    assert entry.calls == ("9000",)


def test_what_is_more_than_the_op_is_left_out(record):
    import torch

    (entry,) = record(case(), case(shape=(9,), call=lambda x: torch.sort(x + 1))).entries
    assert entry.calls == ("8",)


def test_what_cannot_be_run_is_left_out(record):
    def refuses(x):
        raise RuntimeError("no kernel image is available")

    (entry,) = record(case(), case(shape=(9,), call=refuses)).entries
    assert entry.calls == ("8",)


def test_nothing_recorded_is_an_error(record):
    with pytest.raises(NotMeasuredError, match="none of the ops"):
        record()


def test_nothing_is_recorded_where_torch_chooses_kernels_otherwise(record, monkeypatch):
    monkeypatch.setattr("torch.backends.cudnn.benchmark", True)
    with pytest.raises(NotMeasuredError, match="by default"):
        record(case())


# ── classes of shape ─────────────────────────────────────────────────────────────────────────────


def small_sorts(kernels=3, *shapes):
    return [case(kernels=kernels, shape=s) for s in shapes or ((2,), (90,), (4096,))]


def test_a_class_is_written_where_all_that_was_recorded_of_it_agrees(record):
    (entry,) = record(*small_sorts()).entries
    assert (entry.klass, entry.kernels) == ("rows 1, length 2-4096", 3)
    assert entry.calls == ("2", "90", "4096")


def test_a_class_whose_calls_differ_is_not_written(record):
    entries = record(*small_sorts(lambda x: 3 if len(x) > 80 else 2)).entries
    assert [(e.klass, e.kernels, e.calls) for e in entries] == [
        (None, 2, ("2",)),
        (None, 3, ("90", "4096")),
    ]


def test_a_class_without_all_its_corners_is_not_written(record):
    (entry,) = record(*small_sorts(3, (2,), (90,), (4095,))).entries
    assert (entry.klass, entry.calls) == (None, ("2", "90", "4095"))


# ── the cases ────────────────────────────────────────────────────────────────────────────────────


FEW = 5  # cases of an op that has no classes: the others differ in sizes alone


@pytest.fixture(scope="module")
def seen():
    """Cases with the op that paper sees in them, or None where it takes values."""
    import torch

    counts, chosen = Counter(), []
    for one in all_cases():
        counts[one.op] += 1
        if one.op in classes.BY_OP or counts[one.op] <= FEW:
            chosen.append(one)
    with torch.no_grad():
        return [(one, recorder._seen(one, "meta")) for one in chosen]


BY_VALUES = {
    "index", "masked_select", "nonzero", "repeat_interleave", "unique_consecutive",
    "_unique2",
}  # fmt: skip


def test_every_case_is_one_op_under_the_name_that_paper_has_for_it(seen):
    assert {one.op for one, op in seen if op is None} == BY_VALUES


def test_every_class_is_sampled_at_its_corners_and_inside(seen):
    measured = {}
    for _, op in seen:
        if op is not None and (klass := classes.of(op)) is not None:
            measured.setdefault((klass.op, klass.name), set()).add(klass.measure(op))
    for klass in classes.CLASSES:
        if klass.op not in BY_VALUES:
            assert klass.corners() < measured[klass.op, klass.name]


@pytest.mark.parametrize("name", ["index", "masked_select", "nonzero", "_unique2"])
def test_a_class_of_an_op_that_takes_values_is_sampled_so_too(name):
    import torch

    klass = next(c for c in classes.CLASSES if c.op == name)
    points = set()
    with torch.no_grad():
        for one in (c for sample in klass.samples() for c in cases._sampled(name, sample)):
            op = recorder._seen(one, "cpu")
            assert classes.of(op) is klass
            points.add(klass.measure(op))
    assert klass.corners() < points
