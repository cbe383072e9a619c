"""The elements of a JSON document's one big list, streamed in bounded memory.

A block is cut where one object ends and the next begins, and decoded as a list of its own. That is
exact, not a guess: text that starts at an element and decodes as balanced JSON can end nowhere but
at an element's end. Where a block does not decode, its elements are found one by one by their
brackets and strings, so that any layout works and one odd element costs only its block some speed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kernelcount.traces.source import BLOCK

T = TypeVar("T")

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
_BOUNDARY = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPENING, _CLOSING = b"{[", b"}]"
_NOT_NUMBERS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:inf|infinity|nan)\b', re.DOTALL | re.I)
_HEADER_LIMIT = 1 << 20  # a top-level value larger than this is no header: skipped, not kept
_CUT_TRIES = 64  # objects that end a block without ending an element: nested ones, a few at most


class Fault(NamedTuple):
    """What is wrong with the document. A fatal one ends the reading at byte `offset`."""

    code: str
    detail: str
    fatal: bool
    offset: int = 0


class Elements(Generic[T]):
    """Reads `{"...": ..., key: [elements], ...}` or a bare list from UTF-8 blocks.

    `decode` turns the bytes of a JSON list into elements and raises as msgspec does; `convert`
    turns one decoded element that `decode` refused into an element, or None to pass it over.
    After `batches` has ended, `header` holds the other top-level values (small ones, decoded),
    `found` whether there was a list, and `faults` what was wrong.
    """

    def __init__(
        self,
        blocks: Iterator[bytes],
        key: str,
        decode: Callable[[bytes], list[T]],
        convert: Callable[[Any], T | None],
    ) -> None:
        self.header: dict[str, Any] = {}
        self.faults: list[Fault] = []
        self.found = False
        self.key = key
        self._blocks, self._decode, self._convert = blocks, decode, convert
        self._buf, self._pos, self._base = b"", 0, 0
        self._ended = False
        self._replaced = self._lenient = 0

    @property
    def offset(self) -> int:
        """Bytes of the document consumed so far."""
        return self._base + self._pos

    def batches(self) -> Iterator[list[T]]:
        """Yield the elements in order, some hundred to some thousand at a time."""
        opening = self._peek()
        if opening == b"[":
            self._pos += 1
            self.found = True
            yield from self._list(bare=True)
        elif opening == b"{":
            self._pos += 1
            yield from self._members()
        else:
            self._fatal("malformed", "this is not a JSON object or list")
        if not self._fatal_seen() and self._peek():
            self._fatal("extra-data", "the document ended, but more bytes follow")
        self._report_leniency()

    def _members(self) -> Iterator[list[T]]:
        if self._peek() == b"}":
            self._pos += 1
            return
        while True:
            key = self._key()
            if key is None:
                return
            if key == self.key and self._peek() == b"[":
                if self.found:
                    self._fatal("malformed", f"{self.key} stands twice")
                    return
                self._pos += 1
                self.found = True
                yield from self._list(bare=False)
            else:
                self._value(key)
            if self._fatal_seen():
                return
            following = self._peek()
            self._pos += len(following)
            if following == b"}":
                return
            if following != b",":
                self._unexpected(following)
                return

    def _key(self) -> str | None:
        """The next member's key, its colon consumed; None after a fatal fault."""
        if self._peek() != b'"':
            self._unexpected(self._peek())
            return None
        while not (token := _TOKEN.match(self._buf, self._pos)) or len(token[0]) == 1:
            if not self._more():
                self._truncated()
                return None
        try:
            key = json.loads(token[0].decode("utf-8", "replace"), strict=False)
        except ValueError:
            self._fatal("malformed", "a key is not a JSON string")
            return None
        self._pos = token.end()
        if (colon := self._peek()) != b":":
            self._unexpected(colon)
            return None
        self._pos += 1
        return str(key)

    def _value(self, key: str) -> None:
        """Skip one top-level value; keep it in the header where it is small."""
        self._peek()
        start = self._pos
        if (end := self._element_end(grow_to=_HEADER_LIMIT)) is not None:
            self._pos = end
            value, ok = self._lenient_value(self._buf[start:end])
            if ok:
                self.header[key] = value
            else:
                self._fatal("malformed", f"the value of {key!r} is not JSON")
        elif self._ended and len(self._buf) - start <= _HEADER_LIMIT:
            self._truncated()
        else:
            self._skip_large()

    def _skip_large(self) -> None:
        """Pass over a value that is too large to keep, block by block."""
        depth = 0
        while True:
            token = _TOKEN.search(self._buf, self._pos)
            if token is None or token[0] == b'"':  # nothing more here, or a string without its end
                self._pos = token.start() if token else len(self._buf)
                if not self._more():
                    self._truncated()
                    return
                continue
            char = token[0][:1]
            if depth == 0 and char in (b",", b"}", b"]"):
                self._pos = token.start()
                return
            depth += (char in _OPENING) - (char in _CLOSING)
            self._pos = token.end()
            if depth == 0 and char in _CLOSING:
                return

    def _list(self, *, bare: bool) -> Iterator[list[T]]:
        """The elements up to the closing bracket, which is consumed."""
        if self._peek() == b"]":
            self._pos += 1
            return
        while True:
            if batch := self._block():
                yield batch
                continue
            batch, more = self._one_by_one(bare=bare)
            yield batch
            if not more:
                return

    def _block(self) -> list[T] | None:
        """All elements up to the last boundary of the buffer, or None where that does not do."""
        if len(self._buf) - self._pos < BLOCK // 2:
            self._more()
        buf, end = self._buf, len(self._buf)
        for _ in range(_CUT_TRIES):
            brace = buf.rfind(b"}", self._pos, end)
            if brace < 0:
                return None
            if boundary := _BOUNDARY.match(buf, brace):
                break
            end = brace
        else:
            return None
        chunk = b"".join((b"[", memoryview(buf)[self._pos : brace + 1], b"]"))
        batch = self._decoded(chunk)
        if batch is not None:
            self._pos = boundary.end() - 1
        return batch

    def _decoded(self, chunk: bytes) -> list[T] | None:
        if not chunk.isascii():
            try:
                # As json.loads does; msgspec does not look inside strings that it passes over.
                chunk.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                return None
        try:
            return self._decode(chunk)
        except msgspec.ValidationError:
            pass
        except (msgspec.DecodeError, RecursionError):
            return None
        try:
            decoded = msgspec.json.decode(chunk)
        except (msgspec.DecodeError, RecursionError):
            return None
        return [e for e in map(self._convert, decoded) if e is not None]

    def _one_by_one(self, *, bare: bool) -> tuple[list[T], bool]:
        """The elements that the buffer holds whole, each on its own; whether more follow."""
        batch: list[T] = []
        while True:
            if self._peek() == b"" or (end := self._element_end()) is None:
                return batch, self._list_open(bare=bare)
            value, ok = self._lenient_value(self._buf[self._pos : end])
            if not ok:
                self._fatal("malformed", "an event is not JSON")
                return batch, False
            if (element := self._convert(value)) is not None:
                batch.append(element)
            self._pos = end
            following = self._peek()
            if following == b"]":
                self._pos += 1
                return batch, False
            if following == b"":
                return batch, self._list_open(bare=bare)
            if following != b",":
                self._unexpected(following)
                return batch, False
            self._pos += 1

    def _list_open(self, *, bare: bool) -> bool:
        """At the end of the buffer inside the list: read on, or settle how it ended."""
        if self._more():
            return True
        if bare and self._peek() == b"":
            self.faults.append(Fault("open-list", "the list of events is not closed", fatal=False))
        else:
            self._truncated()
        return False

    def _element_end(self, grow_to: int = 0) -> int | None:
        """Where the element at the position ends, or None where the buffer ends first.

        With `grow_to` the buffer grows up to that many bytes to find it.
        """
        while True:
            depth = 0
            for token in _TOKEN.finditer(self._buf, self._pos):
                char = token[0][:1]
                if token[0] == b'"':
                    break
                if depth == 0 and char in (b",", b"}", b"]"):
                    return self._trimmed(token.start())
                depth += (char in _OPENING) - (char in _CLOSING)
                if depth == 0 and char in _CLOSING:
                    return token.end()
            if len(self._buf) - self._pos >= grow_to or not self._more():
                return None

    def _trimmed(self, end: int) -> int:
        return self._pos + len(self._buf[self._pos : end].rstrip(b" \t\r\n"))

    def _lenient_value(self, text: bytes) -> tuple[Any, bool]:
        """One value by the strictest reading that takes it, and whether any did."""
        try:
            string = text.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            string = text.decode("utf-8", "replace")
            self._replaced += 1
        try:
            return json.loads(string), True
        except RecursionError:
            return None, False
        except ValueError:
            pass
        numbers = _NOT_NUMBERS.sub(_null, string.encode("utf-8", "surrogatepass"))
        try:
            value = json.loads(numbers.decode("utf-8", "surrogatepass"), strict=False)
        except (ValueError, RecursionError):
            return None, False
        self._lenient += 1
        return value, True

    def _peek(self) -> bytes:
        """The next byte that is not white space, now at the position; empty at the end."""
        while True:
            space = _SPACE.match(self._buf, self._pos)
            self._pos = space.end() if space else self._pos
            if self._pos < len(self._buf):
                return self._buf[self._pos : self._pos + 1]
            if not self._more():
                return b""

    def _more(self) -> bool:
        """Append the next block and drop what is consumed; False at the end of the bytes."""
        block = b"" if self._ended else next(self._blocks, b"")
        if not block:
            self._ended = True
            return False
        self._base += self._pos
        self._buf = self._buf[self._pos :] + block
        self._pos = 0
        return True

    def _fatal_seen(self) -> bool:
        return bool(self.faults) and self.faults[-1].fatal

    def _fatal(self, code: str, what: str) -> None:
        at = self.offset
        self.faults.append(Fault(code, f"{what} (at byte {at})", fatal=True, offset=at))

    def _unexpected(self, char: bytes) -> None:
        if char == b"":
            self._truncated()
        else:
            self._fatal("malformed", f"unexpected {char.decode('ascii', 'replace')!r}")

    def _truncated(self) -> None:
        """The bytes ended inside a value: name the place as `json.loads` would."""
        rest = self._buf[self._pos :].decode("utf-8", "replace")
        at = self.offset
        try:
            json.loads(rest, strict=False)
        except json.JSONDecodeError as error:
            at += len(rest[: error.pos].encode("utf-8", "surrogatepass"))
        except RecursionError:
            pass
        self.faults.append(
            Fault("truncated", f"the file is cut off (at byte {at})", fatal=True, offset=at)
        )

    def _report_leniency(self) -> None:
        if self._replaced:
            detail = f"{self._replaced} events hold bytes that are not UTF-8; they were replaced"
            self.faults.append(Fault("not-utf8", detail, fatal=False))
        if self._lenient:
            detail = f"{self._lenient} events are not strict JSON (inf, nan, control characters)"
            self.faults.append(Fault("not-json", detail, fatal=False))


def _null(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b"null"
