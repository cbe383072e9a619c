"""The text of a lock file: what is read, and what stays when it is written again."""

import pytest

from kernelcount.budgets import lockfile, nodes
from kernelcount.budgets.lockfile import Entry, updated
from kernelcount.errors import UsageError

SETUP = (("gpu", "sm_90"), ("torch", "2.11.0"), ("triton", "3.6.0"), ("basis", "measured"))
COMPILE = Entry("a.py:f", "compile", SETUP, (("triton_poi_fused_add_relu_0", 1),), 0, 0)
EAGER = Entry("a.py:f", "eager", SETUP, (("aten::add", 1), ("void f<float, 4>(int)", 2)), 1, None)

BOTH = """\
# What each target launches, as `kernelcount check --update` saw it. A check on the same setup says
# what has changed since.

- target: a.py:f
  variant: compile
  setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", basis: measured}
  kernels: {triton_poi_fused_add_relu_0: 1}
  copies: 0
  fills: 0
- target: a.py:f
  variant: eager
  setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", basis: measured}
  kernels:
    "aten::add": 1
    "void f<float, 4>(int)": 2
  copies: 1
  fills: null
"""


def entries(text):
    return lockfile._entries(nodes.parse(text, "kernelcount.lock"))


def bare(found):
    from dataclasses import replace

    return [replace(entry, line=0) for entry in found]


def test_a_new_one_is_sorted_and_says_what_it_is():
    assert updated("", "kernelcount.lock", [EAGER, COMPILE]) == BOTH


def test_what_is_written_is_read_again_and_written_alike():
    assert bare(entries(BOTH)) == [COMPILE, EAGER]
    assert [entry.line for entry in entries(BOTH)] == [4, 10]
    assert updated(BOTH, "kernelcount.lock", [EAGER, COMPILE]) == BOTH


@pytest.mark.parametrize(
    "name", ["null", "1e6", "a: b", 'quo"te\\', "# no comment", "é漢", "\u2028\x1b", "k" * 3000, ""]
)
def test_any_name_is_read_as_it_was_written(name):
    entry = Entry("a.py:f", "compile", SETUP, ((name, 1),))
    assert bare(entries(updated("", "x", [entry]))) == [entry]


def test_another_yaml_reader_sees_the_same():
    import yaml

    first, second = yaml.safe_load(BOTH)
    assert first["setup"]["torch"] == "2.11.0"
    assert second["kernels"] == {"aten::add": 1, "void f<float, 4>(int)": 2}
    assert second["fills"] is None


def test_comments_and_other_entries_stay():
    text = """\
# Reviewed by us.

# Two kernels would be better.
- target: b.py:g
  variant: eager
  setup: {gpu: sm_80, torch: "2.11.0", basis: paper}   # an A100
  kernels: {old: 3}
# Why one: fused.
- target: a.py:f
  variant: compile
  setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", basis: measured}
  kernels:
    # generated
    triton_poi_fused_add_0: 1
  copies: 0
  fills: 0
# The end.
"""
    assert (
        updated(text, "kernelcount.lock", [COMPILE])
        == """\
# Reviewed by us.

# Why one: fused.
# generated
- target: a.py:f
  variant: compile
  setup: {gpu: sm_90, torch: "2.11.0", triton: "3.6.0", basis: measured}
  kernels: {triton_poi_fused_add_relu_0: 1}
  copies: 0
  fills: 0
# Two kernels would be better.
- target: b.py:g
  variant: eager
  setup: {gpu: sm_80, torch: "2.11.0", basis: paper}   # an A100
  kernels: {old: 3}
# The end.
"""
    )


def test_an_indented_list_is_no_other():
    indented = "".join(f"  {line}\n" for line in BOTH.splitlines())
    assert bare(entries(updated(indented, "x", [EAGER]))) == [COMPILE, EAGER]


def test_one_that_says_of_which_arguments_replaces_one_that_does_not():
    from dataclasses import replace

    text = updated("", "x", [COMPILE])
    sized = [replace(COMPILE, inputs=(f"f32[{n}]",)) for n in (10, 20)]
    assert bare(entries(updated(text, "x", sized))) == sized


def test_a_file_of_comments_alone_keeps_them():
    assert updated("# Ours.\n", "x", [COMPILE]).startswith("# Ours.\n- target: a.py:f\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1", "x:1:1: a lock file is a list of entries"),
        ("- target: a", "x:1:3: there is no variant in this entry"),
        ("- targte: a", "x:1:3: there is no key targte; did you mean target?"),
        (BOTH.replace("gpu: sm_90, ", ""), "x:6:10: setup does not say gpu"),
        (BOTH.replace("basis", "base"), "there is no key of setup: base; did you mean basis?"),
        (BOTH.replace("copies: 0", "copies: some"), "copies must be a whole number, and this is"),
        (BOTH.replace("eager", "compile"), "x:10:3: the same is recorded twice, first in line 4"),
        ("<<<<<<< ours\n" + BOTH, "x:5:1: "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text, error):
    with pytest.raises(UsageError) as raised:
        updated(text, "x", [COMPILE])
    assert error in str(raised.value)


def test_where_there_is_no_file_nothing_is_recorded(tmp_path):
    assert lockfile.read(tmp_path / lockfile.NAME) == []
