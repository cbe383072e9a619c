"""A GPU on paper: the device on which the user's code seems to run, and what it would launch."""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelcount import memory
from kernelcount.errors import KernelcountError, NotMeasuredError
from kernelcount.model import (
    NO_TIME,
    Break,
    Cost,
    Environment,
    Lane,
    Note,
    Paper,
    Place,
    Provenance,
    Records,
    Source,
    Sync,
    Work,
)
from kernelcount.paper import (
    adapter,
    atlas,
    bounds,
    cards,
    composites,
    cuda,
    origins,
    pretend,
    rules,
    scene,
    whole,
)
from kernelcount.paper.cards import Card
from kernelcount.paper.compiled import Compiler
from kernelcount.paper.log import Call, Log, plain_name
from kernelcount.paper.mode import make
from kernelcount.paper.traced import Numbering, in_its_graph
from kernelcount.paper.values import NoValue, Values

# What Dynamo and Inductor read once, as they are imported: torch/_dynamo/config.py and
# torch/_inductor/config.py.
_READ_BY_TORCH = ("TORCH", "TRITON")
# Where caches lie, and a pool of processes: they change no count, and torch sets them itself, as
# soon as a function is decorated (torch/_inductor/runtime/cache_dir_utils.py, async_compile.py).
_OF_NO_COUNT = frozenset({"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_WARM_POOL"})
# Inductor lowers all but few ops without it: a scan asks what Triton it is (torch/_inductor/
# codegen/triton.py), a user's own kernel is made of it.
_NO_TRITON = "No module named 'triton'"
_NEEDS_TRITON = (
    "Inductor asks for Triton to compile this, as for a cumsum, and it is not installed: "
    "pip install triton (no GPU is needed)"
)
# As Dynamo has it where an op fails in a trace.
_GOT = re.compile(r"^ *Explanation: Dynamo failed .*: got (.*)", re.MULTILINE)


def set_since(before: Mapping[str, str]) -> list[str]:
    """The variables for torch's compiler that were set since the environment was so."""
    changed = {k for k, v in os.environ.items() if before.get(k) != v} - _OF_NO_COUNT
    return sorted(k for k in changed if k.startswith(_READ_BY_TORCH))


