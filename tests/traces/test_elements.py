"""The list of events is read as `json.loads` reads it, wherever the blocks are cut."""

import json

import msgspec
import pytest

from kernelcount.traces import elements
from kernelcount.traces.elements import Elements

ROWS = [
    {"ph": "X", "cat": "kernel", "name": "a},{b", "args": {"grid": [1, 2], "n": {"m": {}}}},
    {"args": {"cfg": [{"a": 1}, {"b": [{"c": "}]}"}]}]}, "name": "é€𝄞", "cat": "cpu_op"},
    {},
    {"name": 'quote " backslash \\ both \\" end\\', "ts": -1.5e-3},
    None, "junk },{ ]", 7, [], [{}, {"x": [{}, {}]}], True,
    {"name": "last"},
]  # fmt: skip
HEADER = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "},{"}], "unit": "ms"}
LAYOUTS = {
    "in one line": lambda doc: json.dumps(doc, separators=(",", ":")),
    "with spaces": json.dumps,
    "indented": lambda doc: json.dumps(doc, indent=2),
    "on lines without indent": lambda doc: json.dumps(doc, indent=0),
    "not escaped": lambda doc: json.dumps(doc, ensure_ascii=False, indent=1),
    "with odd white space": lambda doc: json.dumps(doc, indent="\t", separators=(" ,\r", " :\n ")),
}


