"""The process in which the user's code runs; outcomes come back as data.

`perform` does a job and tells what happens by messages. It runs here, in a process of its own
(`main`), or in the caller's process; which of the two is `runners`' business.
"""

from __future__ import annotations

import faulthandler
import fcntl
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec

from kernelcount import __version__
from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError, UserCodeError
from kernelcount.model import (
    NOT_TIMED,
    Capture,
    Environment,
    Job,
    Note,
    Numerics,
    Outcome,
    Target,
    Unmeasured,
    note_codes,
)
from kernelcount.traces import saved

if TYPE_CHECKING:
    from kernelcount.inhand import InHand

WHERE = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None
"""Asks a worker to write down where it is, before it is ended."""

LOWEST = 19
"""The priority that gives way to all others (nice)."""

_LONGEST_LINE = 300  # characters of an exception's text in a reason
_LONGEST_TEXT = 8000  # characters of an exception with its frames
_MOST_LINES = 80


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker process begins with: the folder of its job, and the step to begin at.

    `variables` are its environment. `quiet`: it works in the background, at the lowest priority,
    and what it prints is thrown away.
    """

    folder: str
    first: int
    variables: dict[str, str]
    quiet: bool = False


class Loading(msgspec.Struct, tag="loading"):
    """torch is imported; the user's code is imported from here on."""


class Loaded(msgspec.Struct, tag="loaded"):
    """The user's code is imported."""


class Begin(msgspec.Struct, tag="begin"):
    """A variant begins; `index` counts variants over all sizes."""

    index: int


class Ready(msgspec.Struct, tag="ready"):
    """The arguments are made."""

    environment: Environment
    target: Target


class Progress(msgspec.Struct, tag="progress"):
    """What is being done, in a few words."""

    text: str


class Together(msgspec.Struct, tag="together"):
    """Variants that were counted are timed in turn, or a remedy is tried on one of them.

    Their outcomes are sent once more then.
    """


class Done(msgspec.Struct, tag="done"):
    """A variant has ended. `outcome` is as `saved.dump` writes it.

    `said` is for stderr: the reason, with the user's frames below it. `rest` is why the variants to
    come at this size are not worth a try, empty where they are.
    """

    index: int
    outcome: msgspec.Raw
    said: str = ""
    rest: str = ""


class Unwritten(msgspec.Struct, tag="unwritten"):
    """A trace was recorded, but could not be written where it was wanted."""

    text: str


class Failed(msgspec.Struct, tag="failed"):
    """The job cannot be done at all: an exit code and what to say."""

    code: int
    message: str


class Ended(msgspec.Struct, tag="ended"):
    """The process ends here on its own account, whether or not steps are left."""