class PretendedGpu:
    """A card that is not there, as a device to count on.

    Raises NotMeasuredError where this torch lacks what counting on paper needs, UnreadableError for
    an atlas that is asked for and is none.
    """

    kind = "paper"
    summary = "a GPU that need not be there"

    def __init__(self, card: Card) -> None:
        adapter.check()
        atlas.shipped()  # one that cannot be read is told of at once
        self.card = card
        self.values = Values()
        self._scene = scene.OF_ALL
        self._log = Log(card.name)
        self._compiler = Compiler(self._log)
        self._asked: str | None = None
        self._late: list[str] = []
        self._counted: list[Call] = []
        self._traced: tuple[Place, ...] = ()
        self._unit, self._floor = 0, 0
        self._held = 0
        self.syncs: tuple[Sync, ...] = ()

    def missing(self) -> str | None:
        """None: paper is always at hand."""
        return None

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Let the user's module believe in the card; must hold while it is imported."""
        before = dict(os.environ)
        with self.prepare():
            yield
        self._asked = self.values.asked
        self._late = set_since(before)

    @contextmanager
    def prepare(self, *, compiles: bool = False) -> Iterator[None]:
        """Let the user's code believe in the card; must hold while it makes arguments and runs.

        `compiles`: whether it is to be compiled.
        """
        self._log = Log(self.card.name)
        self._compiler = Compiler(self._log)
        self.values.begin()
        made = composites.for_card(self.card, self._log)
        mode = make(self._log, self.values, {**made, **composites.below_autograd()})
        attention = composites.attention(made)
        self._scene.begin(self._log, self.values)
        with ExitStack() as stack:
            stack.callback(self._scene.end)
            seen = stack.enter_context(pretend.AGpu(self._scene, self.card, compiles=compiles))
            stack.enter_context(composites.under_autograd(made))
            stack.enter_context(self._compiler.ready(attention))
            stack.enter_context(adapter.told_of_compiling(seen.lift, seen.put_on))
            stack.enter_context(mode)
            try:
                yield
            except NoValue as error:
                raise NotMeasuredError(str(error)) from None
            except Exception as error:
                for refusal in self._scene.refusals:
                    raise NotMeasuredError(refusal) from error
                if (reason := _not_done(error)) is not None:
                    raise reason from error
                raise

    def synchronize(self) -> None:
        """Nothing runs on it."""

    def profile(self, call: Callable[[], object], trace: Path) -> None:  # noqa: ARG002
        """There is nothing to record. Raises NotMeasuredError."""
        raise NotMeasuredError("nothing runs on paper, so there is no trace")

    def environment(self) -> Environment:
        """The card's name and torch's version, whose code generation is followed."""
        import torch

        major, minor = self.card.capability
        return Environment(
            cards.full_name(self.card),
            "paper",
            torch.__version__.partition("+")[0],
            architecture=f"sm_{major}{minor}",
        )

    def run(
        self,
        call: Callable[[], Any],
        given: Any,
        beside: str | None = None,
        reached: Iterable[Any] = (),
    ) -> None:
        """Make one call and note what it launches. `given`: its arguments, for the floor.

        `beside`: what else may launch kernels and is not counted here. `reached`: tensors that the
        call may read without being given them.

        To be called inside `prepare`. Raises what the call raises.
        """
        self._log.calls.clear()
        self._log.held = 0
        ends = bounds.Ends(given, reached)
        with self._log.opened():
            self._log.met = ends.met
            try:
                result = call()
            finally:
                self._log.met = None
            self._log.note_held(self.values)
            if beside is not None:
                self._log.note_open(beside)
            for doubt in self._scene.doubts:
                self._log.note_open(doubt)
        self._held = self._log.held
        self._unit, self._floor = ends.floor(result)
        self._counted = list(self._log.calls)
        self._traced = tuple(self._compiler.traced)

    @property
    def noted(self) -> tuple[Call, ...]:
        """What the last call did, its graphs not lowered yet."""
        return tuple(self._counted)

    def launched(self) -> Counter[object]:
        """What the last call launched, to compare with another; a graph stands for its kernels."""
        return _launched(self._counted)

    def lowered(self, noted: Sequence[Call]) -> tuple[Counter[object], int]:
        """The same with the kernels of each graph, and how many kernels those known are.

        To be called when `prepare` is over. Raises NotMeasuredError where Inductor is not followed.
        """
        calls, _ = self._lowered(noted)
        return _launched(calls), sum(c.cost.kernels for c in calls)

    def launches(self, noted: Sequence[Call]) -> bool:
        """Whether any of it would run on the card; to be called when `prepare` is over.

        Raises NotMeasuredError where Inductor is not followed.
        """
        calls, _ = self._lowered(noted)
        return any(c.cost.kernels or c.cost.copies or c.unknown or c.own for c in calls)

    def counted(self) -> tuple[Records, Paper, list[Note], Provenance]:
        """What the last call launched, and which lines; to be called when `prepare` is over.

        `syncs` then holds the waits of the CPU in that call.

        Raises NotMeasuredError where Inductor, or something else of the call, is not followed.
        """
        for reason in self._scene.refusals:
            raise NotMeasuredError(reason)
        calls, done = self._lowered(self._counted)
        self.syncs = tuple(wait for call in calls for wait in call.waits)
        paper = Paper(
            generated=sum(c.cost.kernels for c in calls if c.generated),
            library=sum(1 for c in calls if not c.generated and c.cost.kernels),
            at_least=not all(c.cost.exact for c in calls),
            read=sum(c.read for c in calls),
            written=sum(c.written for c in calls),
            unit=self._unit,
            floor=self._floor,
            bandwidth=self.card.bandwidth,
            bound_ns=bounds.least_time(calls, self._unit, self.card),
            flops=tuple(sorted(done.items())),
            tensor_cores=tuple(p for p in sorted(done) if p in self.card.limits.tensor_cores),
            own=tuple(_own(c) for c in calls if c.own),
        )
        notes = [*_notes(calls), *self.value_notes(), *self._told()]
        known = Provenance(_sources(calls), self._traced, origins.lacking())
        return _records(calls), paper, notes, known

    def without_breaks(self, question: whole.Question) -> whole.Trial:
        """Make the call that was counted as one graph, too; to be called inside `prepare`."""
        asked, doubtful = self.values.asked, set(self.values.doubtful)
        with self._scene.kept():
            try:
                return whole.tried(self._log, question)
            finally:
                self.values.asked, self.values.doubtful = asked, doubtful

    def costs(self, trial: whole.Trial, breaks: Sequence[Break]) -> tuple[tuple[Break, ...], Cost]:
        """What breaks cost; to be called when `prepare` is over."""
        return whole.costs(trial, breaks, lambda calls: self._lowered(calls)[0])

    def _lowered(self, noted: Sequence[Call]) -> tuple[list[Call], Counter[str]]:
        import torch

        try:
            with adapter.made_on_the_host(), adapter.quiet_lowering():
                return self._compiler.lowered(self.card, noted)
        except KernelcountError:
            raise
        except Exception as error:
            if _NO_TRITON in str(error):
                raise NotMeasuredError(_NEEDS_TRITON) from error
            first = next(iter(str(error).strip().splitlines()), "")
            raise NotMeasuredError(
                f"cannot count on paper with torch {torch.__version__}: Inductor did not lower a "
                f"graph: {type(error).__name__}: {first}"
            ) from error

    def value_notes(self) -> Iterator[Note]:
        """What is to be said of the values that the last `prepare` saw asked for."""
        if self.values.asked is not None:
            yield _asked(self.values.asked)
        if self.values.doubtful:
            names = ", ".join(sorted(map(plain_name, self.values.doubtful)))
            detail = f"the CPU cannot compute {names}; zeros stood for the values"
            yield Note("doubtful-values", detail)

    def _told(self) -> Iterator[Note]:
        if self._held:
            detail = (
                f"a call holds {memory.readable(self._held)} at once, and the memory of the "
                f"{self.card.name} is {memory.readable(self.card.memory)}: it would not fit, and "
                "is counted as if it did"
            )
            yield Note("too-large", detail)
        if self._asked is not None and self.values.asked is None:
            yield _asked(self._asked)
        if self._late:
            detail = (
                f"the module sets {', '.join(self._late)}, which torch's compiler reads before the "
                "module is imported on paper: not heeded"
            )
            yield Note("late-environment", detail)
        for what in self._scene.told:
            yield Note("idle-card", f"the function asks {what}")


