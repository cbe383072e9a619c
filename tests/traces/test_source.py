"""A file's bytes: compressed or not, in any encoding that `json.loads` takes, from a pipe too."""

import gzip
import json
import os
import threading
import zlib

import pytest

from kernelcount.errors import UnreadableError
from kernelcount.traces import source
from kernelcount.traces.source import Source

TEXT = json.dumps({"name": "é€𝄞 " * 200, "traceEvents": [{"i": i} for i in range(300)]}, indent=1)
DATA = TEXT.encode()


@pytest.fixture
def read(tmp_path):
    """The bytes that a file of these bytes gives, and its source."""

    def from_bytes(data, name="trace.json"):
        path = tmp_path / name
        path.write_bytes(data)
        this = Source(path)
        return b"".join(this.blocks()), this

    return from_bytes


@pytest.fixture(params=[4, 100, 1 << 18], ids=lambda n: f"blocks of {n}")
def block(request, monkeypatch):
    """Read so many bytes at a time."""
    monkeypatch.setattr(source, "BLOCK", request.param)
    return request.param


@pytest.mark.usefixtures("block")
def test_plain_and_compressed_bytes_are_told_by_their_content_not_by_the_name(read):
    for name in ("trace.json", "trace.json.gz", "trace"):
        for data in (DATA, gzip.compress(DATA), gzip.compress(DATA, 0)):
            assert read(data, name)[0] == DATA


@pytest.mark.usefixtures("block")
def test_members_of_a_gzip_stream_are_one_text_padding_between_them_or_not(read):
    parts = [DATA[i : i + 37] for i in range(0, len(DATA), 37)]
    for padding in (b"", b"\0" * 7):
        data = padding.join(map(gzip.compress, [b"", *parts, b""]))
        found, this = read(data + padding)
        assert found == DATA
        assert this.cut_short is None


def test_short_members_are_gathered_into_blocks(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"".join(gzip.compress(DATA[i : i + 3]) for i in range(0, 3000, 3)))
    assert len(list(Source(path).blocks())) == 1


def test_every_truncation_of_a_gzip_stream_is_noticed(read):
    data = gzip.compress(DATA) + gzip.compress(b"more")
    whole = len(gzip.compress(DATA))
    for length in range(60, len(data)):
        found, this = read(data[:length])
        assert DATA.startswith(found[: len(DATA)])
        assert (this.cut_short is None) == (length == whole)


def test_a_gzip_stream_cut_before_any_byte_is_unreadable(read):
    for length in range(2, 12):
        with pytest.raises(UnreadableError, match="compressed stream ends early"):
            read(gzip.compress(DATA)[:length])


def test_damage_in_a_gzip_stream_is_noticed_the_check_sum_included(read):
    data = gzip.compress(DATA)
    for at in (len(data) - 8, len(data) - 2):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        found, this = read(damaged)
        assert found == DATA
        assert "damaged" in this.cut_short


def test_junk_after_a_gzip_stream_is_noticed(read):
    for junk in (b"x", b"\0\0x", b"\x1f\x8b", b"{}"):
        assert read(gzip.compress(DATA) + junk)[1].cut_short


def test_much_from_few_compressed_bytes_comes_in_blocks(tmp_path):
    path = tmp_path / "bomb.gz"
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    path.write_bytes(packed.compress(b"[" + b" " * 20_000_000) + packed.flush())
    assert max(map(len, Source(path).blocks())) <= 2 * source.BLOCK


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    "encoding",
    ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_the_encodings_that_json_loads_takes_are_taken(read, encoding):
    data = TEXT.encode(encoding)
    for packed in (data, gzip.compress(data)):
        found, this = read(packed)
        assert found == DATA
        assert not this.replaced


@pytest.mark.usefixtures("block")
def test_an_incomplete_character_at_the_end_is_replaced_and_said(read):
    found, this = read("[1, 2]".encode("utf-16-le") + b"\x00")
    assert found.decode() == "[1, 2]\ufffd"
    assert this.replaced


@pytest.mark.usefixtures("block")
def test_halves_of_surrogate_pairs_pass_in_utf16_as_in_json_loads(read):
    data = '["\ud800", 1]'.encode("utf-16", "surrogatepass")
    found, this = read(data)
    assert json.loads(found) == json.loads(data)
    assert not this.replaced


def test_an_empty_file_is_unreadable_be_it_compressed_or_a_byte_order_mark_alone(read):
    for data in (b"", gzip.compress(b""), gzip.compress(b"") * 3):
        with pytest.raises(UnreadableError, match="the file is empty"):
            read(data)
    assert read(b"\xef\xbb\xbf")[0] == b""


def test_what_is_no_file_is_unreadable_and_says_why(tmp_path):
    for path, why in (
        (tmp_path / "none.json", "no such file"),
        (tmp_path, "this is a folder; name the trace files in it"),
        (tmp_path / ("x" * 5000), "name too long"),
        (tmp_path / "a\0b", "null byte"),
    ):
        with pytest.raises(UnreadableError, match=f"(?i){why}"):
            list(Source(path).blocks())


def test_a_pipe_is_read_once_with_its_head_looked_at_first(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(DATA),))
    writer.start()
    told = []
    this = Source(path, lambda done, size: told.append((done, size)))
    assert DATA.startswith(this.head())
    assert b"".join(this.blocks()) == DATA
    assert this.again() is None
    assert all(done == size for done, size in told)
    writer.join()


def test_progress_is_told_in_bytes_of_the_file(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(DATA))
    told = []
    list(Source(path, lambda done, size: told.append((done, size))).blocks())
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
