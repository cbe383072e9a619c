"""The label of a record is the outermost operator around its launch."""

from array import array

import pytest

from kernelcount.timeline.labels import Labels


def labels(*ops, processes=("p",) * 9):
    """Labels of ops given as (name, start, duration, External id[, thread])."""
    known = Labels()
    rows = [(*op, 0)[:5] for op in ops]
    known.add(
        [name for name, *_ in rows],
        array("i", [thread for *_, thread in rows]),
        (array("d", [op[1] for op in rows]), array("d", [op[2] for op in rows])),
        [op[3] for op in rows],
    )
    resolved = known.resolve(processes)
    outermost = {p: {i: ops[0] for i, ops in of.items()} for p, of in resolved.items()}
    return known, outermost


def test_an_op_inside_another_bears_the_outer_ones_name():
    _, found = labels(
        ("aten::relu", 0, 10, 1), ("aten::clamp_min", 2, 5, 2), ("aten::add", 20, 5, 3)
    )
    assert found == {"p": {1: "relu", 2: "relu", 3: "add"}}


def test_all_ops_are_told_from_the_outermost_to_the_one_that_bears_the_id():
    known, _ = labels(
        ("aten::contiguous", 0, 10, 1), ("aten::clone", 1, 8, 2), ("aten::empty", 2, 1, 3),
        ("aten::copy_", 4, 4, 4), ("aten::add", 20, 5, 5), ("aten::clone", 30, 5, 6),
    )  # fmt: skip
    assert known.resolve(["p"]) == {
        "p": {
            1: ("contiguous",),
            2: ("contiguous", "clone"),
            3: ("contiguous", "clone", "empty"),
            4: ("contiguous", "clone", "copy_"),
            5: ("add",),
            6: ("clone",),
        }
    }


def test_other_namespaces_stay_as_they_are():
    assert labels(("mylib::op", 0, 1, 1))[1] == {"p": {1: "mylib::op"}}


@pytest.mark.parametrize(
    "wrapper", ["autograd::engine::evaluate_function: MulBackward0", "Torch-Compiled Region: 0/0"]
)
def test_a_row_that_is_no_operator_is_no_label_and_hides_none(wrapper):
    _, found = labels((wrapper, 0, 50, 1), ("aten::mul", 5, 10, 2), ("aten::sum", 20, 10, 3))
    assert found == {"p": {2: "mul", 3: "sum"}}


def test_ops_that_follow_each_other_without_a_gap_do_not_nest():
    start = 5123940691778.763
    _, found = labels(("aten::a", start, 12.345, 1), ("aten::b", start + 12.345, 3.2, 2))
    assert found == {"p": {1: "a", 2: "b"}}


@pytest.mark.parametrize("turn", [1, -1], ids=["outer first", "inner first"])
def test_of_ops_that_start_together_the_longer_is_the_outer_one(turn):
    ops = [("aten::outer", 5, 10, 1), ("aten::inner", 5, 4, 2)]
    assert labels(*ops[::turn])[1] == {"p": {1: "outer", 2: "outer"}}


def test_the_order_in_the_file_does_not_matter():
    ops = [("aten::b", 20, 5, 3), ("aten::inner", 2, 5, 2), ("aten::a", 0, 10, 1)]
    assert labels(*ops)[1] == {"p": {1: "a", 2: "a", 3: "b"}}


def test_threads_do_not_nest_in_each_other():
    _, found = labels(("aten::a", 0, 100, 1, 0), ("aten::b", 5, 5, 2, 1))
    assert found == {"p": {1: "a", 2: "b"}}


def test_external_ids_are_counted_in_each_process_anew():
    ops = [("aten::a", 0, 10, 1, 0), ("aten::b", 0, 10, 1, 1)]
    assert labels(*ops, processes=("p", "q"))[1] == {"p": {1: "a"}, "q": {1: "b"}}


def test_ops_without_a_usable_external_id_label_nothing():
    ops = [("aten::a", 0, 1, None), ("aten::b", 2, 1, -5), ("aten::c", 4, 1, 1 << 70)]
    assert labels(*ops)[1] == {"p": {}}


def test_ops_at_the_top_level_are_those_in_no_other_row():
    known, _ = labels(("region", 0, 9, 1), ("aten::a", 1, 2, 2), ("aten::b", 10, 2, 3, 1))
    assert known.top_level() == 2
