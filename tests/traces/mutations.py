"""Random and damaged traces, and what a plain `json.loads` reader makes of them.

    python tests/traces/mutations.py [HOW_MANY [SEED]]

runs that many through `kernelcount read` in this process, keeps those that went wrong in the
current folder and prints what was wrong.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernelcount import app
from kernelcount.errors import KernelcountError
from kernelcount.model import Report
from kernelcount.render import render
from kernelcount.traces import elements, source

DATA = Path(__file__).parent.parent / "data"
_ROWS_KEPT = 40

JUNK_BYTES = (
    b"NaN", b"Infinity", b"-Infinity", b"inf", b"nan", b"1e999", b"-1e999", b"1e-999",
    b"1" * 25, b"1" * 400, b"1" * 5000, b"-0", b"01", b"1.", b"null", b"true", b'"7"', b"[]",
    b"{}", b"[[[[", b"]]", b'"\\ud800"', b'"\\q"', b"\xff", b"\xed\xa0\x80", b"\xc3", b"\x00",
    b"\x1b[31m", b"\n", b'"', b"\\", b"},{", b"}", b"{", b"]", b"[", b",", b":",
    b'"ph":"B",', b'"ph":"E",', b'"cat":"kernel",', b'"cat":"cpu_op",', b'"args":{},',
    b'"traceEvents":[],', b'"traceEvents":5,', b'"x":' + b"[" * 2000, b"[" * 990 + b"]" * 990,
)  # fmt: skip
JUNK_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 10**25, -(10**25), 1 << 62, 1 << 63, -(1 << 63), 0.0, -0.5,
    1.5, 1e18, 1e300, float("inf"), float("-inf"), float("nan"), "", "7", "1.5", "x", "nan", "inf",
    "1e999", "X", "B", "E", "kernel", "Kernel", "KERNEL", "cuda_runtime", "cpu_op", "ac2g",
    "python_function", "\ud800", "\x1b[31m", "},{", "}]}", '"', [], [1], ["x"], [[]], {}, {"a": {}},
    [{"a": 1}, {"b": [{"c": "},{"}]}], {"device": 0}, "9" * 30, "１２",
)  # fmt: skip


def seeds() -> list[bytes]:
    """Small versions of all traces in tests/data, decompressed."""
    found = []
    for path in sorted([*(DATA / "cases").glob("FC*"), *(DATA / "h200").glob("*.gz")]):
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            try:
                data = gzip.decompress(data)
            except EOFError:
                continue
        found.append(_shortened(data))
    return found


def _shortened(data: bytes) -> bytes:
    """The same trace with fewer rows, in its own layout as far as that goes."""
    if len(data) < 8000:
        return data
    document = json.loads(data)
    rows = document["traceEvents"]
    kinds = ("kernel", "cuda_runtime", "cuda_driver", "user_annotation", "gpu_memcpy", "cpu_op")
    ranked = sorted(rows, key=lambda r: kinds.index(r["cat"]) if r.get("cat") in kinds else 9)
    ids = {id(row) for row in ranked[:_ROWS_KEPT]}
    document["traceEvents"] = [row for row in rows if id(row) in ids]
    return json.dumps(document, indent=1).encode()


def plain_count(data: bytes) -> int | None:
    """Kernels as a plain reader counts them, rows alike in every field once.

    Raises ValueError, RecursionError, EOFError or OSError where it cannot read the bytes; None
    where they hold no list of events.
    """
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except zlib.error as error:
            raise ValueError(str(error)) from None
    document = json.loads(data)
    rows = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        return None
    kernels = [r for r in rows if isinstance(r, dict) and r.get("cat") == "kernel"]
    return len({json.dumps(r, sort_keys=True) for r in kernels if r.get("ph") == "X"})


def damaged(chance: random.Random, known: list[bytes]) -> bytes:
    """One input: a seed, mutated a few times as values and as bytes, encoded somehow."""
    data = chance.choice(known)
    if chance.random() < 0.6:
        data = _with_odd_values(chance, data)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        data = chance.choice(_BYTE_MUTATIONS)(chance, data, known)
    if chance.random() < 0.2:
        data = _encoded(chance, data)
    if chance.random() < 0.2:
        data = _compressed(chance, data)
    return data


def _span(chance: random.Random, data: bytes, most: int = 400) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.randrange(1, most))


def _flip(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = chance.randrange(max(1, len(data)))
    return (
        data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :] if data else b""
    )


def _replace(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = chance.randrange(max(1, len(data)))
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _delete(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start, end = _span(chance, data, chance.choice((2, 20, 400)))
    return data[:start] + data[end:]


def _insert(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(JUNK_BYTES) + data[at:]


def _insert_member(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Junk where a member or an element begins: what keeps the document readable more often."""
    places = [m.end() for m in re.finditer(rb'[{,:\[]\s*(?=["{\d])', data)]
    at = chance.choice(places) if places else 0
    return data[:at] + chance.choice(JUNK_BYTES) + data[at:]


