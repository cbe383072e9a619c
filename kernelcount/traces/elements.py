"""The elements of a JSON document's one big list, streamed in bounded memory.

A block is cut where one object ends and the next begins, and decoded as a list of its own. That is
exact, not a guess: text that starts at an element and decodes as balanced JSON can end nowhere but
at an element's end. Where a block does not decode, a smaller one is tried, and at last an element
alone, found by its brackets and strings. So any layout works, and one odd element costs its
neighbours some speed and nothing else.

What `json.loads` reads is read to the same values. What it does not read is a fault: named, and
fatal where the rest of the document cannot be trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kernelcount.traces.source import BLOCK

T = TypeVar("T")

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
# What a token is shows in the group that matched: none for a whole string.
_TOKEN = re.compile(_STRING + rb'|([{\[])|([}\]])|(,)|(")', re.DOTALL)
_OPENING, _CLOSING, _COMMA, _CUT_STRING = 1, 2, 3, 4
_KEY = re.compile(_STRING, re.DOTALL)
_STRING_BODY = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_BOUNDARY = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
_SPACE = re.compile(rb"[ \t\r\n]*")
_NOT_NUMBERS = re.compile(_STRING + rb"|-?\b(?:inf|infinity|nan)\b", re.DOTALL | re.I)
_TWO_DIGITS = re.compile(rb"(?=\d\d)")

_HEADER_LIMIT = 1 << 20  # a top-level value larger than this is no header: skipped, not kept
_ELEMENT_LIMIT = 1 << 24  # an event that is larger has lost its end: nobody writes such
_LEAST = 1 << 10  # bytes below which elements are taken one by one
_STEP = 4  # a block that does not decode is followed by one smaller by this factor
_CUT_TRIES = 64  # closing braces looked at for a boundary: those before it close nested objects
_LONGEST_KEY = 64  # bytes from an element's brace to its first colon, as far as is looked
_STRIDE = 2048  # under half of the 4,300 digits that Python reads of an integer


class Fault(NamedTuple):
    """What is wrong with the document. A fatal one ended the reading."""

    code: str
    detail: str
    fatal: bool


class Elements(Generic[T]):
    """Reads `{"...": ..., key: [elements], ...}` or a bare list from UTF-8 blocks.

    `decode` turns the bytes of a JSON list into elements and raises as msgspec does; `convert`
    turns one decoded element that `decode` refused into an element, or None to pass it over.
    After `batches` has ended, `header` holds those of the other top-level values that `wanted`
    names, `found` whether there was a list, and `faults` what was wrong.
    """

    def __init__(
        self,
        blocks: Iterator[bytes],
        key: str,
        decode: Callable[[bytes], list[T]],
        convert: Callable[[Any], T | None],
        wanted: frozenset[str] = frozenset(),
    ) -> None:
        self.header: dict[str, Any] = {}
        self.faults: list[Fault] = []
        self.found = False
        self._key, self._wanted = key, wanted
        self._blocks, self._decode, self._convert = blocks, decode, convert
        self._buf, self._pos, self._base = b"", 0, 0
        self._ended = False
        self._window = 2 * BLOCK  # bytes to decode at once
        self._replaced = self._lenient = False

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
            if (key := self._member()) is None:
                return
            if key == self._key and self.found:
                # The last of two alike keys would count, and the first is counted already.
                self._fatal("malformed", f"{self._key} stands twice")
            elif key == self._key and self._peek() == b"[":
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

    def _member(self) -> str | None:
        """The next member's key, its colon consumed; None after a fatal fault."""
        if self._peek() != b'"':
            self._unexpected(self._peek())
            return None
        while (token := _KEY.match(self._buf, self._pos)) is None:
            if len(self._buf) - self._pos > _HEADER_LIMIT or not self._more():
                self._truncated()
                return None
        key, ok = self._lenient_value(token[0])
        if not ok:
            self._fatal("malformed", "a key is not a JSON string")
            return None
        self._pos = token.end()
        if (colon := self._peek()) != b":":
            self._unexpected(colon)
            return None
        self._pos += 1
        return str(key)

    def _value(self, key: str) -> None:
        """Pass over one top-level value; keep it in the header where it is small and wanted."""
        self._peek()
        end = self._value_end(_HEADER_LIMIT)
        if end is None:
            if self._ended and len(self._buf) - self._pos <= _HEADER_LIMIT:
                self._truncated()
            else:
                self._pass_over(key)
            return
        value, ok = self._lenient_value(self._buf[self._pos : end])
        self._pos = end
        if not ok:
            self._fatal("malformed", f"the value of {key!r} is not JSON")
        elif key in self._wanted:
            self.header[key] = value

    def _pass_over(self, key: str) -> None:
        """Leave out a value that is too large to look into."""
        size = f"{_HEADER_LIMIT >> 20} MiB"
        detail = f"the value of {key!r} is larger than {size}: passed over, not looked into"
        self.faults.append(Fault("passed-over", detail, fatal=False))
        depth = 0
        while True:
            token = _TOKEN.search(self._buf, self._pos)
            if token is None:
                self._pos = len(self._buf)
                if not self._more():
                    self._truncated()
                    return
                continue
            if depth == 0 and token.lastindex in (_CLOSING, _COMMA):
                self._pos = token.start()
                return
            self._pos = token.end()
            if token.lastindex == _CUT_STRING and not self._string_passed():
                return
            depth += (token.lastindex == _OPENING) - (token.lastindex == _CLOSING)

    def _string_passed(self) -> bool:
        """Consume the rest of a string without keeping it; False where the bytes end inside."""
        while True:
            body = _STRING_BODY.match(self._buf, self._pos)
            self._pos = body.end() if body else self._pos
            if self._buf[self._pos : self._pos + 1] == b'"':
                self._pos += 1
                return True
            if not self._more():
                self._truncated()
                return False

    def _list(self, *, bare: bool) -> Iterator[list[T]]:
        """The elements up to the closing bracket, which is consumed."""
        if self._peek() == b"]":
            self._pos += 1
            return
        more = True
        while more:
            batch = self._block()
            if batch is None:
                batch, more = self._single(bare=bare)
            yield batch

    def _block(self) -> list[T] | None:
        """The elements of the longest block that decodes, or None where one has to go alone."""
        if len(self._buf) - self._pos < BLOCK // 2:
            self._more()
        while boundary := self._boundary():
            brace = boundary.start() + 1
            chunk = b"".join((b"[", memoryview(self._buf)[self._pos : brace], b"]"))
            batch = self._decoded(chunk)
            if batch is not None:
                self._pos = boundary.end() - 1
                self._window = min(self._window * _STEP, 2 * BLOCK)
                return batch
            self._window = (brace - self._pos) // _STEP
            if self._window < _LEAST:
                break
        # The element that goes alone is taken for the odd one: what follows is tried as a block.
        self._window = min(max(self._window, _LEAST) * _STEP, 2 * BLOCK)
        return None

    def _boundary(self) -> re.Match[bytes] | None:
        """The last place in the window where an object ends and the next begins.

        Objects nested in the elements meet like that too: a place before the key with which this
        element begins is likelier to be between elements, and taken where there is one.
        """
        size = min(len(self._buf) - self._pos, self._window)
        if (colon := self._buf.find(b":", self._pos, self._pos + _LONGEST_KEY)) > 0:
            opening = self._buf[self._pos : colon]
            half = self._pos + size // 2
            if (brace := self._buf.rfind(opening, half, self._pos + size)) > 0:
                before = self._buf.rfind(b"}", half, brace)
                boundary = _BOUNDARY.match(self._buf, before) if before > 0 else None
                if boundary and boundary.end() - 1 == brace:
                    return boundary
        while size >= min(_LEAST, BLOCK):
            end = self._pos + size
            for _ in range(_CUT_TRIES):
                brace = self._buf.rfind(b"}", self._pos, end)
                if brace < 0:
                    return None
                if boundary := _BOUNDARY.match(self._buf, brace):
                    return boundary
                end = brace
            size //= _STEP  # an event of very many objects ends the window: look before it
        return None

    def _decoded(self, chunk: bytes) -> list[T] | None:
        if self._passes(chunk):
            try:
                return self._decode(chunk)
            except msgspec.ValidationError:
                return self._converted(chunk)
            except (msgspec.DecodeError, RecursionError):
                pass
        if chunk.count(b"[") != chunk.count(b"]") or chunk.count(b"{") != chunk.count(b"}"):
            return None  # cut inside an event, by the look of it: not worth a closer one
        value, ok = self._lenient_value(chunk)
        return self._elements(value) if ok else None

    def _passes(self, chunk: bytes) -> bool:
        """Whether the bytes are such that msgspec refuses what `json.loads` refuses.

        It does not look inside strings and numbers that it has no use for.
        """
        if not chunk.isascii():
            try:
                chunk.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                return False
        for pair in _TWO_DIGITS.finditer(chunk[::_STRIDE]):
            start = pair.start() * _STRIDE
            if chunk[start : start + _STRIDE].isdigit():
                return False
        return True

    def _converted(self, chunk: bytes) -> list[T] | None:
        try:
            decoded = msgspec.json.decode(chunk)
        except (msgspec.DecodeError, RecursionError):
            value, ok = self._lenient_value(chunk)
            return self._elements(value) if ok else None
        return self._elements(decoded)

    def _elements(self, decoded: list[Any]) -> list[T]:
        return [e for e in map(self._convert, decoded) if e is not None]

    def _single(self, *, bare: bool) -> tuple[list[T], bool]:
        """One element, and whether more follow."""
        if self._peek() == b"":
            self._open_list(bare=bare)
            return [], False
        end = self._value_end(_ELEMENT_LIMIT)
        if end is None:
            self._truncated()
            return [], False
        value, ok = self._lenient_value(self._buf[self._pos : end])
        if not ok:
            self._fatal("malformed", "an event is not JSON")
            return [], False
        batch = self._elements([value])
        self._pos = end
        following = self._peek()
        self._pos += len(following)
        if following == b"":
            self._open_list(bare=bare)
        elif following not in (b",", b"]"):
            self._unexpected(following)
        return batch, following == b","

    def _open_list(self, *, bare: bool) -> None:
        """The bytes end between two elements: the trace format allows that for a bare list."""
        if bare:
            self.faults.append(Fault("open-list", "the list of events is not closed", fatal=False))
        else:
            self._truncated()

    def _value_end(self, limit: int) -> int | None:
        """Where the value at the position ends; the buffer grows up to `limit` bytes to find it.

        None where the value or the bytes end later or earlier. Each byte is looked at once,
        strings that are not whole apart.
        """
        depth, seen = 0, 0
        while True:
            for token in _TOKEN.finditer(self._buf, self._pos + seen):
                kind = token.lastindex
                if kind == _CUT_STRING:
                    seen = token.start() - self._pos
                    break
                if depth == 0 and kind in (_CLOSING, _COMMA):
                    text = self._buf[self._pos : token.start()]
                    return self._pos + len(text.rstrip(b" \t\r\n"))
                depth += (kind == _OPENING) - (kind == _CLOSING)
                if depth == 0 and kind == _CLOSING:
                    return token.end()
                seen = token.end() - self._pos
            if len(self._buf) - self._pos >= limit or not self._more():
                return None

    def _lenient_value(self, text: bytes) -> tuple[Any, bool]:
        """One value by the strictest reading that takes it, and whether any did."""
        replaced = False
        try:
            string = text.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            string = text.decode("utf-8", "replace")
            replaced = True
        value, ok = _loaded(string)
        if not ok:
            numbers = _NOT_NUMBERS.sub(_null, string.encode("utf-8", "surrogatepass"))
            value, ok = _loaded(numbers.decode("utf-8", "surrogatepass"), strict=False)
            self._lenient |= ok
        self._replaced |= replaced and ok
        return value, ok

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

    def _fatal(self, code: str, what: str, at: int | None = None) -> None:
        at = self._base + self._pos if at is None else at
        self.faults.append(Fault(code, f"{what} (at byte {at})", fatal=True))

    def _unexpected(self, char: bytes) -> None:
        if char == b"":
            self._truncated()
        else:
            self._fatal("malformed", f"unexpected {char.decode('ascii', 'replace')!r}")

    def _truncated(self) -> None:
        """A value does not end: name the place as `json.loads` would."""
        rest = self._buf[self._pos :].decode("utf-8", "replace")
        at = self._base + self._pos
        try:
            json.loads(rest, strict=False)
        except json.JSONDecodeError as error:
            at += len(rest[: error.pos].encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            pass
        what = "cut off" if self._ended else "damaged"
        self._fatal("truncated", f"the file is {what}", at)

    def _report_leniency(self) -> None:
        if self._replaced:
            self.faults.append(
                Fault("not-utf8", "some bytes are not UTF-8: they were replaced", fatal=False)
            )
        if self._lenient:
            detail = "some events are not strict JSON (inf, nan, control characters)"
            self.faults.append(Fault("not-json", detail, fatal=False))


def _loaded(text: str, *, strict: bool = True) -> tuple[Any, bool]:
    try:
        return json.loads(text, strict=strict), True
    except (ValueError, RecursionError):
        return None, False


def _null(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b"null"
