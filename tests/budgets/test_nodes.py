"""YAML with the place of every word."""

import pytest

from kernelcount.budgets import nodes
from kernelcount.errors import UsageError


def error_of(text):
    with pytest.raises(UsageError) as raised:
        nodes.parse(text, "b.yaml")
    return str(raised.value)


def test_words_stay_as_they_were_written_and_know_their_place():
    (document,) = nodes.parse("size: 1e6\nvariants:\n  - 'eager'\n", "b.yaml")
    size, variants = document.items.values()
    assert (size.text, size.plain, size.place) == ("1e6", True, nodes.Place("b.yaml", 1, 7))
    assert document.keys["variants"] == nodes.Place("b.yaml", 2, 1)
    assert (variants.items[0].text, variants.items[0].plain) == ("eager", False)


def test_a_file_of_nothing_holds_no_document():
    assert nodes.parse("", "b.yaml") == []
    assert nodes.parse("# a comment\n", "b.yaml") == []


def test_several_documents_are_read():
    assert [d.text for d in nodes.parse("a\n--- b\n", "b.yaml")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1\na: 2", "b.yaml:2:1: a stands twice, first in line 1"),
        ("a:\n\tb: 1", "b.yaml:2:1: a tab stands here: YAML is indented by spaces"),
        ("a: &x [1]\nb: *x", "b.yaml:2:4: *x: aliases are not read here; write it out"),
        ("a: !!python/name:os.system ''", "python/name:os.system: tags are not read here"),
        ("a: !mine 1", "b.yaml:1:4: !mine: tags are not read here"),
        ("[a, b]: 1", "b.yaml:1:1: a key must be a word"),
        ("a: {b: 1", "b.yaml:1:9: while parsing a flow mapping: expected ',' or '}'"),
        ("a: b: c", "b.yaml:1:5: mapping values are not allowed here"),
        ("a\0b", "b.yaml:1:2: the character U+0000 may not stand in YAML"),
    ],
)
def test_what_is_not_read_is_named_with_its_place(text, error):
    assert error in error_of(text)


def test_what_is_nested_without_end_is_refused_at_once():
    assert "nested deeper" in error_of("[" * 100_000)


def test_a_bomb_of_aliases_is_refused_before_it_goes_off():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 40)]
    assert error_of("\n".join(lines)).startswith("b.yaml:2:10: *a0: aliases")


def test_a_file_that_is_no_utf8_says_in_which_line(tmp_path):
    path = tmp_path / "b.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(UsageError, match=r"b.yaml:2: this is no UTF-8 text"):
        nodes.read(path, "b.yaml")


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "b.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    (document,) = nodes.read(path, "b.yaml")
    assert list(document.items) == ["a"]
