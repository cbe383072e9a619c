"""What graph breaks cost: the kernels of a call with its breaks, and of the same as one graph.

Where the host's code between the graphs asked for no value, the graphs, and the ops that ran
between them, are put into one, in the order in which they ran: nothing that a GPU does hung on that
code. Where it asked for one, what follows may hang on it, and Dynamo is asked to take the whole
function into one graph, with the reading of values in it, and without what is printed. Where
something else keeps breaking it, as the backward pass of a training step does, it is told what
those breaks cost that go by that. What none of this can do cannot be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any

from kernelcount.errors import KernelcountError, NotMeasuredError
from kernelcount.model import Break, Cost
from kernelcount.paper import adapter, host
from kernelcount.paper.log import Call, Log, plain_name
from kernelcount.paper.segments import Builder, Group, Recorder, Segment, Spot, view_of
from kernelcount.paper.steps import leaves
from kernelcount.paper.values import NoValue

MOST_OPS = 20
"""Ops of the user's, in all graphs of a call, up to which its breaks are looked into unasked.

A plain run has no more than a second or two for it. Measured with torch 2.13 on one core of a
server: 0.4 s for 2 ops, 0.7 s for 3 with two breaks; of eight blocks of a network, 40 ops, 4.7 s,
and 8 s with backward.
"""


@dataclass(frozen=True)
class Question:
    """How a call with breaks is made once more.

    `call` makes it and gives its result; `backward` goes back from the results that it is given,
    where that was asked for; `whole` makes the call with the function as one graph, `parts` with as
    many as Dynamo makes of it. `began`: when
    the count did, by time.perf_counter; one break after the other is looked into as long as that
    takes no longer than all before. `most_ops`: see MOST_OPS; None: as many as there are.
    """

    call: Callable[[], Any]
    backward: Callable[[list[Any]], None]
    whole: Callable[[], Any]
    parts: Callable[[], Any]
    dynamic: bool | None = None
    began: float = 0.0
    most_ops: int | None = None


@dataclass
class Trial:
    """Calls on paper, graphs not lowered yet: with all breaks, with none, and with one less.

    `checked`: those of the same parts, each compiled by itself from what was taken down: they must
    come to what the call itself does. `beside`: what the host's code launches that nobody counts,
    with breaks and without. `why`: how it was done without breaks, or why it cannot be. `fewer`:
    the call with some breaks, those that `stay`, and without those that are `gone`.
    """

    base: list[Call] = field(default_factory=list)
    beside: Counter[str] = field(default_factory=Counter)
    whole: list[Call] | None = None
    checked: list[Call] | None = None
    without: dict[Spot, list[Call]] = field(default_factory=dict)
    why: str = ""
    why_not_each: str = ""
    fewer: list[Call] | None = None
    gone: list[Spot] = field(default_factory=list)
    stay: list[Spot] = field(default_factory=list)


def tried(log: Log, question: Question) -> Trial:
    """Make the call with and without its breaks; to be called where the card is pretended."""
    trial = Trial()
    recorder = Recorder()
    try:
        log.recorder = recorder
        try:
            trial.base, result = _noted(log, question.call)
        finally:
            log.recorder = None
        trial.beside = recorder.beside
        most = question.most_ops
        if most is not None and recorder.ops > most:
            trial.why = f"of more than {most} ops it takes long to tell: --explain does"
            return trial
        if recorder.depends_on_values:
            reason = "what follows hangs on a value that is read"
            _by_dynamo(log, question, trial, recorder, reason)
            return trial
        try:
            _Parts(log, question, recorder, result).put_together(trial)
        except (Exception, NoValue) as error:  # noqa: BLE001  there is another way
            trial.checked = None
            trial.without.clear()
            _by_dynamo(log, question, trial, recorder, _why(error))
    except (Exception, NoValue) as error:  # noqa: BLE001  it costs the answer to this alone
        trial.whole, trial.fewer, trial.why = None, None, _why(error)
    return trial


def _why(error: BaseException) -> str:
    inner = adapter.inside_compiler(error) if isinstance(error, Exception) else None
    inner = inner or error
    if isinstance(inner, KernelcountError | NoValue):
        return _first_line(inner)
    return f"without the breaks it could not be followed ({type(inner).__name__})"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _noted(log: Log, call: Callable[[], Any]) -> tuple[list[Call], Any]:
    log.calls.clear()
    with log.opened():
        result = call()
    return list(log.calls), result


def _by_dynamo(log: Log, question: Question, trial: Trial, recorder: Recorder, why: str) -> None:
    """Have Dynamo take values, sizes and what is printed into its graph. `why`: why that way.

    Raises NotMeasuredError where all the breaks stay all the same.
    """
    with adapter.caches_forgotten(), adapter.values_captured():
        if not (said := _refused(question)):
            trial.whole, _ = _noted(log, question.whole)
            trial.why, trial.why_not_each = _TAKEN, why
            return
    why_not = f"{why}, and Dynamo makes no one graph of it: {said}"
    if any(host.unused(s.module.graph) for s in recorder.segments if s.module is not None):
        raise NotMeasuredError(f"{why_not}; and some of what it computes nobody uses")
    log.keeps = True  # what is read or printed, and used for that alone, is made all the same
    try:
        _without_prints(log, question, trial, recorder, why)
    finally:
        log.keeps = False
    if trial.whole is None and not trial.gone:
        raise NotMeasuredError(why_not)


def _without_prints(
    log: Log, question: Question, trial: Trial, recorder: Recorder, why: str
) -> None:
    """As one graph, or else with as few breaks as Dynamo makes."""
    trial.why = _LEFT_OUT
    with adapter.caches_forgotten(), adapter.values_captured(prints=False):
        if not _refused(question):
            trial.whole, _ = _noted(log, question.whole)
            trial.why_not_each = why
            return
    with adapter.caches_forgotten(), adapter.values_captured(prints=False):
        again, trial.fewer = _settled(log, question.parts)
    trial.stay = again.spots
    trial.gone = [spot for spot in recorder.spots if spot not in trial.stay]


def _refused(question: Question) -> str:
    """Why Dynamo makes no one graph of the function; empty where it does."""
    try:
        question.whole()
    except Exception as error:  # noqa: BLE001  there is another way, or it is told
        inner = adapter.inside_compiler(error) or error
        return str(inner) if isinstance(inner, KernelcountError) else _first_line(inner)
    return ""


_TAKEN = "with what is read and printed taken into the graph"
_LEFT_OUT = "with what is read taken into the graph, and without what is printed"
_MOST_CALLS = 8  # as torch goes on compiling a function anew: recompile_limit in its config


def _settled(log: Log, call: Callable[[], Any]) -> tuple[Recorder, list[Call]]:
    """Call until the same graphs are called twice in a row; where they broke, and what is called.

    Raises NotMeasuredError where they never are.
    """
    before: list[tuple[str, int | None]] | None = None
    for _ in range(_MOST_CALLS):
        log.recorder = recorder = Recorder()
        try:
            calls, _ = _noted(log, call)
        finally:
            log.recorder = None
        now = [(c.name, c.graph) for c in calls]
        if now == before:
            return recorder, calls
        before = now
    raise NotMeasuredError("without some of its breaks it is compiled again and again")


class _Parts:
    """The segments of a call, to be put together in one way or another."""

    def __init__(self, log: Log, question: Question, recorder: Recorder, result: Any) -> None:
        import torch

        if recorder.trouble:
            raise NotMeasuredError(recorder.trouble)
        self.log, self.question, self.segments = log, question, recorder.segments
        self.results = [t for t in leaves(result) if isinstance(t, torch.Tensor)]
        self._compiled: dict[object, Any] = {}

    def put_together(self, trial: Trial) -> None:
        """As one graph, as parts again, and with each break alone mended."""
        every = range(1, len(self.segments))
        if not every:
            trial.whole = trial.checked = trial.base
            return
        trial.whole = self._calls(())
        trial.checked = self._calls(every)
        spots = _spots(self.segments)
        places = list(dict.fromkeys(s for s in spots if s is not None))
        if len(places) < 2:  # noqa: PLR2004  one has the cost of all
            return
        if None in spots:
            trial.why_not_each = "its graphs do not follow each other in one function"
            return
        since = perf_counter()
        for place in places:
            if perf_counter() - since > since - self.question.began:
                trial.why_not_each = "to look into it would take longer than the count itself"
                return
            cuts = [cut for cut, spot in zip(every, spots, strict=True) if spot != place]
            trial.without[place] = self._calls(cuts)

    def _calls(self, cuts: Sequence[int]) -> list[Call]:
        """What the call comes to where only these cuts, between segments, are left."""
        bounds = list(pairwise((0, *cuts, len(self.segments))))
        builders = [Builder(self.segments[start:stop]) for start, stop in bounds]
        made = {view_of(t): t for b in builders for t in b.made}
        ids = {id(t) for t in made.values()} | {id(t) for b in builders for t in b.made}

        def known(tensor: Any) -> Any:
            return tensor if id(tensor) in ids else made.get(view_of(tensor), tensor)

        if any(
            known(t).grad_fn is not None and id(known(t)) not in ids
            for b in builders
            for t in b.takes
        ):
            raise NotMeasuredError("a part of it takes what was made elsewhere, with gradients")
        groups: list[Group] = []
        needed = {id(known(t)) for t in self.results}
        for builder in reversed(builders):
            groups.insert(0, builder.group(needed))
            needed |= {id(known(t)) for t in builder.takes}

        def call() -> None:
            for tensor in (t for g in groups for t in g.takes):
                if tensor.is_leaf:
                    tensor.grad = None
            now: dict[int, Any] = {}
            for bound, group in zip(bounds, groups, strict=True):
                given = [now.get(id(known(t)), t) for t in group.takes]
                made = self._run(bound, group, given)
                now.update((id(t), new) for t, new in zip(group.makes, made, strict=True))
            self.question.backward([now.get(id(known(t)), t) for t in self.results])

        call()  # what compiling asks the card is none of the call's
        return _noted(self.log, call)[0]

    def _run(self, bound: tuple[int, int], group: Group, given: list[Any]) -> Any:
        import torch

        part = self.segments[slice(*bound)]
        if len(part) < len(self.segments) and all(s.module is None for s in part):
            with torch.set_grad_enabled(part[0].grad):
                return group.module(*given)  # ops that run outside of any graph
        key = group.key()
        if key not in self._compiled:
            self._compiled[key] = torch.compile(
                group.module, fullgraph=True, dynamic=self.question.dynamic
            )
        with torch.set_grad_enabled(part[0].grad):
            return self._compiled[key](*given)


def _spots(segments: Sequence[Segment]) -> list[Spot | None]:
    """Where the graph broke at each cut; None where it did not break, but a function returned."""
    spots: list[Spot | None] = []
    last: Spot | None = None
    for segment in segments[:-1]:
        if segment.module is not None:
            last = segment.broke
        spots.append(last)
    return spots


def costs(
    trial: Trial, breaks: Sequence[Break], lowered: Callable[[list[Call]], list[Call]]
) -> tuple[tuple[Break, ...], Cost]:
    """Each break with its cost, and what they cost together; to be called when all was run.

    `lowered`: gives what Inductor launches for the graphs among the calls.
    """
    together = Cost(None, trial.why)
    each = [together] * len(breaks)

    def other(calls: list[Call]) -> list[Call]:
        """What Inductor launches for calls that were not counted: with them it may fail."""
        try:
            return lowered(calls)
        except Exception as error:
            raise NotMeasuredError(_NOT_LOWERED) from error

    try:
        base = lowered(trial.base)
        if trial.whole is not None:
            if trial.checked is not None:
                _check(trial, base, other(trial.checked))
            together = _cost(trial, base, other(trial.whole), "the breaks", trial.why)
            each = [_of_one(b, breaks, trial, base, other) for b in breaks]
        elif trial.fewer is not None:
            each = list(_of_those_gone(trial, breaks, base, other(trial.fewer)))
            together = Cost(None, _SOME_STAY)
    except Exception as error:  # noqa: BLE001  it costs the answer to this alone
        together = Cost(None, _why(error))
        each = [together] * len(breaks)
    if len(breaks) == 1:
        together = replace(together, why=together.why.replace("the breaks", "the break"))
        each = [together]
    return tuple(replace(b, cost=c) for b, c in zip(breaks, each, strict=True)), together


_NOT_LOWERED = "without the breaks Inductor of this torch writes no code for it"
_SOME_STAY = "some stay also with what is read taken into the graph, and what is printed left out"
_STAYS = "the graph breaks there also with what is read taken into it, and what is printed left out"


def _of_those_gone(
    trial: Trial, breaks: Sequence[Break], base: list[Call], fewer: list[Call]
) -> Iterator[Cost]:
    """What those breaks cost together that are gone, at the first of them."""
    gone = [b for b in breaks if (b.file, b.line) in trial.gone]
    others = f"the breaks at lines {', '.join(str(line) for _, line in trial.gone)}"
    what = others if len(trial.gone) > 1 else "it" if len(gone) == 1 else "all breaks of this line"
    for at in breaks:
        spot = (at.file, at.line)
        if gone and at is gone[0]:
            how = f"{trial.why}; the other breaks left as they are"
            yield _cost(trial, base, fewer, what, how)
        elif spot in trial.gone:
            yield Cost(None, f"what it costs is told with that at line {gone[0].line}")
        else:
            yield Cost(None, _STAYS if spot in trial.stay else _PARTED_NOTHING)


_PARTED_NOTHING = "no graph was parted there in the counted call"


def _check(trial: Trial, base: list[Call], again: list[Call]) -> None:
    if _kernels(base) != _kernels(again) or _open(base) - trial.beside != _open(again):
        raise NotMeasuredError(
            f"its parts come to {_kernels(again)} kernels when compiled by themselves, and not to "
            f"the {_kernels(base)} of the call"
        )


def _of_one(
    at: Break,
    breaks: Sequence[Break],
    trial: Trial,
    base: list[Call],
    lowered: Callable[[list[Call]], list[Call]],
) -> Cost:
    spot = (at.file, at.line)
    if sum((b.file, b.line) == spot for b in breaks) > 1:
        return Cost(None, "several breaks on one line")
    if spot not in trial.without:
        return Cost(None, trial.why_not_each or _PARTED_NOTHING)
    return _cost(
        trial, base, lowered(trial.without[spot]), "it", "the other breaks left as they are"
    )


def _cost(trial: Trial, base: list[Call], without: list[Call], what: str, how: str) -> Cost:
    with_, without_ = _open(base) - trial.beside, _open(without) - trial.beside
    if with_ != without_:
        listed = [
            ", ".join(f"{name} x{n}" for name, n in sorted((a - b).items())) or "none of them"
            for a, b in ((with_, without_), (without_, with_))
        ]
        return Cost(
            None,
            f"calls that may launch more kernels than counted are others without {what}: "
            f"{listed[0]} with, {listed[1]} without",
        )
    before, after = _kernels(base), _kernels(without)
    more = f", {how}" if how else ""
    return Cost(before - after, f"on paper {before} with {what} and {after} without{more}")


def _kernels(calls: Sequence[Call]) -> int:
    return sum(call.cost.kernels for call in calls)


def _open(calls: Sequence[Call]) -> Counter[str]:
    """Calls of which it is not known how many kernels they launch."""
    return Counter(_called(call) for call in calls if not call.cost.exact)


def _called(call: Call) -> str:
    """``nonzero`` for the op as it is dispatched, and as Inductor calls it."""
    name = plain_name(call.name)
    return f"{name} (perhaps padded, {call.padded})" if call.padded else name
