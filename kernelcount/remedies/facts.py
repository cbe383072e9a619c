"""What is known of a variant before a remedy is tried on it, and what an attempt consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kernelcount.capture import Subject, Way, calling
from kernelcount.model import Capture, Numerics, Row
from kernelcount.probes import products
from kernelcount.variants import Variant


@dataclass(frozen=True)
class Facts:
    """One variant, counted and timed.

    `counted`: all that was, by name, this one included; `asked`: the variants that the run has.
    """

    subject: Subject
    way: Way
    capture: Capture
    counted: Mapping[str, Capture]
    asked: tuple[str, ...] = ()

    @property
    def gpu(self) -> bool:
        """Whether it runs on a GPU behind ``torch.cuda``."""
        return self.subject.device.kind == "cuda"

    @cached_property
    def products(self) -> frozenset[str]:
        """The families of `probes.products` of which the function has one in float32.

        Where the function cannot be watched, those that the capture names an op of: a guess.
        """
        function = self.way.function
        plain = Way(Variant("eager", "eager"), function, function)
        with calling(self.subject, plain) as (invocation, state):
            args, kwargs = state.before_call()
            try:
                return products.in_float32(lambda: invocation(args, kwargs))
            except Exception:  # noqa: BLE001  not all that runs can be watched at its work
                return frozenset(f for f in products.FAMILIES if self.rows([f]))

    def rows(self, families: frozenset[str] | list[str]) -> tuple[Row, ...]:
        """What the variant ran for products of these families."""
        ops = frozenset().union(*(products.FAMILIES[f] for f in families))
        works = (w for w in self.capture.records.works if ops & {w.op, w.label, _own(w.name)})
        about = {(w.name, w.caption) for w in works}
        return tuple(r for r in self.capture.rows() if (r.name, r.label) in about)


def _own(name: str) -> str:
    """A CPU operation's name is the op's."""
    return name.removeprefix("aten::")


def _nothing(_: Numerics) -> str:
    return ""


@dataclass(frozen=True)
class Attempt:
    """A remedy put to work: what is called in place of the variant, on which arguments.

    `during` holds round the calls. `precise`: it leaves the precision of the arithmetic as it is;
    where it does not, results are held against float64. `remark`, asked after the calls, says what
    spoils it, or raises NotMeasuredError where it is none at all.
    """

    way: Way
    subject: Subject
    during: Callable[[], AbstractContextManager[Any]] = nullcontext
    precise: bool = True
    remark: Callable[[Numerics], str] = _nothing
