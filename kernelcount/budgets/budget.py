"""Budgets, what functions may cost: YAML -> `Budget`, or an error that says what is wrong where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelcount import devices, inputs, target, variants
from kernelcount.budgets import nodes
from kernelcount.budgets.limits import OVER, Limit, bounds
from kernelcount.budgets.nodes import Mapping, Node, Place, PlacedError, Scalar
from kernelcount.errors import UsageError
from kernelcount.model import Environment, Held, Job, Status
from kernelcount.paper import cards
from kernelcount.rules import RULES


@dataclass(frozen=True, slots=True)
class Budget:
    """What one target may cost, as it stands at `place`; `target` is as written there.

    `variants` are the names as written, in the order of those of `job`. `overrides` replace limits
    where they apply: ``paper``, ``measured``, a kind of device or a card. `empty`: where a limit
    was to be expected and there is none, with the variant, "" for the whole budget.
    """

    place: Place
    target: str
    job: Job
    variants: tuple[str, ...]
    limits: tuple[Limit, ...]
    overrides: tuple[tuple[str, Limit], ...] = ()
    empty: tuple[tuple[str, Place], ...] = ()

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """Those that hold and those that may replace them."""
        return (*self.limits, *(limit for _, limit in self.overrides))

    def held(self, place: Place, variant: str, limit: str, status: Status, **more: object) -> Held:
        """What became of one limit, or of what else stands at `place`."""
        sizes = self.job.sizes
        return Held(
            place.file, place.line, self.target, variant, limit, status, column=place.column,
            size=sizes[0] if sizes else None, **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def limits_on(self, environment: Environment, basis: str) -> tuple[Limit, ...]:
        """The limits that hold there; what a card asks for outranks what a basis does."""
        card = cards.of_device(environment.device or "")
        applying = [basis, environment.kind or "", card.name if card else ""]
        held = {(limit.variant, limit.name): limit for limit in self.limits}
        for where in dict.fromkeys(applying):
            for asked, limit in self.overrides:
                if asked == where:
                    held[limit.variant, limit.name] = limit
        return tuple(held.values())


class Reader:
    """Reads the budgets of one file."""

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path.parent

    def budget(self, node: Node) -> Budget:
        """The budget that a document holds. Raises UsageError."""
        document = nodes.mapping(node, "a budget")
        for key, place in document.keys.items():
            if key not in _KEYS:
                raise nodes.unknown(place, "key", key, _KEYS)
        if "target" not in document.items:
            raise document.place.error("there is no target: write target: FILE.py:NAME")
        limits, empty = self._limits(document.items.get("budget"), document)
        overrides = tuple(self._overrides(document.items.get("on")))
        elsewhere = {limit.variant for _, limit in overrides}
        empty = [(v, p) for v, p in empty if v not in elsewhere and (v or not elsewhere)]
        budget = Budget(
            document.place,
            nodes.text(document.items["target"], "target"),
            Job("", variants=()),
            (),
            tuple(limits),
            overrides,
            tuple(empty),
        )
        names = _variants(self._asked(document), budget)
        return replace(budget, job=self._job(document, names), variants=names)

    def _asked(self, document: Mapping) -> list[str]:
        """The variants that are named to be run."""
        if "variants" not in document.items:
            return []
        names: list[str] = []
        for scalar in nodes.texts(document.items["variants"], "variants"):
            self._checked(scalar.place, variants.parse, scalar.text)
            if scalar.text in names:
                raise scalar.place.error(f"{scalar.text} stands twice")
            names.append(scalar.text)
        return names

    def _checked(self, place: Place, check: Callable[..., Any], *given: Any) -> Any:
        """What a check gives; where it refuses, the error says where that stands."""
        try:
            return check(*given)
        except PlacedError:
            raise
        except UsageError as error:  # it speaks of a flag, and here it is a key
            raise place.error(str(error).removeprefix("--")) from None

    def _job(self, document: Mapping, names: Sequence[str]) -> Job:
        """What a run is asked to do."""
        options: dict[str, Any] = {}
        for key, node in document.items.items():
            if key in _OPTIONS:
                name, read = _OPTIONS[key]
                options[name] = self._checked(node.place, read, node, key)
        where = document.items["target"].place
        if "inputs" in options and "maker" in options:
            place = document.keys["inputs"]
            raise place.error("input and inputs exclude each other")
        if (maker := options.get("maker")) and ":" in maker:
            options["maker"] = self._near(maker)
        spec = self._near(nodes.text(document.items["target"], "target"))
        self._checked(where, target.check, spec)
        return Job(spec, variants=tuple(self._near(n) for n in names), **options)

    def _near(self, spec: str) -> str:
        """A spec whose file is relative to the folder of the budget."""
        place, colon, name = spec.rpartition(":")
        if not place.endswith(".py") or Path(place).is_absolute():
            return spec
        return f"{self.folder / place}{colon}{name}"

    def _limits(
        self, node: Node | None, document: Mapping
    ) -> tuple[list[Limit], list[tuple[str, Place]]]:
        """The limits under ``budget``, and where there should be some."""
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return [], [("", document.keys.get("budget", document.place))]
        limits: list[Limit] = []
        empty: list[tuple[str, Place]] = []
        of_all = nodes.mapping(node, "budget")
        for variant, of_variant in of_all.items.items():
            found = list(self._of_variant(variant, of_variant, of_all.keys[variant]))
            limits += found
            empty += [] if found else [(variant, of_all.keys[variant])]
        return limits, empty or ([] if limits else [("", document.keys["budget"])])

    def _overrides(self, node: Node | None) -> Iterator[tuple[str, Limit]]:
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return
        every = nodes.mapping(node, "on")
        for word, of_all in every.items.items():
            where = self._where(word, every.keys[word])
            for variant, of_variant in nodes.mapping(of_all, f"on {word}").items.items():
                place = of_all.keys[variant] if isinstance(of_all, Mapping) else of_all.place
                for limit in self._of_variant(variant, of_variant, place):
                    yield where, limit

    def _where(self, word: str, place: Place) -> str:
        """A basis, a kind of device, or a card by the name that the table of cards has."""
        if word.lower() in _PLACES:
            return word.lower()
        try:
            return cards.find(word).name
        except UsageError:
            raise nodes.unknown(place, "basis or card", word, [*_PLACES, *cards.CARDS]) from None

    def _of_variant(self, variant: str, node: Node, place: Place) -> Iterator[Limit]:
        if variant in RULES:
            raise place.error(
                f"{variant} is a limit: it belongs under a variant, as in eager: {{{variant}: …}}"
            )
        self._checked(place, variants.parse, variant)
        if isinstance(node, Scalar) and node.is_null:
            return
        limits = nodes.mapping(node, f"the limits of {variant}")
        for name, value in limits.items.items():
            if name not in RULES:
                raise nodes.unknown(limits.keys[name], "limit", name, RULES)
            allowed, digits = bounds(name, value)
            if allowed.over:
                self._checked(value.place, variants.parse, allowed.over)
                if allowed.over == variant:
                    raise value.place.error(f"{variant} is compared with itself")
            yield Limit(variant, name, allowed, limits.keys[name], digits)


_PLACES = ("paper", "measured", "cuda", "hip", "xpu", "cpu")


def _variants(asked: Sequence[str], budget: Budget) -> tuple[str, ...]:
    """Every variant that is to be run: those asked for, or those with limits, and what they need.

    Results are compared with the first one's, which is eager unless the user says otherwise.
    """
    limits = budget.all_limits
    names = [*asked, *(limit.variant for limit in limits)]
    names += [limit.bounds.over for limit in limits if limit.bounds.over]
    if not asked:
        compared = any(limit.name == "max_error" for limit in limits)
        names = [OVER, *names] if compared or OVER in names else names
    names += [variant for variant, _ in budget.empty if variant]
    return tuple(dict.fromkeys(names)) or variants.DEFAULT[:1]


# ── what a budget says as the flags of `run` do ──────────────────────────────────────────────────


def _size(node: Node, key: str) -> tuple[int, ...]:
    if isinstance(node, nodes.Sequence):
        raise UsageError("several sizes: write a budget for each, in a list of them")
    return (inputs.parse_size(nodes.text(node, key)),)


def _specs(node: Node, key: str) -> tuple[str, ...]:
    every = tuple(nodes.texts(node, key))
    for scalar in every:
        try:
            inputs.parse_spec(scalar.text)
        except UsageError as error:
            raise scalar.place.error(str(error).removeprefix("--")) from None
    return tuple(scalar.text for scalar in every)


def _dtype(node: Node, key: str) -> str:
    word = nodes.text(node, key)
    if word not in inputs.DTYPES:
        raise nodes.unknown(node.place, "dtype", word, inputs.DTYPES)
    return word


def _device(node: Node, key: str) -> str:
    word = nodes.text(node, key)
    devices.parse(word)
    return word


def _gpu(node: Node, key: str) -> str:
    return cards.find(nodes.text(node, key)).name


def _seed(node: Node, key: str) -> int:
    word = nodes.text(node, key)
    if not re.fullmatch(r"-?[0-9]{1,18}", word):
        raise UsageError(f"{key} must be a whole number, and this is {word!r}")
    return int(word)


_OPTIONS: dict[str, tuple[str, Callable[[Node, str], Any]]] = {
    "size": ("sizes", _size),
    "input": ("inputs", _specs),
    "inputs": ("maker", nodes.text),
    "dtype": ("dtype", _dtype),
    "device": ("device", _device),
    "gpu": ("gpu", _gpu),
    "seed": ("seed", _seed),
    "backward": ("backward", nodes.truth),
    "no_grad": ("no_grad", nodes.truth),
    "eval": ("evaluate", nodes.truth),
}
_KEYS = ("target", *_OPTIONS, "variants", "budget", "on")
