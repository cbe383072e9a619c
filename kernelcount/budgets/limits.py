"""One limit of a budget: what stands behind its name -> from where to where it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from kernelcount.budgets import nodes
from kernelcount.budgets.nodes import Node, Place, Scalar
from kernelcount.model import Bounds
from kernelcount.rules import RULES, Rule

OVER = "eager"
"""What a speedup is over where the budget does not say."""

_NUMBER = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([a-zA-Zµμ]*)")
_BYTES = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
_TIMES = {"": 1, "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_UNITS = {"bytes": _BYTES, "ns": _TIMES, "x": {"": 1, "x": 1}, "": {"": 1}}
_EXAMPLES = {"bytes": "12000000, 12 MB or 12 MiB", "ns": "50us, 1.5ms or 2s; alone it is in ns",
             "x": "1.3", "": "2"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: `name` is a row of `RULES`. `digits`: how many behind the point are compared."""

    variant: str
    name: str
    bounds: Bounds
    place: Place
    digits: int | None = None

    @property
    def rule(self) -> Rule:
        """What it limits."""
        return RULES[self.name]


def bounds(name: str, node: Node) -> tuple[Bounds, int | None]:
    """What a limit allows, and how many digits of it are compared."""
    rule = RULES[name]
    if isinstance(node, Scalar):
        value, digits = _number(node, name, rule)
        if rule.measured:
            raise node.place.error(
                f"{name} varies from run to run: write {name}: {{min: {node.text}}} or "
                f"{{max: {node.text}}}"
            )
        return Bounds(value, value), digits
    if isinstance(node, nodes.Sequence):
        raise node.place.error(f"{name} is a number, or {{min: …, max: …}}, and not a list")
    given = nodes.mapping(node, name)
    known = ("min", "max", "over") if name == "speedup" else ("min", "max")
    for key, place in given.keys.items():
        if key not in known:
            raise nodes.unknown(place, "bound", key, known)
    ends = {
        key: _number(value, f"{name}: {key}", rule)
        for key, value in given.items.items()
        if key != "over"
    }
    if not ends:
        raise given.place.error(f"{name} has no limit: write {name}: {{max: …}} or {{min: …}}")
    low, high = (ends[key][0] if key in ends else None for key in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise given.place.error(f"no {name} is at least {low:g} and at most {high:g}")
    over = nodes.text(given.items["over"], "over") if "over" in given.items else OVER
    digits = max((d for _, d in ends.values() if d is not None), default=None)
    return Bounds(low, high, over if name == "speedup" else ""), digits


def _number(node: Node, what: str, rule: Rule) -> tuple[float, int | None]:
    """A number with its unit, in that of the rule; and how many digits of it are compared."""
    text = node.text.strip() if isinstance(node, Scalar) and node.plain else ""
    match = _NUMBER.fullmatch(text)
    units = _UNITS[rule.unit]
    if match is None or match[2] not in units:
        shown = nodes.kind(node)
        raise node.place.error(f"{what} must be a number, such as {_EXAMPLES[rule.unit]}; "
                               f"this is {shown}")  # fmt: skip
    value = Decimal(match[1].replace("_", "")) * units[match[2]]
    if not isfinite(value):
        raise node.place.error(f"{what} is too large a number: {text}")
    whole = rule.unit in ("", "bytes") and not rule.measured and not rule.digits
    if whole and value != int(value):
        raise node.place.error(f"{what} is a whole number, and not {text}")
    written = max(0, -int(Decimal(match[1].replace("_", "")).as_tuple().exponent))
    return float(value), max(rule.digits, written) if rule.digits else None