def read(text, size=None, key="traceEvents", wanted=("deviceProperties",), most=1 << 30):
    """All elements of a text cut into blocks of `size` bytes, and the reader."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    size = size or len(data) or 1
    blocks = (data[i : i + size] for i in range(0, min(len(data), most), size))
    reader = Elements(blocks, key, msgspec.json.decode, lambda e: e, frozenset(wanted))
    return [e for batch in reader.batches() for e in batch], reader


def codes(reader):
    return [(fault.code, fault.fatal) for fault in reader.faults]


@pytest.fixture
def blocks_of(monkeypatch):
    """Decode in blocks of so many bytes."""

    def set_to(size):
        monkeypatch.setattr(elements, "BLOCK", size)
        monkeypatch.setattr(elements, "_LEAST", max(1, size // 8))

    return set_to


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_cut_of_every_layout_gives_the_same_elements(layout, blocks_of):
    text = layout({**HEADER, "traceEvents": ROWS, "after": [1]})
    known = [row for row in ROWS if row is not None]
    for size in range(1, len(text.encode()) + 1):
        blocks_of(size)
        found, reader = read(text, size)
        assert found == known
        assert not reader.faults
        assert reader.header == {"deviceProperties": HEADER["deviceProperties"]}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_bare_list_is_read_the_same_way(layout, blocks_of):
    text = layout(ROWS)
    for size in (1, 2, 3, 7, 50, 200, 10_000):
        blocks_of(size)
        assert read(text, size)[0] == [row for row in ROWS if row is not None]


def test_every_truncation_is_noticed_and_keeps_the_events_before_it(blocks_of):
    text = json.dumps({"traceEvents": [{"i": i, "s": "},{"} for i in range(6)]})
    for size in (5, 64, 1000):
        blocks_of(size)
        for length in range(1, len(text)):
            found, reader = read(text[:length], size)
            assert codes(reader) == [("truncated", True)]
            assert found == [{"i": i, "s": "},{"} for i in range(len(found))]


def test_a_truncation_is_placed_where_json_loads_places_it():
    text = '{"traceEvents": [{"a": 1}, {"b": '
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(text)
    assert f"byte {error.value.pos})" in read(text)[1].faults[0].detail


@pytest.mark.parametrize("text", ['[{"a": 1}, {"b": 2}', '[{"a": 1}, {"b": 2},', "[ "])
def test_a_bare_list_need_not_be_closed(text):
    found, reader = read(text)
    assert found == [{"a": 1}, {"b": 2}][: len(found)]
    assert codes(reader) == [("open-list", False)]


@pytest.mark.parametrize(
    "text",
    [
        "", "7", "null", '"text"', "{", '{"a"', '{"a" 1}', "{1: 2}", '{"a": 1,}', '{"a": }', "}{",
        '{"a": [}', '{"a": tru}', "\ufeff{}", '{"traceEvents": [,]}', '{"traceEvents": [{}',
        '{"traceEvents": [{},]}', '{"traceEvents": [{}}]}', '{"traceEvents": [{} {}]}',
        '{"traceEvents": [{"a": 1]}', '{"traceEvents": [{a: 1}]}', '{"traceEvents": [{}]} {}',
        '{"traceEvents": [{"a": 01}]}', '{"traceEvents": [{"a": "\\q"}]}', "[1 2]", "[[1}]",
        '{"traceEvents": [], "x": nul}', '{"traceEvents": []', '{"traceEvents": []]',
    ],
)  # fmt: skip
def test_what_is_not_json_is_a_fatal_fault_in_blocks_of_any_size(text, blocks_of):
    for size in (1, 3, 1000):
        blocks_of(size)
        _, reader = read(text, size)
        assert any(fatal for _, fatal in codes(reader)), text


def test_after_the_document_nothing_may_follow():
    assert codes(read('{"traceEvents": []} x')[1]) == [("extra-data", True)]
    assert codes(read('{"traceEvents": []} \n\t\r ')[1]) == []


def test_a_second_list_of_events_is_fatal_since_the_last_would_count():
    for second in ("[]", "5", "null"):
        _, reader = read('{"traceEvents": [{}], "traceEvents": ' + second + "}")
        assert codes(reader) == [("malformed", True)]


def test_of_a_value_and_a_list_of_the_same_name_the_last_counts():
    found, reader = read('{"traceEvents": 5, "traceEvents": [{"a": 1}]}')
    assert found == [{"a": 1}]
    assert codes(reader) == []


def test_the_name_of_the_list_may_be_escaped():
    assert read('{"trace\\u0045vents": [{"a": 1}]}')[0] == [{"a": 1}]


def test_what_json_loads_takes_beyond_json_is_taken_without_a_word():
    text = '[{"a": NaN}, {"b": [Infinity, -Infinity, 1e999]}, {"c": "\\ud800"}, {"d": 1}]'
    found, reader = read(text)
    assert repr(found) == repr(json.loads(text))
    assert codes(reader) == []


def test_halves_of_surrogate_pairs_pass_as_json_loads_lets_them():
    text = '[{"a": "\ud800"}, {"b": 1}]'
    assert read(text)[0] == json.loads(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "Inf", "NAN", "-nan", "infinity"])
def test_numbers_that_other_writers_print_are_null_and_noted(word):
    found, reader = read('[{"a": ' + word + ', "name": "inf nan"}, {"b": 1}]')
    assert found == [{"a": None, "name": "inf nan"}, {"b": 1}]
    assert codes(reader) == [("not-json", False)]


def test_control_characters_in_strings_are_kept_and_noted():
    found, reader = read('[{"a": "x\ty\x1b[31m\n"}, {"b": 1}]')
    assert found == [{"a": "x\ty\x1b[31m\n"}, {"b": 1}]
    assert codes(reader) == [("not-json", False)]


@pytest.mark.parametrize(
    "text",
    [
        b'[{"a": "x\xff"}]', b'[{"a": {"\xc3": 1}}, {}]', b'[{}, {"a": "\xe2\x82"}]',
        b'{"\xff": 1, "traceEvents": [{}]}', b'{"traceEvents": [{}], "b": ["\xff"]}',
    ],
)  # fmt: skip
def test_bytes_that_are_not_utf8_are_replaced_and_noted_wherever_they_stand(text, blocks_of):
    for size in (1, 4, 1000):
        blocks_of(size)
        _, reader = read(text, size)
        assert codes(reader) == [("not-utf8", False)]


def test_letters_cut_between_blocks_are_no_bad_bytes(blocks_of):
    text = json.dumps([{"name": "é€𝄞" * 30}] * 3, ensure_ascii=False)
    for size in range(1, 40):
        blocks_of(size)
        found, reader = read(text, size)
        assert found == json.loads(text)
        assert not reader.faults


def test_integers_of_more_digits_than_python_reads_are_fatal_even_where_nobody_looks():
    for digits, fatal in ((4300, False), (4301, True), (20_000, True)):
        text = '[{"a": 1}, {"zz": ' + "7" * digits + '}, {"b": 2}]'
        reader = Elements(iter([text.encode()]), "traceEvents", _blind, lambda e: e)
        assert sum(map(len, reader.batches())) == (1 if fatal else 3)
        assert bool(reader.faults) is fatal


class _Row(msgspec.Struct):
    a: int = 0


_blind = msgspec.json.Decoder(list[_Row]).decode


def test_a_digits_run_in_a_string_or_a_fraction_is_no_such_integer():
    text = json.dumps([{"a": "7" * 9000}, {"b": 1}])[:-1] + ', {"c": 0.' + "7" * 9000 + "}]"
    assert codes(read(text)[1]) == []


def test_nesting_too_deep_for_python_is_fatal():
    text = '[{"a": 1}, {"b": ' + "[" * 100_000 + "]" * 100_000 + "}]"
    found, reader = read(text)
    assert found == [{"a": 1}]
    assert codes(reader) == [("malformed", True)]


def test_one_odd_event_does_not_keep_its_neighbours_from_being_decoded_in_blocks():
    rows = [{"i": i} for i in range(20_000)]
    text = json.dumps(rows).replace('{"i": 777}', '{"i": 777, "bad": "\\u12"}')
    decoded = []

    def decode(chunk):
        decoded.append(len(chunk))
        return msgspec.json.decode(chunk)

    reader = Elements(iter([text.encode()]), "traceEvents", decode, lambda e: e)
    found = [e for batch in reader.batches() for e in batch]
    assert found == rows[:777]
    assert codes(reader) == [("malformed", True)]
    assert len(decoded) < 150


def test_events_of_many_nested_objects_are_decoded_in_blocks_too(blocks_of):
    blocks_of(1 << 14)
    rows = [{"i": i, "many": [{"a": 1}] * 100 + [{"b": {}}] * 100} for i in range(500)]
    batches = 0
    reader = Elements(
        iter([json.dumps(rows).encode()]), "traceEvents", msgspec.json.decode, lambda e: e
    )
    found = []
    for batch in reader.batches():
        found += batch
        batches += 1
    assert found == rows
    assert batches < 300


# Large values and memory


@pytest.fixture
def small_limits(monkeypatch):
    """What is large, at a size that a test can make."""
    monkeypatch.setattr(elements, "_HEADER_LIMIT", 10_000)
    monkeypatch.setattr(elements, "_ELEMENT_LIMIT", 100_000)


def _stream(parts):
    yield b'{"traceEvents": [{"a": 1}], '
    yield from parts
    yield b', "end": 1}'


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    "parts",
    [
        [b'"big": "', *[b'x\\"' * 2000] * 40, b'"'],
        [b'"big": [', *[b'{"a": "]"}, ' * 1000] * 20, b"1]"],
        [b'"big": ', *[b"7" * 10_000] * 20],
        [b'"big": {"a":', *[b'[{"a": "]"}, ' * 100, b"1" + b"]" * 100] * 20, b"}"],
    ],
    ids=["a string", "a list", "a number", "junk"],
)
def test_a_huge_value_beside_the_events_is_passed_over_in_bounded_memory_and_noted(parts):
    reader = Elements(_stream(parts), "traceEvents", msgspec.json.decode, lambda e: e)
    assert [e for batch in reader.batches() for e in batch] == [{"a": 1}]
    assert codes(reader) == [("passed-over", False)]
    assert len(reader._buf) < 30_000


@pytest.mark.usefixtures("small_limits")
def test_a_huge_value_that_does_not_end_is_a_truncation():
    parts = (b'{"traceEvents": [], "big": "' if i == 0 else b"x" * 10_000 for i in range(5))
    reader = Elements(parts, "traceEvents", msgspec.json.decode, lambda e: e)
    assert list(reader.batches()) == []
    assert codes(reader) == [("passed-over", False), ("truncated", True)]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("start", [b'[{"a": "', b'[{"a": [[[', b'[{"a": {"b": 1}, "c": '])
def test_an_event_that_never_ends_is_given_up_without_reading_all_of_the_file(start):
    taken = 0

    def blocks():
        nonlocal taken
        yield start
        for _ in range(1000):
            taken += 1
            yield b'{"x": [1, 2, 3]}, ' * 500

    reader = Elements(blocks(), "traceEvents", msgspec.json.decode, lambda e: e)
    assert [e for batch in reader.batches() for e in batch] == []
    assert codes(reader) in ([("truncated", True)], [("malformed", True)])
    assert taken < 100
