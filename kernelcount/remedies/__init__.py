"""Remedies, tried on the user's function: one row each in `REMEDIES`.

They come after counts and times, in the same process. What fails here costs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from kernelcount.capture import Progress, Subject, Way
from kernelcount.conclusions import comparison
from kernelcount.model import Capture, Remedy
from kernelcount.remedies import trial
from kernelcount.remedies.compiled import compiling
from kernelcount.remedies.facts import Attempt, Facts
from kernelcount.remedies.graphs import NAME, in_graph, no_graph_of_call, no_graphs
from kernelcount.remedies.precision import (
    in_bf16,
    in_tf32,
    no_bf16,
    no_tf32,
    products_without_tf32,
)


@dataclass(frozen=True)
class Kind:
    """A remedy. `against` is what it helps with: ``launches``, ``memory`` or ``arithmetic``.

    `to`: the kinds of variant that it is tried on; `why_not`: why it does not apply to one, empty
    where it does; `attempt` puts it to work.
    """

    summary: str
    against: tuple[str, ...]
    to: tuple[str, ...]
    why_not: Callable[[Facts], str]
    attempt: Callable[[Facts], AbstractContextManager[Attempt]]


def _applies(_: Facts) -> str:
    return ""


_PLAIN = ("eager", "module:function")
_ANY = (*_PLAIN, "compile")

REMEDIES: dict[str, Kind] = {
    "compile": Kind("torch.compile", ("memory", "launches"), _PLAIN, _applies,
                    compiling("compile")),
    "bf16": Kind("inputs and parameters in bfloat16", ("memory", "arithmetic"), _ANY, no_bf16,
                 in_bf16),
    "TF32": Kind("products of float32 on tensor cores", ("arithmetic",), _ANY, no_tf32, in_tf32),
    "compile:reduce-overhead": Kind("torch.compile with CUDA graphs", ("launches",), _PLAIN,
                                    no_graphs, compiling("compile:reduce-overhead")),
    NAME: Kind("the call recorded once and replayed", ("launches",), _PLAIN, no_graph_of_call,
               in_graph),
}  # fmt: skip
"""In the order in which they are tried: a capture that fails may leave the GPU's context unusable,
so that it comes last."""

Choice = Callable[[Facts], Mapping[str, str]]
"""Which remedies a variant is for: by name, why it is not tried, empty where it is to be."""


def in_principle(facts: Facts) -> dict[str, str]:
    """All that apply to such a function, whatever holds it back."""
    kind = facts.way.variant.kind
    return {name: row.why_not(facts) for name, row in REMEDIES.items() if kind in row.to}


def tried(
    subject: Subject,
    counted: Sequence[tuple[Way, Capture]],
    asked: Sequence[str],
    explain: Callable[[BaseException], str],
    progress: Progress,
    choose: Choice = in_principle,
) -> Iterator[tuple[int, Capture]]:
    """Try remedies on the first variant that was `asked` for, and on ``compile``.

    Gives the position of a variant with its capture, each time before something is tried, as it
    stands if the process ends by that, and at the end. `explain` words what user code raises.
    """
    captures = {way.variant.name: capture for way, capture in counted}
    bases = [
        (i, Facts(subject, way, capture, captures, tuple(asked)))
        for i, (way, capture) in enumerate(counted)
        if way.variant.name in (asked[0], "compile")
    ]
    found = {i: _settled(facts, choose, explain) for i, facts in bases}
    left = [(i, facts, name) for name in REMEDIES for i, facts in bases if name in found[i]]
    for i, facts, name in left:
        if found[i][name] is not None:
            continue
        found[i][name] = Remedy(name, "failed", "the process ended while this was tried")
        yield i, _with(facts, found[i])
        progress(f"trying {name} on {facts.capture.name}")
        found[i][name] = _try(name, facts, explain)
    for i, facts in bases:
        yield i, _with(facts, found[i])


def _settled(
    facts: Facts, choose: Choice, explain: Callable[[BaseException], str]
) -> dict[str, Remedy | None]:
    """What needs no trial; None for what does."""
    untimed = f"{facts.capture.name} was not timed" if facts.capture.timing is None else ""
    try:
        chosen = choose(facts)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the user's code is asked what it does
        return {name: Remedy(name, "failed", explain(error)) for name in REMEDIES}
    found: dict[str, Remedy | None] = {}
    for name, reason in chosen.items():
        why = untimed or reason
        found[name] = Remedy(name, "not tried", why) if why else _known(name, facts)
    return found


def _known(name: str, facts: Facts) -> Remedy | None:
    """What a variant of the run has shown already; None where there is none of that name."""
    if name not in facts.asked:
        return None
    capture = facts.counted.get(name)
    if capture is None or capture.timing is None:
        reason = f"the variant {name} was not timed in turn with {facts.capture.name}"
        return Remedy(name, "not tried", reason)
    speed = comparison.speed(facts.capture, capture)
    spoilt = next((n.detail for n in capture.notes if n.code in _NO_REMEDY), "")
    kernels = None if capture.on_cpu else capture.count("kernel")
    status = "failed" if spoilt else "tried"
    return Remedy(name, status, spoilt, speed, capture.numerics, kernels)  # type: ignore[arg-type]


_NO_REMEDY = ("not-compiled", "recompile-limit")
"""Notes which say that a compiled variant ran as eager code."""


def _try(name: str, facts: Facts, explain: Callable[[BaseException], str]) -> Remedy:
    try:
        remedy = trial.measure(name, facts, REMEDIES[name].attempt(facts))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  whatever user code raises costs this remedy
        remedy = Remedy(name, "failed", explain(error))
    if name != "TF32":
        return remedy
    return replace(remedy, rows=facts.rows(products_without_tf32(facts)))


def _with(facts: Facts, found: Mapping[str, Remedy | None]) -> Capture:
    """The capture with what is known; what is still to come, as if it never came."""
    to_come = "the process ended before this was tried"
    remedies = [r or Remedy(name, "not tried", to_come) for name, r in found.items()]
    return replace(facts.capture, remedies=tuple(remedies))