def _launched(calls: Iterable[Call]) -> Counter[object]:
    """Names and counts; what launches nothing is left out, and so are bytes."""
    ran = (c for c in calls if c.graph is not None or c.cost != rules.NOTHING)
    return Counter((c.name, c.cost, c.graph) for c in ran)


def _asked(op: str) -> Note:
    detail = (
        f"the path depends on values ({plain_name(op)}): worked out on the CPU from real data of "
        "the same size"
    )
    return Note("values", detail)


def _not_done(error: Exception) -> KernelcountError | None:
    """What an exception is where it is not the user's: something that is not done on paper."""
    inner = adapter.inside_compiler(error)
    if isinstance(inner or error, KernelcountError):
        return inner or error  # type: ignore[return-value]
    if (reason := cuda.undone(error)) is not None:
        return reason
    text = str(inner or error).strip()
    line = next(iter(text.splitlines()), "")
    if (got := _GOT.search(text)) is not None:
        line = got[1]
    if inner is not None:
        said = f"{type(inner).__name__}: {line}"
        return NotMeasuredError(f"torch.compile fails here, as it may not on a GPU: {said}")
    return None


def of_card(name: str | None) -> PretendedGpu:
    """The card of this name, to count on. Raises UsageError for a name that there is not."""
    return PretendedGpu(cards.find(name))


def _records(calls: Iterable[Call]) -> Records:
    works: dict[Work, int] = {}
    index = array("i")
    for call in calls:
        label = None if call.generated else plain_name(call.name)
        # Of a call that is several kernels only all bytes are known: they stand at the first.
        moved = (call.read, call.written) if call.apart else (None, None)
        nothing = (0, 0) if call.apart else (None, None)
        kinds = ["kernel"] * call.cost.kernels + ["copy"] * call.cost.copies
        precision, flops = call.flops or (None, None)
        for activity in kinds:
            read, written = moved
            work = Work(
                call.name, activity, label, read=read, written=written,  # type: ignore[arg-type]
                flops=flops, precision=precision,
            )  # fmt: skip
            index.append(works.setdefault(work, len(works)))
            moved, flops, precision = nothing, None, None
    n = len(index)
    untimed = array("q", [NO_TIME]) * n
    lanes = (Lane("0", "paper"),)
    return Records(tuple(works), lanes, index, array("i", [0]) * n, untimed, untimed)


def _sources(calls: Iterable[Call]) -> tuple[Source | None, ...]:
    """Where each of the records comes from, in their order."""
    numbering, sources = Numbering(), list[Source | None]()
    calls = list(calls)
    several = len({op.family[0] for call in calls for op in call.ops if op.family}) > 1
    for call in calls:
        where = in_its_graph(call.where, several=several) if call.where else None
        source = where and replace(where, origins=numbering.origins(call.ops))
        sources += [source] * (call.cost.kernels + call.cost.copies)
    return tuple(sources)


def _own(call: Call) -> Work:
    """A call of somebody's own op, as the one kernel that it may be."""
    moved = {"read": call.read, "written": call.written} if call.apart else {}
    return Work(call.name, "kernel", plain_name(call.name), at_most=True, **moved)  # type: ignore[arg-type]


def _notes(calls: Iterable[Call]) -> Iterator[Note]:
    unknown = Counter(c.name for c in calls if c.unknown)
    if unknown:
        detail = f"Inductor's code makes calls that are not known here: {_listed(unknown)}"
        yield Note("unknown-call", detail)
    open_calls = Counter(plain_name(c.name) for c in calls if not c.cost.exact and not c.unknown)
    if open_calls:
        detail = f"may launch more kernels than counted: {_listed(open_calls)}"
        yield Note("at-least", detail)
    waiting = Counter(plain_name(c.name) for c in calls if c.more_waits)
    if waiting:
        detail = f"the CPU may wait for the GPU more often than counted: {_listed(waiting)}"
        yield Note("syncs-at-least", detail)
    wide = Counter(plain_name(c.name) for c in calls if c.again)
    if wide:
        more = memory.readable(sum(c.again for c in calls))
        detail = (
            f"more rows are at work at once than the L2 cache keeps, so that up to {more} are read "
            f"again, which are in no byte figure: {_listed(wide)}"
        )
        yield Note("read-again", detail)
    for source in dict.fromkeys(c.source for c in calls if c.source):
        yield Note("atlas", source)


def _listed(names: Counter[str]) -> str:
    return ", ".join(f"{n} ×{k}" if k > 1 else n for n, k in names.most_common())