Message = Loading | Loaded | Ready | Begin | Progress | Together | Done | Unwritten | Failed | Ended
Send = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One variant at one size."""

    index: int
    variant: str
    size: int | None
    trace: str | None


def steps(job: Job) -> list[Step]:
    """The variants of a job in order, size by size."""
    sizes: tuple[int | None, ...] = job.sizes or (None,)
    pairs = [(size, variant) for size in sizes for variant in job.variants]
    traces = job.traces or (None,) * len(pairs)
    return [Step(i, v, s, traces[i]) for i, (s, v) in enumerate(pairs)]


def perform(
    job: Job,
    first: int,
    send: Send,
    scratch: str | None = None,
    hushed: Callable[[], AbstractContextManager[None]] = nullcontext,
    in_hand: InHand | None = None,
) -> None:
    """Do the job from step `first` on, until its end or the first variant that fails.

    After a failure the process may be poisoned (a CUDA error sticks), so the rest is for another.
    `scratch` is a folder for traces; None: one is made. `hushed` holds for what the user's code
    prints while it is timed, by thousands of calls. KeyboardInterrupt passes through.

    `in_hand`: the caller's function, in place of what the job's spec names. Then errors are raised.
    """
    try:
        session = _Session(job, send, scratch, in_hand)
        todo = steps(job)[first:]
        healthy = True
        for step, following in zip(todo, [*todo[1:], None], strict=True):
            send(Begin(step.index))
            done = session.do(step)
            send(done)
            if done.said or following is None or following.size != step.size:
                session.together(step.size, hushed)
                healthy = session.remedies(step.size, hushed)
            if done.said or not healthy:
                return
    except KernelcountError as error:
        if in_hand is not None:
            raise
        send(Failed(error.code, _printable(str(error))))


def repeat(job: Job, send: Send, scratch: str | None = None) -> str | None:
    """Call the one variant of a job as it is steady, in the range of another program's profiler.

    `scratch` is a folder for files; None: one is made. Gives a line on what came in between, None
    where nothing did. KeyboardInterrupt passes through.
    """
    (step,) = steps(job)
    try:
        _Session(job, send, scratch).repeat(step)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the user's code may raise anything
        return _failure(error, step.size).reason
    return None


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why something could not be done: a line, the text with the user's frames, an exit code."""

    reason: str
    said: str
    code: int
    hopeless: bool = False

    def done(self, step: Step) -> Done:
        """The end of a step that failed so."""
        outcome = Unmeasured(step.variant, self.reason, None, self.code)
        rest = f"not tried: {step.variant} asks for far more memory than there is"
        done = Done(step.index, msgspec.Raw(saved.dump([outcome])), self.said)
        return msgspec.structs.replace(done, rest=rest) if self.hopeless else done

    def while_(self, doing: str) -> _Failure:
        """The same, with what was being done in front."""
        return replace(self, reason=f"{doing}: {self.reason}", said=f"{doing}: {self.said}")

    def error(self) -> KernelcountError:
        """The same as an error that ends the whole job."""
        return KernelcountError(self.said, self.code)


