"""A file's bytes as UTF-8 blocks.

Plain or gzip (by content, not by name), with or without a byte order mark, UTF-16 and UTF-32 as
`json.loads` takes them too. A file is opened once and read from start to end, so that a pipe will
do.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from kernelcount.errors import UnreadableError

BLOCK = 1 << 18
"""Bytes read at a time. Measured on 440 MB of events: what such a block decodes to stays in the
processor's cache, and there are few enough of them; 64 KiB and 1 MiB are both slower."""

Progress = Callable[[int, int], None]
"""Called with the bytes of the file read so far and its size, which of a pipe is not known."""

_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 31  # zlib's number for: a gzip header and trailer, both checked
_FEWEST = 4  # bytes that tell how a file is compressed and encoded


class Source:
    """The blocks of one file.

    After the last block `cut_short` says what ended it early, if anything did, and `replaced`
    whether bytes had to be replaced that were no characters in the file's encoding.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.cut_short: str | None = None
        self.replaced = False
        self._progress = progress
        self._blocks = self._read()
        self._head: bytes | None = None

    def head(self) -> bytes:
        """The first block, which `blocks` will yield all the same. Raises as `blocks` does."""
        if self._head is None:
            self._head = next(self._blocks, b"")
        return self._head

    def blocks(self) -> Iterator[bytes]:
        """Yield non-empty UTF-8 blocks of some `BLOCK` bytes, once.

        Raises UnreadableError where the file cannot be opened or is empty.
        """
        if head := self.head():
            yield head
        yield from self._blocks

    def _read(self) -> Iterator[bytes]:
        file = self._opened()
        try:
            yield from self._utf8(file)
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        finally:
            file.close()

    def again(self) -> Source | None:
        """The same file for another reading; None where it is a pipe and can be read but once."""
        return Source(self.path) if self.path.is_file() else None

    def _opened(self) -> io.FileIO:
        try:
            return io.FileIO(self.path)
        except FileNotFoundError:
            raise self._unreadable("no such file") from None
        except IsADirectoryError:
            raise self._unreadable("this is a folder; name the trace files in it") from None
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        except ValueError as error:  # a name that no file can have
            raise self._unreadable(str(error)) from None

    def _unreadable(self, why: str) -> UnreadableError:
        return UnreadableError(f"{self.path}: {why}")

    def _utf8(self, file: io.FileIO) -> Iterator[bytes]:
        raw = _gathered(self._raw(file))
        first = next(raw, b"")
        if first.startswith(_GZIP):
            raw = _gathered(self._unzipped(chain((first,), raw)))
            first = next(raw, b"")
        if not first and self.cut_short:
            raise self._unreadable(f"{self.cut_short}, before any event")
        if not first:
            raise self._unreadable("the file is empty")
        encoding = json.detect_encoding(first[:_FEWEST])
        if encoding in ("utf-8", "utf-8-sig"):
            if first := first.removeprefix(codecs.BOM_UTF8):
                yield first
            yield from raw
        else:
            yield from self._recoded(chain((first,), raw), encoding)

    def _raw(self, file: io.FileIO) -> Iterator[bytes]:
        status = os.fstat(file.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        done = 0
        while block := file.read(BLOCK):
            done += len(block)
            if self._progress:
                self._progress(done, max(size, done))
            yield block

    def _unzipped(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """All members of a gzip stream, one after the other, with their check sums verified."""
        member = None
        for block in blocks:
            data = block
            while data or member:
                if member is None:
                    data = data.lstrip(b"\0")  # members may be padded with zeros
                    if not data:
                        break
                    member = zlib.decompressobj(_GZIP_FORMAT)
                before = member.copy()
                try:
                    text = member.decompress(data, BLOCK)
                except zlib.error as error:
                    self.cut_short = f"the compressed stream is damaged ({error})"
                    yield from _up_to_damage(before, data)
                    return
                if text:
                    yield text
                if member.eof:
                    data, member = member.unused_data, None
                    continue
                data = member.unconsumed_tail
                if not data and len(text) < BLOCK:
                    break
        if member is not None:
            self.cut_short = "the compressed stream ends early"

    def _recoded(self, blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
        """UTF-8 of another encoding. Halves of surrogate pairs pass, as `json.loads` has it."""
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        for block in chain(blocks, (b"",)):
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError:
                self.replaced = True
                decoder.errors = "replace"
                text = decoder.decode(block, final=not block)
                decoder.errors = "surrogatepass"
            if text:
                yield text.encode("utf-8", "surrogatepass")


def _up_to_damage(member: Any, data: bytes) -> Iterator[bytes]:
    """What a decompressor makes of the bytes before the one at which it fails."""
    try:
        for i in range(len(data)):
            yield member.decompress(data[i : i + 1])
    except zlib.error:
        pass


def _gathered(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks that are not small: a pipe and short gzip members come in drops."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size >= max(_FEWEST, BLOCK // 2):
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