def _put_value(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Junk in the place of a number or a string."""
    values = list(re.finditer(rb'(?<=:)\s*(?:-?[\d.]+|"[^"]*")', data))
    if not values:
        return data
    value = chance.choice(values)
    return data[: value.start()] + chance.choice(JUNK_BYTES) + data[value.end() :]


def _truncate(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _duplicate(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start, end = _span(chance, data, 1000)
    return data[:end] + data[start:end] + data[end:]


def _swap(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    (a, b), (c, d) = sorted((_span(chance, data, 60), _span(chance, data, 60)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _splice(chance: random.Random, data: bytes, known: list[bytes]) -> bytes:
    other = chance.choice(known)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _capitalise(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    words = list(re.finditer(rb'"(kernel|cuda_runtime|gpu_memcpy|cpu_op|X|traceEvents)"', data))
    if not words:
        return data
    at = chance.choice(words).start() + 1
    return data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :]


def _random(chance: random.Random, _: bytes, __: list[bytes]) -> bytes:
    return chance.randbytes(chance.randrange(200))


_BYTE_MUTATIONS: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    _flip, _flip, _replace, _delete, _insert, _insert_member, _insert_member, _put_value,
    _put_value, _truncate, _duplicate, _swap, _splice, _capitalise, _random,
)  # fmt: skip


def _with_odd_values(chance: random.Random, data: bytes) -> bytes:
    """The trace with values changed, rows doubled and moved, written in some layout."""
    try:
        document = json.loads(data)
    except ValueError:
        return data
    rows = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows:
        return data
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        row = chance.choice(rows)
        if isinstance(row, dict):
            _change(chance, row)
    for _ in range(chance.choice((0, 0, 1, 3))):
        rows.insert(chance.randrange(len(rows) + 1), _copied(chance, chance.choice(rows)))
    if chance.random() < 0.1:
        chance.shuffle(rows)
    if chance.random() < 0.2:
        rows[:] = [_reordered(chance, row) for row in rows]
    return _written(chance, document, rows)


def _change(chance: random.Random, row: dict[str, Any]) -> None:
    args = row.get("args")
    inner = isinstance(args, dict) and args and chance.random() < 0.5
    target = args if inner else row
    if not target:
        return
    key = chance.choice(sorted(target))
    what = chance.random()
    if what < 0.15:
        del target[key]
    elif what < 0.3:
        target[key] = str(target[key])
    elif what < 0.4:
        target[chance.choice(("zz", "args", "cat", "ph", "ts", "correlation"))] = target[key]
    else:
        target[key] = copy.deepcopy(chance.choice(JUNK_VALUES))


def _copied(chance: random.Random, row: Any) -> Any:
    """A row once more: alike in every field, or nearly."""
    other = copy.deepcopy(row)
    if isinstance(other, dict) and chance.random() < 0.4:
        _change(chance, other)
    return other


def _reordered(chance: random.Random, row: Any) -> Any:
    return dict(chance.sample(sorted(row.items()), len(row))) if isinstance(row, dict) else row


def _written(chance: random.Random, document: Any, rows: list[Any]) -> bytes:
    ascii_only = chance.random() < 0.7
    style = chance.randrange(4)
    if style == 0:
        text = json.dumps(document, indent=chance.choice((0, 1, 4)), ensure_ascii=ascii_only)
    elif style == 1:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=ascii_only)
    elif style == 2:
        text = json.dumps(document, ensure_ascii=ascii_only)
    else:
        events = ",\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
        text = '{"a": 1, "traceEvents": [\n' + events + "\n]}"
    return text.encode("utf-8", "surrogatepass")


def _encoded(chance: random.Random, data: bytes) -> bytes:
    encoding = chance.choice(
        ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    )
    encoded = data.decode("utf-8", "replace").encode(encoding, "surrogatepass")
    return _truncate(chance, encoded, []) if chance.random() < 0.2 else encoded


def _compressed(chance: random.Random, data: bytes) -> bytes:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 5))))
    parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    whole = b"".join(gzip.compress(part, 1) for part in parts)
    what = chance.random()
    if what < 0.15:
        return _truncate(chance, whole, [])
    if what < 0.3:
        return _replace(chance, whole, [])
    if what < 0.4:
        return whole + chance.choice((b"\0" * 600, b"\0x", b"junk", b"\x1f\x8b"))
    return whole


def inputs(how_many: int, seed: int) -> Iterator[bytes]:
    """That many inputs, the same ones for the same seed."""
    known = seeds()
    for i in range(how_many):
        yield damaged(random.Random(f"{seed}:{i}"), known)


def with_blocks_of(size: int) -> None:
    """From now on traces are read in blocks of so many bytes."""
    source.BLOCK = elements.BLOCK = size
    elements._LEAST = max(1, min(1 << 10, size // 8))


def complaint(data: bytes, path: Path) -> str | None:
    """What `kernelcount read` does wrong with these bytes, which it reads from `path`."""
    path.write_bytes(data)
    try:
        right: int | str | None = plain_count(data)
    except (ValueError, RecursionError, EOFError, OSError) as error:
        right = f"{type(error).__name__}: {error}"[:200]
    try:
        report = app.read([path], None, lambda *_: None).report
    except KernelcountError as error:
        return None if error.code in (2, 3) and str(error) else f"exit {error.code}"
    return _fault_of(report, right)


def _fault_of(report: Report, right: int | str | None) -> str | None:
    text = render(report, format="json", width=80, colour=False, full=False)
    (entry,) = json.loads(text, parse_constant=_refused)["variants"]
    table = render(report, format="table", width=80, colour=False, full=False)
    if odd := re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", table):
        return f"the table shows {odd[0]!r}"
    if report.exit_code == 3:
        return None if entry["reason"] else "exit 3 and no reason"
    if report.exit_code:
        return f"exit {report.exit_code}"
    if isinstance(right, str) and not entry["notes"]:
        return f"exit 0, {entry['kernels']} kernels, no note; json.loads: {right}"
    if not isinstance(right, str) and entry["kernels"] != right:
        return f"exit 0, {entry['kernels']} kernels, right: {right}; notes: {entry['notes']}"
    return None


def region_fault(path: Path, region: str) -> str | None:
    """What goes wrong where only a region of the same file is asked for."""
    try:
        report = app.read([path], region, lambda *_: None).report
    except KernelcountError:
        return None
    render(report, format="json", width=80, colour=False, full=False)
    return None if report.exit_code in (0, 3) else f"exit {report.exit_code} with a region"


def _refused(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def main() -> None:
    """Run inputs through the reader, in blocks of several sizes."""
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    blocks = random.Random(seed)
    usual, wrong = source.BLOCK, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for i, data in enumerate(inputs(how_many, seed)):
            size = blocks.choice((usual, usual, 1, 50, 300, 2000))
            with_blocks_of(size)
            try:
                said = complaint(data, path) or region_fault(path, "ProfilerStep#1")
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            if said:
                wrong += 1
                name = f"wrong-{seed}-{i}.json"
                Path(name).write_bytes(data)
                print(f"{name} ({len(data)} bytes, blocks of {size}): {said}", flush=True)
    print(f"{how_many} inputs, {wrong} wrong")


if __name__ == "__main__":
    main()