class _Session:
    """A job's target and device; subjects are made from it, one a size."""

    def __init__(
        self, job: Job, send: Send, scratch: str | None, in_hand: InHand | None = None
    ) -> None:
        send(Progress("importing torch"))
        import torch  # noqa: F401

        from kernelcount import devices, paper, variants
        from kernelcount.paper import gpu
        from kernelcount.probes import compiler

        self.job, self.send, self.scratch, self.in_hand = job, send, scratch, in_hand
        asked = [variants.parse(name) for name in job.variants]
        # Before the user's code may change the folder.
        others = {v.name: _beside(job.spec, v.spec) for v in asked if v.spec is not None}
        maker = None if job.maker is None else _maker_beside(job.spec, job.maker)
        # The user's module comes before all else of torch: it may say by the environment which GPU
        # is to be seen, or how Inductor is to work. On paper the card comes before it, and the
        # compiler with it: the module may put tensors there, and call what it has compiled.
        self.device: Any = gpu.of_card(job.gpu) if _is_for_paper(job) else None
        send(Loading())
        send(Progress(f"importing {_printable(job.spec)}"))
        before = dict(os.environ) if "torch._inductor.config" in sys.modules else None
        with nullcontext() if self.device is None or in_hand else self.device.importing():
            self._import([v.name for v in asked], others, maker)
        # Where this process was forked from a warm one, the compiler is there before the module.
        measured = self.device is None and before is not None
        self._late = gpu.set_since(before or {}) if measured else []
        send(Loaded())
        send(Progress("importing the compiler"))
        compiler.load()
        for variant in asked:
            variants.check_backend(variant)
        chosen, self.device_name = devices.choose(job.device)
        if chosen.kind == "paper":
            paper.check(job)
            self.device = self.device or gpu.of_card(job.gpu)
        else:
            self.device = chosen
        self.environment = replace(self.device.environment(), kernelcount=__version__)
        if job.ncu:
            devices.check_counters(self.environment.kind)
        self._evaluate()
        self._idle_size = self._find_idle_size()
        self._subjects: dict[int | None, Any] = {}
        self._ways: dict[str, Any] = {}
        self._counted: list[tuple[int, Any, Capture]] = []
        self._timed: list[tuple[int, Any, Capture]] = []

    def _import(self, names: list[str], others: dict[str, str], maker: str | None) -> None:
        """Import the user's code: the target, its maker, and what `others` names by variant."""
        held: dict[str, Callable[..., Any]] = {}
        if self.in_hand is None:
            loaded = self._load(self.job.spec)
            self.function, self._maker = loaded.function, self._find_maker(maker, loaded.module)
        else:
            self.function, self._maker = self.in_hand.function, self.in_hand.maker
            held = self.in_hand.others
        self.functions: dict[str, Callable[..., Any]] = {}
        self._lost: dict[str, _Failure] = {}
        for name in names:
            if name not in others:
                self.functions[name] = self.function
            elif name in held:
                self.functions[name] = held[name]
            else:
                self._import_other(name, others[name], alone=len(names) == 1 or bool(self.in_hand))

    def _import_other(self, name: str, spec: str, *, alone: bool) -> None:
        """Import a variant's function: one that cannot be imported costs that variant alone."""
        try:
            self.functions[name] = self._load(spec).function
        except KernelcountError as error:
            if alone:
                raise
            cause = error.__cause__ if isinstance(error, UserCodeError) else None
            own = cause is not None and not isinstance(cause, SystemExit)
            failure = _failure(cause if own and cause else error, None)
            self._lost[name] = failure.while_(f"importing {_printable(name)}") if own else failure

    def _load(self, spec: str) -> Any:
        from kernelcount import target

        try:
            return target.load(spec)
        except UserCodeError as error:
            from kernelcount.paper import cuda

            cause = error.__cause__ or error
            if self.device is not None:
                cause = cuda.undone(cause) or cause
            failure = _failure(cause, None)
            if failure.code == NotMeasuredError.code:
                raise NotMeasuredError(f"importing {spec}: {failure.reason}") from None
            raise

    def _find_maker(self, named: str | None, module: Any) -> Callable[..., Any] | None:
        from kernelcount import inputs

        if self.job.inputs:
            return None
        if named is None:
            return inputs.find_maker(module)
        maker: Callable[..., Any] = self._load(named).function
        return maker

    def _evaluate(self) -> None:
        from kernelcount.state import module_of

        if not self.job.evaluate:
            return
        if module_of(self.function) is None:
            raise UsageError("--eval: the target is not an nn.Module, so it has no eval mode")
        for function in self.functions.values():
            if (module := module_of(function)) is not None:
                module.eval() if self.in_hand is None else self.in_hand.evaluate(module)

    def _find_idle_size(self) -> list[Note]:
        """A note where nothing depends on the size that is given. Raises UsageError for several."""
        from kernelcount import inputs

        given = self.in_hand is not None and self.in_hand.has_arguments
        options = inputs.InputOptions(specs=self.job.inputs)
        if not self.job.sizes or given:
            return []
        if inputs.heeds_size(self.function, options, self._maker):
            return []
        what = "no --input has an N" if self.job.inputs else "the function takes no arguments"
        if self._maker is not None and inputs.takes_something(self.function):
            what = f"{getattr(self._maker, '__name__', 'the maker')}() takes no n and no size"
        if len(self.job.sizes) > 1:
            raise UsageError(f"--size: nothing depends on it, as {what}: all would be the same")
        return [Note("idle-size", f"nothing depends on --size, as {what}")]

    def do(self, step: Step) -> Done:
        """One variant at one size, to its end, whatever that is."""
        if lost := self._lost.get(step.variant):
            return lost.done(step)
        subject = self._subject(step)
        if isinstance(subject, _Failure):
            return msgspec.structs.replace(subject.done(step), rest=subject.reason)
        self.send(Ready(subject.environment, subject.target))
        outcome = self._measure(step)
        if isinstance(outcome, _Failure):
            return outcome.done(step)
        # A result that is remembered takes no time worth telling.
        if isinstance(outcome, Capture) and "memoised" not in note_codes(outcome.notes):
            self._counted.append((step.index, self._way(step.variant), outcome))
        elif isinstance(outcome, Capture) and self._compares():
            outcome = self._incomparable(outcome, "a result that is remembered is not compared")
        return Done(step.index, msgspec.Raw(saved.dump([outcome])))

    def _compares(self) -> bool:
        return bool(self.job.seconds) and self.device.kind != "paper"

    def _incomparable(self, capture: Capture, why: str) -> Capture:
        """A capture with the reason why its results are not held against the first variant's."""
        if capture.name == self.job.variants[0]:
            return capture
        return replace(capture, numerics=Numerics("unknown", 0, notes=(why,)))

    def repeat(self, step: Step) -> None:
        """The steady call of a variant once more, in the range of another program's profiler.

        Raises KernelcountError, or what the user's code raises.
        """
        from kernelcount import capture

        with tempfile.TemporaryDirectory(prefix="kernelcount-", dir=self.scratch) as folder:
            way, progress = self._way(step.variant), lambda text: self.send(Progress(text))
            capture.repeat(self._made(step.size), way, Path(folder), progress)

    def together(
        self, size: int | None, hushed: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Time what was counted at one size, in turn; what fails here leaves the counts alone."""
        from kernelcount import together

        counted, self._counted = self._counted, []
        if not counted or not self._compares():
            return
        self.send(Together())
        first = any(capture.name == self.job.variants[0] for _, _, capture in counted)
        ways = [(way, capture) for _, way, capture in counted]
        try:
            with hushed():
                captures = together.measure(
                    self._made(size),
                    ways,
                    lambda text: self.send(Progress(text)),
                    lambda error: _failure(error, size).reason,
                    self.scratch,
                )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever user code raises costs the times
            note = Note(NOT_TIMED, f"not timed: {_failure(error, size).reason}")
            captures = [replace(c, notes=(*c.notes, note)) for _, c in ways]
        if not first:  # these are compared among themselves
            why = "the first variant has no results"
            captures = [self._incomparable(capture, why) for capture in captures]
        for (index, way, _), capture in zip(counted, captures, strict=True):
            self.send(Done(index, msgspec.Raw(saved.dump([capture]))))
            self._timed.append((index, way, capture))

    def remedies(
        self, size: int | None, hushed: Callable[[], AbstractContextManager[None]]
    ) -> bool:
        """Try remedies on what was timed at one size; whether the process is fit for more.

        A capture of a CUDA graph that fails may leave the GPU's context unusable.
        """
        timed, self._timed = self._timed, []
        if not timed or not self.job.remedy:
            return True
        from kernelcount import remedies

        ways = [(way, capture) for _, way, capture in timed]
        last: dict[int, Capture] = {}
        with hushed():
            self.send(Together())
            for position, capture in remedies.tried(
                self._made(size), ways, self.job.variants, lambda e: _failure(e, size).reason,
                lambda text: self.send(Progress(text)),
            ):  # fmt: skip
                last[position] = capture
                self.send(Done(timed[position][0], msgspec.Raw(saved.dump([capture]))))
                self.send(Together())  # each has the time that a variant has
        named = self.job.variants  # these ran as variants, and are cited
        tried = [r for c in last.values() for r in c.remedies if r.name not in named]
        return all(r.status != "failed" for r in tried)

    def _way(self, name: str) -> Any:
        from kernelcount import capture, variants

        if name not in self._ways:
            self._ways[name] = capture.way(variants.parse(name), self.functions[name])
        return self._ways[name]

    def _subject(self, step: Step) -> Any:
        """The target at one size with its arguments, or why they could not be made."""
        size = step.size
        if size not in self._subjects:
            self._subjects.clear()  # the arguments of another size would only take memory
            self.send(Progress("making the inputs"))
            try:
                self._made(size)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # the user's maker may raise anything
                if self.in_hand is not None:
                    raise
                failure = _failure(error, size)
                if not isinstance(error, UsageError | NotMeasuredError):
                    failure = failure.while_("making the inputs")
                if len(self.job.sizes) <= 1:
                    raise failure.error() from None
                return failure
        return self._subjects[size]

    def _made(self, size: int | None) -> Any:
        if size not in self._subjects:
            self._subjects[size] = self._make(size)
        return self._subjects[size]

    def _make(self, size: int | None) -> Any:
        from kernelcount import inputs
        from kernelcount.capture import Subject

        with self.device.prepare():
            self._place()
            arguments = self._arguments(size, self.job.seed)
        on_paper = self.device.kind == "paper"
        described = tuple(map(_printable, inputs.describe(arguments)))
        return Subject(
            target=Target(_printable(self.job.spec), described),
            arguments=arguments,
            remake=lambda seed: self._arguments(size, seed),
            device=self.device,
            environment=self.environment,
            seed=self.job.seed,
            backward=self.job.backward,
            no_grad=self.job.no_grad,
            seconds=self.job.seconds,
            reference=self.job.reference,
            cold=self.job.cold,
            explain=self.job.explain,
            notes=(
                *_global_notes("the module" if self.in_hand is None else "the caller"),
                *self._late_notes(),
                *self._idle_size,
                *self._chosen_notes(),
                *(self.device.value_notes() if on_paper else ()),
            ),
        )

    def _late_notes(self) -> Iterator[Note]:
        """What the module asks of the compiler when that does not listen any more."""
        if self._late:
            names = ", ".join(self._late)
            detail = f"the module sets {names}, which torch's compiler had read before: not heeded"
            yield Note("late-environment", detail)

    def _chosen_notes(self) -> list[Note]:
        """Why this is on paper, where a GPU is here that cannot be counted on."""
        import torch

        chosen = self.job.device is None and self.device.kind == "paper"
        if not (chosen and torch.backends.mps.is_available()):
            return []
        detail = (
            "MPS keeps no record of its kernels: these are an "
            f"{self.environment.device}'s, on paper, and not this GPU's"
        )
        return [Note("mps", detail)]

    def _place(self) -> None:
        """Have the modules, or all that the caller's functions reach, on the device."""
        from kernelcount.state import module_of

        if self.in_hand is not None:
            self.in_hand.carry(self.device_name)
            self.function = self.in_hand.here(self.function)
            self.functions = {n: self.in_hand.here(f) for n, f in self.functions.items()}
            return
        for function in self.functions.values():
            if (module := module_of(function)) is not None:
                module.to(self.device_name)

    def _arguments(self, size: int | None, seed: int) -> Any:
        from kernelcount import inputs

        job = self.job
        if self.in_hand is not None and self.in_hand.has_arguments:
            return self._prepared(self.in_hand.arguments(again=seed != job.seed))
        options = inputs.InputOptions(
            size=size, specs=job.inputs, dtype=job.dtype, device=self.device_name, seed=seed
        )
        arguments = inputs.build(self.function, options, self._maker)
        return self._prepared(arguments)

    def _prepared(self, arguments: Any) -> Any:
        """The arguments, leaves of what is to be differentiated where a backward pass follows."""
        from kernelcount import inputs

        if not self.job.backward:
            return arguments
        given = self.in_hand is not None and self.in_hand.has_arguments
        made_here = self._maker is None and not given
        return inputs.Arguments(
            tuple(_leaf(value, requires_grad=made_here) for value in arguments.args),
            {k: _leaf(value, requires_grad=made_here) for k, value in arguments.kwargs.items()},
        )

    def _measure(self, step: Step) -> Outcome | _Failure:
        from kernelcount import capture, inputs, variants

        variant = variants.parse(step.variant)
        function = self.functions[variant.name]
        with tempfile.TemporaryDirectory(prefix="kernelcount-", dir=self.scratch) as folder:
            try:
                if variant.spec is not None:
                    inputs.check_fit(function, self._made(step.size).arguments)
                outcome: Outcome = capture.measure(
                    self._made(step.size),
                    self._way(step.variant),
                    Path(folder),
                    lambda text: self.send(Progress(text)),
                )
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  whatever user code raises costs a variant
                error = error if self.in_hand is None else self.in_hand.explained(error)
                failure = _failure(error, step.size)
                of_user = isinstance(error, UsageError) or variant.kind == "eager"
                if self.in_hand is not None:
                    own = of_user or variant.kind != "compile" or len(self.functions) == 1
                    self.in_hand.failed(variant.name, error, failure.code, is_own=own)
                return failure if of_user else replace(failure, code=NotMeasuredError.code)
            if step.trace is not None and (problem := _keep(folder, Path(step.trace))):
                self.send(Unwritten(problem))
        if self.in_hand is not None:
            return self.in_hand.proven(outcome, self._made(step.size).arguments)
        return outcome


def _is_for_paper(job: Job) -> bool:
    """Whether a job will be done on paper, told without starting a GPU, before the user's code."""
    from kernelcount import devices

    if job.device is not None:
        return devices.parse(job.device)[0].kind == "paper"
    return not may_have_a_gpu() and devices.choose(None)[0].kind == "paper"


def may_have_a_gpu() -> bool:
    """Whether there may be a GPU, told without starting one.

    CUDA that is started has settled which GPUs the process sees; NVML tells without that. Of other
    makers' GPUs nothing is known before.
    """
    import torch

    if torch.version.xpu is not None:
        return True
    with mock.patch.dict(os.environ, {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}):
        return bool(torch.cuda.is_available())


def _beside(target: str, spec: str) -> str:
    """A spec whose file is relative to the current folder, or else to that of the target's file."""
    place, _, name = spec.rpartition(":")
    if not place.endswith(".py"):
        return spec
    near = Path(target.rpartition(":")[0]).parent / place
    file = near if near.is_file() and not Path(place).is_file() else Path(place)
    return f"{file.absolute()}:{name}"


def _maker_beside(target: str, name: str) -> str:
    """A maker's spec: a bare name is one of the target's own file."""
    return _beside(target, name if ":" in name else f"{target.rpartition(':')[0]}:{name}")


def _leaf(value: Any, *, requires_grad: bool) -> Any:
    """An argument for a backward pass: it ends here, and not in how the argument was made."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_leaf:
        return value.detach().requires_grad_(value.requires_grad)
    if requires_grad and value.is_floating_point():
        value.requires_grad_()
    return value


def _failure(error: BaseException, size: int | None) -> _Failure:
    """A line for what runs out or is missing; else the user's exception with the user's frames."""
    from kernelcount import memory, target

    if isinstance(error, KernelcountError):
        text = _printable(str(error))
        return _Failure(_first_line(text), text, error.code)
    if memory.is_out_of_memory(error):
        text = memory.explain(error, size)
        return _Failure(text, text, NotMeasuredError.code, memory.is_hopeless(error))
    text = _text_of(error)
    if any(sign in text for sign in _NO_CUDA):
        text = f"this needs CUDA, and there is none here ({_first_line(text)})"
        return _Failure(text, text, NotMeasuredError.code)
    line = f"raised {type(error).__name__}: {_first_line(text)}".removesuffix(": ")
    # torch.compile's errors say in their first line only of which kind they are.
    if explained := next((x for x in text.splitlines() if x.startswith("  Explanation: ")), None):
        line = _first_line(f"{line}: {explained.removeprefix('  Explanation: ')}")
    if isinstance(error, SystemExit):
        code = "" if error.code is None else _first_line(_printable(repr(error.code)))
        line = f"the function called sys.exit({code})"
    frames = _shortened(_printable(target.user_traceback(error)))
    return _Failure(line, f"{line}\n{frames}", UserCodeError.code)


_NO_CUDA = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver on your system")


def _text_of(error: BaseException) -> str:
    try:
        return _printable(str(error))
    except Exception:  # noqa: BLE001  the user's own exception class
        return "(its __str__ fails)"


def _printable(text: str) -> str:
    """The text with halves of surrogate pairs, which no message can carry, made visible."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."


def _shortened(text: str) -> str:
    """The beginning and the end of a text that nobody would read whole."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = f"... {len(lines) - 2 * half} lines left out ..."
        text = "\n".join((*lines[:half], left_out, *lines[-half:]))
    if len(text) > _LONGEST_TEXT:
        half = _LONGEST_TEXT // 2
        left_out = f"... {len(text) - 2 * half} characters left out ..."
        text = f"{text[:half]}\n{left_out}\n{text[-half:]}"
    return text


def _global_notes(who: str) -> list[Note]:
    """What `who` set for the whole process, where it bears on the count."""
    import torch

    notes: list[Note] = []
    if (dtype := torch.get_default_dtype()) is not torch.float32:
        notes.append(Note("default-dtype", f"{who} set torch's default dtype to {dtype}"))
    if not torch.is_grad_enabled():
        notes.append(Note("grad-disabled", f"{who} switched gradients off"))
    return notes


def _keep(folder: str, wanted: Path) -> str | None:
    """Put the raw trace where the user wants it, compressed if its name says so.

    Returns what went wrong, if anything did.
    """
    import gzip

    trace = Path(folder, "trace.json")
    try:
        if wanted.suffix == ".gz":
            with trace.open("rb") as source, gzip.open(wanted, "wb") as out:
                shutil.copyfileobj(source, out)
        else:
            shutil.copyfile(trace, wanted)
    except OSError as error:
        return f"--trace {_printable(str(wanted))}: {error.strerror}"
    return None


def main(control: int, folder: str, first: int) -> None:
    """The worker process: fd 1 is the parent's stderr already, and stdin is empty.

    `folder` holds the job and takes the results. The process ends as soon as `control` does, which
    is when the parent is gone, however it went.
    """
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()
    _write_down_crashes(Path(folder, "fault"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # or a crash would swallow what was printed
    send = _Sender(Path(folder, "results"))
    job = msgspec.convert(json.loads(Path(folder, "job").read_bytes()), Job)
    try:
        perform(job, first, send, folder, _hushed)
    except KeyboardInterrupt:
        send(Failed(130, "interrupted: the function raised KeyboardInterrupt"))
    except Exception as error:  # noqa: BLE001  a thread of the user's might keep the process alive
        said = f"{type(error).__name__}: {error}"
        send(
            Failed(
                NotMeasuredError.code, f"an error of kernelcount's own, please report it: {said}"
            )
        )
    send(Ended())


class _Sender:
    """Sends messages to the parent, through a pipe that is opened for each.

    The user's code may close all file descriptors: one that was kept open would be lost, or, worse,
    be a file of the user's by then. A child that it forked has nothing to say.
    """

    def __init__(self, pipe: Path) -> None:
        self._pipe, self._process = str(pipe), os.getpid()
        self._encoder = msgspec.json.Encoder()

    def __call__(self, message: Message) -> None:
        if os.getpid() != self._process:
            os._exit(0)
        data = memoryview(self._encoder.encode(message).replace(b"\n", b"") + b"\n")
        pipe = os.open(self._pipe, os.O_WRONLY)
        if pipe <= 2:  # noqa: PLR2004  the user's code closed a standard stream: stay off its place
            above = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(pipe)
            pipe = above
        try:
            while data:
                data = data[os.write(pipe, data) :]
        finally:
            os.close(pipe)


@contextmanager
def _hushed() -> Iterator[None]:
    """Throw away what goes to the standard streams, those that the user's code has not closed."""
    kept: list[tuple[int, int]] = []
    for number in (1, 2):
        with suppress(OSError):
            kept.append((number, os.dup(number)))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _flush()
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        _flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _write_down_crashes(path: Path) -> None:
    """Have a crash, and `WHERE`, write the Python frames of the moment to `path`."""
    file = path.open("w")
    faulthandler.enable(file, all_threads=False)
    if WHERE is not None:
        faulthandler.register(WHERE, file, all_threads=False)


def _end_with(control: int) -> None:
    try:
        while os.read(control, 1):
            pass
    except OSError:  # the user's code closed it
        return
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # children too
    os._exit(130)
