"""Words and numbers as a person reads them; no text of a trace passes here unchecked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from kernelcount.model import Environment, Row
from kernelcount.render.names import short_label, short_name

_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
_LONG = 10_000  # from here on, a power of ten is easier to read than its zeros
_FIGURES = 3  # significant ones: more than a single profiled call can promise would be noise

# Categories of characters that act instead of being seen: controls (newline and escape among them),
# formats (text direction, invisible joiners), line and paragraph separators.
_ACTING = ("Cc", "Cf", "Zl", "Zp")


def clean(text: str) -> str:
    r"""Make every character visible that could act on a screen: an escape becomes ``\x1b``.

    Names come from traces and from user code: they may hold escape sequences, newlines, marks that
    turn the direction of text, and halves of surrogate pairs, which no output could encode.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _visible(c) for c in text)


def prose(text: str) -> str:
    """Bring `text` onto one line, as a sentence: with a full stop where it has no end."""
    line = clean(" ".join(text.split()))
    return line if not line or line.endswith((".", "!", "?", "…")) else f"{line}."


def duration(ns: float | None) -> str:
    """Nanoseconds to three significant figures in the unit that suits; "?" where unknown."""
    if ns is None:
        return "?"
    for unit, size in _UNITS:
        value = _rounded(ns / size)
        if float(value) >= 1:
            return f"{value} {unit}"
    return f"{ns:.0f} ns" if ns else "0 µs"


def size(n: int) -> str:
    """Bytes to three significant figures, in decimal units: ``400 MB``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if float(value := _rounded(n / factor)) >= 1:
            return f"{value} {unit}"
    return f"{n} B"


def percent(share: float, digits: int = 0) -> str:
    """A share of one: ``41 %``."""
    return f"{share:.{digits}%}".replace("%", " %")


def occupancy(share: float) -> str:
    """A share of the warps that a GPU can hold; one that is not nothing is not shown as that."""
    return "under 1 %" if 0 < share < _HALF_A_PERCENT else percent(share)


_HALF_A_PERCENT = 0.005  # which would be rounded to 0


def rate(value: float, unit: str) -> str:
    """Amounts a second to three significant figures, in a decimal unit: ``3.35 TB/s``."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if float(shown := _rounded(value / factor)) >= 1:
            return f"{shown} {prefix}{unit}/s"
    return f"{value:.0f} {unit}/s"


def memory_rate(value: float) -> str:
    """Bytes a second to two significant figures or three: ``4.3 TB/s``, ``850 GB/s``."""
    for unit, factor in (("TB/s", 1e12), ("GB/s", 1e9)):
        if (n := value / factor) >= 0.9995:  # noqa: PLR2004  below, it would be shown as 1000
            return f"{n:.1f} {unit}" if n < 9.95 else f"{n:.0f} {unit}"  # noqa: PLR2004  as 10
    return f"{value / 1e6:.0f} MB/s"


def ratio(value: float) -> str:
    """Render a factor to three significant figures, such as ``1.70x``."""
    digits = len(str(int(float(_rounded(value)))))
    return f"{value:.{max(0, _FIGURES - digits)}f}x"


def transfers(value: float) -> str:
    """Arrays moved, to a tenth."""
    return "<0.1" if 0 < value < 0.05 else f"{value:.1f}"  # noqa: PLR2004  it would be shown as 0.0


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 kernel``, ``2 kernels``; plain digits, so that a search for the number finds it."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def amount(n: int) -> str:
    """A size as ``--size`` reads it, and never rounded: ``100``, ``1e8``, ``65536``."""
    if abs(n) < _LONG:
        return str(n)
    short = f"{n:.1e}".replace("e+0", "e").replace("e+", "e").replace(".0e", "e")
    return short if float(short) == n else str(n)


def about(value: float) -> str:
    """A size that is known to two figures at most."""
    return amount(int(float(f"{value:.2g}")))


def joined(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def target_name(spec: str) -> str:
    """Cut ``file.py:function`` down to the function."""
    return clean(spec.rpartition(":")[2] or spec)


def setting(environment: Environment, *, on_paper: bool = False) -> str:
    """Name device and torch version, as far as they are known."""
    device = environment.device or ("CPU" if environment.kind == "cpu" else None)
    if on_paper or environment.kind == "paper":
        device = f"on paper for {_article(environment.device)}"
    torch = environment.torch and f"torch {environment.torch}"
    return clean(" · ".join(part for part in (device, torch) if part))


def _article(card: str | None) -> str:
    """``an H200``, ``a T4``: as the first letter is spoken, a digit aside."""
    name = (card or "").removeprefix("NVIDIA ")
    if not name:
        return "an unknown GPU"
    return f"{'an' if name[0] in 'AEFHILMNORSX' else 'a'} {name}"


def caption(row: Row, *, full: bool = False) -> tuple[str, str]:
    """Say what a row is (the op that launched it, a copy, a fill, or nothing) and name it."""
    name = row.name if full or row.activity in ("copy", "fill") else short_name(row.name)
    if row.activity == "aten":
        name = short_label(name)
    label = row.activity if row.activity in ("copy", "fill") else short_label(row.label or "")
    return ("" if label == name else clean(label)), clean(name)


def left_out(rows: Sequence[Row]) -> str:
    """Sum up the rows that are not shown, such as ``… and 11 more (23 kernels, 40 µs)``."""
    counts = {"kernel": 0, "operation": 0, "copy": 0, "fill": 0}
    for row in rows:
        counts["operation" if row.activity in ("aten", "generated") else row.activity] += row.count
    parts = [
        plural(n, noun, "copies" if noun == "copy" else None) for noun, n in counts.items() if n
    ]
    times = [r.time_ns for r in rows if r.time_ns is not None]
    parts += [duration(sum(times))] if times else []
    return f"… and {len(rows)} more ({', '.join(parts)})"


def _rounded(value: float) -> str:
    """`value` to three significant figures, never as a power of ten."""
    text = f"{value:.{_FIGURES}g}"
    return f"{value:.0f}" if "e+" in text else text


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    if category not in _ACTING:
        return character
    code = f"{ord(character):02x}"
    short = len(code) == len("ff")
    return (
        f"\\x{code}"
        if short
        else f"\\u{code:0>4}"
        if len(code) <= len("ffff")
        else f"\\U{code:0>8}"
    )
